"""Fonts for names in any script: those of this machine, and what to do where it has none."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache

from matplotlib.figure import Figure as Drawing
from matplotlib.font_manager import findfont, fontManager, get_font
from matplotlib.text import Text

OWN = "DejaVu Sans"
"""The font that comes with matplotlib."""

LAST_RESORT = "LastResort"
"""Part of the names of fonts that have every letter, as a box that names its script."""

UNDRAWABLE = frozenset({"Cc", "Cs"})
"""Categories of characters that no font draws and no SVG may hold."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What stands for them in a picture."""


def drawable(text: str) -> str:
    r"""Return a text without characters that no picture can show.

    Examples
    --------
    >>> from marginfold.plotting.fonts import drawable
    >>> drawable("a\x1bb\nc")
    'a�b\nc'
    """
    return "".join(
        REPLACEMENT if c != "\n" and unicodedata.category(c) in UNDRAWABLE else c for c in text
    )


def families(text: str) -> list[str]:
    """Return the fonts to draw a text with: matplotlib's, and those for what it lacks."""
    return list(_covering(frozenset(text))[0])


def missing_letters(drawing: Drawing) -> str:
    """Return the letters of a drawing that no font of this machine has."""
    texts = [str(artist.get_text()) for artist in drawing.findobj(Text)]
    return _covering(frozenset("".join(texts)))[1]


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Keep matplotlib from a warning for each letter that it has no font for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


@lru_cache(maxsize=64)
def _covering(letters: frozenset[str]) -> tuple[tuple[str, ...], str]:
    """Return fonts that have the letters together, as few as a greedy choice finds, and the rest.

    Only scalable ones: matplotlib cannot draw the pictures of colour emoji.
    """
    lacking = {ord(letter) for letter in letters if letter != "\n"} - _known(findfont(OWN))
    chosen = [OWN]
    installed = fontManager.ttflist if lacking else []
    candidates = {e.name: e.fname for e in installed if LAST_RESORT not in e.name.replace(" ", "")}
    while lacking:
        has = {name: len(lacking & _known(file)) for name, file in candidates.items()}
        best = max(has, key=lambda name: has[name], default="")
        if not has.get(best):
            break
        chosen.append(best)
        lacking -= _known(candidates[best])
    return tuple(chosen), "".join(sorted(map(chr, lacking)))


@cache
def _known(file: str) -> frozenset[int]:
    """Return the letters of a font; none of one that cannot be read or scaled."""
    try:
        font = get_font(file)
        return frozenset(font.get_charmap()) if font.scalable else frozenset()
    except (OSError, RuntimeError):
        return frozenset()
