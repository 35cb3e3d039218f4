"""Files of the built site that come from no page: the explorer as one file, MathJax."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

MATHJAX = "sphinx-mathjax-offline"
"""The package that holds MathJax."""

TABLE = "wine"
"""The table of the explorer on the site."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook."""
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_files(app: Sphinx, exception: Exception | None) -> None:
    """Write what is made by the build and belongs to no page."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    (static / "webpack-macros.html").unlink(missing_ok=True)  # a template of the theme, no page
    script = static / app.config.mathjax_path
    script.parent.mkdir(exist_ok=True)
    with as_file(files(MATHJAX) / "static" / app.config.mathjax_path) as shipped:
        shutil.copyfile(shipped, script)
    (static / "explorer.html").write_text(explorer_page(TABLE), encoding="utf-8")


def explorer_page(table: str) -> str:
    """Return PCA and LSVA of a bundled table, with a slider over the graph weight, as one file."""
    from marginfold.explorer import Session, Table, open_table

    with Session(Table.of(open_table(table))) as session:
        return session.page()
