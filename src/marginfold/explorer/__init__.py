"""The explorer: a table seen through every method, in the browser and in the notebook.

`Explorer` is the widget for notebooks (it needs the extra ``notebook``).  `Session` holds a table
and answers calls; it knows nothing of the web.  `marginfold.explorer.server` puts one behind every
tab of a browser.
"""

from typing import TYPE_CHECKING, Any

from marginfold.explorer.session import Session
from marginfold.explorer.table import Opened, Table, open_table

if TYPE_CHECKING:
    from marginfold.explorer.widget import Explorer

__all__ = ["Explorer", "Opened", "Session", "Table", "open_table"]


def __getattr__(name: str) -> Any:
    """Import the widget when it is asked for: it needs a package that the rest does not."""
    if name != "Explorer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from marginfold.runtime.extras import require

    require("anywidget")
    from marginfold.explorer.widget import Explorer

    return Explorer
