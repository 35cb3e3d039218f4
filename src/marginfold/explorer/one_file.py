"""Maps as one HTML file: the page with its answers inside, which needs no server and asks nobody.

The file holds the frames of `describe`, of the fit of each map, of its path and of all rows,
compressed; the page answers its own calls from them.  A policy in the file forbids every request.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marginfold.errors import MarginfoldError
from marginfold.explorer.frames import frame

if TYPE_CHECKING:
    from marginfold.linalg.tall import Array

STATIC = Path(__file__).parent / "static"
"""The page as it was built."""

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""What the file may do: run its own script, and no request."""

KEPT_ID = "marginfold-answers"
"""The element that holds the answers (``web/src/transport/page.ts``)."""

FILE_DIGITS = 6
"""Digits of a number in the rows that a file shows: half the size of all 15."""

FILE_BITS = 12
"""Bits of a coordinate along a path: 4096 places, more than a map has pixels, in three quarters of
the size.  With both, 5000 rows x 30 columns and 30 weights take 1.7 MB instead of 2.4."""

NEEDS_A_SERVER = ("preimage", "control", "suspects")
"""What a map without a server has not."""


@dataclass(frozen=True, eq=False)
class KeptAnswer:
    """An answer that a file holds: the call, its parameters, and what came of it."""

    call: str
    params: Mapping[str, Any]
    body: Mapping[str, Any]
    arrays: Mapping[str, Array]

    def listed(self) -> dict[str, Any]:
        """Return it as the page reads it."""
        content = gzip.compress(frame("result", self.body, self.arrays), mtime=0)
        text = base64.b64encode(content).decode("ascii")
        return {"call": self.call, "params": dict(self.params), "frame": text}


def without_server(body: Mapping[str, Any], *, path: bool, loadings: bool) -> dict[str, Any]:
    """Return the body of a fit for a file, which has path and loadings or has not."""
    has = dict(body["has"]) | dict.fromkeys(NEEDS_A_SERVER, False)
    has |= {"path": path, "loadings": loadings}
    return {**body, "has": has, "seconds": 0.0}


def coarser(path: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of a path with steps of `FILE_BITS` bits, each the nearest from below."""
    lost = 16 - FILE_BITS
    return {**path, "steps": path["steps"] >> lost << lost}


def one_file(title: str, answers: Sequence[KeptAnswer], plain: str = "") -> str:
    """Return the text of an HTML file.

    Parameters
    ----------
    title : str
    answers : sequence of KeptAnswer
    plain : str, default=""
        HTML that is shown where scripts are off; trusted, so build it of escaped texts.

    Examples
    --------
    >>> from marginfold.explorer.one_file import one_file
    >>> one_file("a < b", [])[:15]
    '<!doctype html>'
    """
    return PAGE.format(
        policy=html.escape(POLICY),
        title=html.escape(title),
        style=built("page.css").replace("</", "<\\/"),
        plain=plain or f"<p>{html.escape(title)}: its maps need scripts.</p>",
        kept_id=KEPT_ID,
        answers=embedded({"answers": [answer.listed() for answer in answers]}),
        script=closed_script(built("page.js")),
    )


def embedded(value: Any) -> str:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def closed_script(text: str) -> str:
    """Return a script that cannot end the element it stands in."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def built(name: str) -> str:
    """Return a file of the built page."""
    path = STATIC / name
    if not path.is_file():
        raise MarginfoldError(f"{name} of the explorer's page is not there; run make web.")
    return path.read_text(encoding="utf-8")


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<noscript>{plain}</noscript>
<script type="application/json" id="{kept_id}">{answers}</script>
<script type="module">{script}</script>
</body>
</html>
"""
"""The file around the built page."""
