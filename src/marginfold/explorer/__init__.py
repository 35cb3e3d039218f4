"""The explorer: a table seen through every method, in the browser and in the notebook.

`Explorer` is the widget for notebooks (it needs the extra ``notebook``).  `Session` holds a table
and answers calls; it knows nothing of the web.  `marginfold.explorer.server` puts one behind every
tab of a browser.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginfold.explorer.session import Session
    from marginfold.explorer.table import Opened, Table, open_table
    from marginfold.explorer.widget import Explorer

__all__ = ["Explorer", "Opened", "Session", "Table", "open_table"]

_HOME = {
    "Explorer": "widget",
    "Opened": "table",
    "Session": "session",
    "Table": "table",
    "open_table": "table",
}
"""The module of each name: imported when it is asked for, so that a server begins at once and the
widget's package is needed for the widget alone."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "Explorer":
        from marginfold.runtime.extras import require

        require("anywidget")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
