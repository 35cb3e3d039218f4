"""Figures as SVG text and PNG files: the same bytes for the same figure."""

from __future__ import annotations

import hashlib
import io
import os
import re

import matplotlib.style
from matplotlib.figure import Figure as Drawing

from marginfold.errors import MarginfoldWarning, warn
from marginfold.plotting.drawing import RC, draw
from marginfold.plotting.fonts import missing_letters, without_glyph_warnings
from marginfold.protocols.results import Figure
from marginfold.runtime.files import write_file

SVG_DPI = 200
"""Of points that are drawn as pixels within an SVG."""

PNG_DPI = 150
"""Of PNG files."""

SHOWN_LETTERS = 20
"""Letters without a font that a warning lists."""

NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}
"""Nothing that changes from day to day or from version to version."""

STYLE_SHEET = re.compile(r"\s*<defs>\s*<style[^>]*>\*\{([^}]*)\}</style>\s*</defs>")
"""Matplotlib's rule for all elements: inside a page it would hold for the whole page."""

NAME = re.compile(r'(\bid="|url\(#|href="#)')
"""Where the name of a part stands."""


def svg(figure: Figure | Drawing) -> str:
    """Return the figure as SVG text, ready to be put into a page.

    Parameters
    ----------
    figure : Figure, or matplotlib figure
        As a value, or as `draw` returned it.

    Returns
    -------
    str
        One ``<svg>`` element without date, style sheet or document type; text is drawn as paths,
        or stays text if it has letters for which this machine has no font: who looks at it may
        have one.  The names of its parts occur in no other figure.

    Examples
    --------
    >>> from marginfold.plotting import svg
    >>> from marginfold.protocols.results import Figure, Panel, Series
    >>> figure = Figure("lsva", "2", "", "", [Panel("sonar", [Series("", [1, 2], [3.0, 4.0])])])
    >>> svg(figure)[:4], svg(figure) == svg(figure)
    ('<svg', True)
    """
    buffer = io.StringIO()
    drawing = _drawn(figure)
    salt = {"svg.hashsalt": "marginfold"}  # the names of parts are random otherwise
    text = {"svg.fonttype": "none" if missing_letters(drawing) else "path"}
    with matplotlib.style.context(["default", RC, salt, text]), without_glyph_warnings():
        drawing.savefig(buffer, format="svg", dpi=SVG_DPI, metadata=NO_METADATA)
    return _embeddable(buffer.getvalue())


def png(
    figure: Figure | Drawing,
    path: str | os.PathLike[str],
    dpi: float = PNG_DPI,
    *,
    overwrite: bool = False,
) -> None:
    """Write the figure as a PNG file, in one step.

    Parameters
    ----------
    figure : Figure, or matplotlib figure
    path : str or path
    dpi : float, default=150
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Warns
    -----
    MarginfoldWarning
        If no font of this machine has some of the letters: they appear as boxes in the picture.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginfold.plotting import png
    >>> from marginfold.protocols.results import Figure, Panel, Series
    >>> figure = Figure("lsva", "2", "", "", [Panel("sonar", [Series("", [1, 2], [3.0, 4.0])])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     png(figure, Path(folder) / "figure.png")
    ...     (Path(folder) / "figure.png").read_bytes()[1:4]
    b'PNG'
    """
    buffer = io.BytesIO()
    drawing = _drawn(figure)
    missing = missing_letters(drawing)
    if missing:
        warn(
            f"No font of this machine has the letters {missing[:SHOWN_LETTERS]!r}: they appear as "
            f"boxes in {path}. Install a font that has them (such as Noto Sans CJK), or use "
            "svg(), which keeps them as text.",
            MarginfoldWarning,
        )
    with matplotlib.style.context(["default", RC]), without_glyph_warnings():
        drawing.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    write_file(path, buffer.getvalue(), overwrite=overwrite)


def _drawn(figure: Figure | Drawing) -> Drawing:
    return figure if isinstance(figure, Drawing) else draw(figure)


def _embeddable(text: str) -> str:
    text = text[text.index("<svg") :]
    sheet = STYLE_SHEET.search(text)
    if sheet:
        text = text[: sheet.start()] + text[sheet.end() :]
        text = text.replace("<svg", f'<svg style="{sheet.group(1)}"', 1)
    prefix = hashlib.sha256(text.encode()).hexdigest()[:8]  # shared by no two figures of a page
    return NAME.sub(rf"\g<1>f{prefix}-", text)
