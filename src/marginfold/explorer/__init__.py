"""The explorer: a table seen through every method, in the browser and in the notebook.

`Session` holds a table and answers calls; it knows nothing of the web.
`marginfold.explorer.server` puts one behind every tab of a browser.
"""

from marginfold.explorer.session import Session
from marginfold.explorer.table import Opened, Table, open_table

__all__ = ["Opened", "Session", "Table", "open_table"]
