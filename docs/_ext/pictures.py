"""Pictures in the reference: api/pictures/NAME.py is run and shown below the docstring of NAME.

matplotlib's ``plot`` directive runs the file and shows its code above the picture, so that both are
of one build.  The comment at the top of a file says what the picture shows.
"""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDER = Path("api", "pictures")
"""Where the files are, below docs/."""

SCREENS = {"Explorer": ("/images/explorer.png", "Two maps of one table, side by side.")}
"""Pictures of what no script draws, and what they show."""

SCALE = 125
"""Percent of the size of a figure on paper: its letters are nearly those of the text."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook."""
    app.setup_extension("matplotlib.sphinxext.plot_directive")
    app.connect("autodoc-process-docstring", add_picture, priority=700)  # below all of the text
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_picture(
    app: Sphinx, what: str, name: str, member: Any, options: Any, lines: list[str]
) -> None:
    """Add the picture of a class or function, if it has one."""
    if what not in ("class", "function"):
        return
    name = name.rpartition(".")[2]
    path = Path(app.srcdir, FOLDER, f"{name}.py")
    if name in SCREENS:
        file, text = SCREENS[name]
        lines += ["", f".. image:: {file}", f"   :alt: {text}", ""]
    elif path.exists():
        app.env.note_dependency(str(path))  # a change of the file is one of the page
        lines += ["", f".. plot:: {(FOLDER / path.name).as_posix()}"]
        lines += [f"   :alt: {top_comment(path)}", f"   :scale: {SCALE}", ""]


def top_comment(path: Path) -> str:
    """Return the comment at the top of a file as one line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = takewhile(lambda line: line.startswith("# "), lines)
    return " ".join(line.removeprefix("# ") for line in comment)
