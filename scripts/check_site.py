"""Check a built site: no page asks another host, every link inside leads somewhere, and every class
of the reference has a picture.

    python scripts/check_site.py docs/_build/html

Addresses outside cannot be tried everywhere; only their form is checked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LOADING = {
    "img": ("src", "srcset"),
    "script": ("src",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "link": ("href",),
    "form": ("action",),
}
"""Attributes that a browser follows by itself, or sends to."""

NOT_LOADED = {"canonical", "next", "prev", "search", "index", "author", "copyright", "license"}
"""Kinds of <link> that load nothing."""

OUTSIDE_STYLE = re.compile(r"""(?:url\(|@import)\s*['"]?\s*((?:https?:)?//[^'")\s]+)""")
"""An address that a style sheet loads."""


class Page(NamedTuple):
    """What a page loads, links to, and can be linked at."""

    loads: list[str]
    links: list[str]
    anchors: set[str]
    described: set[str]  # "class", "function", ...: the kinds of objects that it describes


def main() -> None:
    """Check the folder that the command line names; end with 1 and a list if something is wrong."""
    root = Path(sys.argv[1]).resolve()
    pages = {path: read_page(path) for path in sorted(root.rglob("*.html"))}
    if not pages:
        sys.exit(f"no page below {root}; run make docs first")
    wrong = faults(root, pages)
    if wrong:
        sys.exit("\n".join([*wrong, f"{len(wrong)} things are wrong in {len(pages)} pages"]))
    n_links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {n_links} links: none astray, nothing is loaded from elsewhere")


def faults(root: Path, pages: dict[Path, Page]) -> list[str]:
    """Name all that is wrong with the pages of a folder."""
    return [*outside(root, pages), *astray(root, pages), *bare(root, pages)]


def read_page(path: Path) -> Page:
    """Return what a page loads and links to."""
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


class Reader(HTMLParser):
    """Collects addresses and anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page([], [], set(), set())
        self._inside_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the addresses of an element."""
        given = {name: value or "" for name, value in attrs}
        self._inside_style = tag == "style"
        self.page.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "dl" and "py" in given.get("class", "").split():
            self.page.described.update(given["class"].split())
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
        if tag == "link" and set(given.get("rel", "").split()) & NOT_LOADED:
            return
        for name in LOADING.get(tag, ()):
            self.page.loads.extend(parted(name, given.get(name, "")))
        self.page.loads.extend(OUTSIDE_STYLE.findall(given.get("style", "")))

    def handle_data(self, data: str) -> None:
        """Take the addresses of a style sheet inside the page."""
        if self._inside_style:
            self.page.loads.extend(OUTSIDE_STYLE.findall(data))


def parted(name: str, value: str) -> list[str]:
    """Return the addresses of an attribute; a srcset has several."""
    if name == "srcset":
        return [each.split()[0] for each in value.split(",") if each.strip()]
    return [value] if value else []


def outside(root: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Name what pages and style sheets load from another host, or from a file that is not there."""
    for path, page in pages.items():
        for address in page.loads:
            parts = urlsplit(address)
            if parts.scheme not in ("", "data") or parts.netloc:
                yield f"{path.relative_to(root)} loads {address}"
            elif parts.path and not parts.scheme and not target(path, parts.path).exists():
                yield f"{path.relative_to(root)} loads {address}, which is not there"
    for path in sorted(root.rglob("*.css")):
        for address in OUTSIDE_STYLE.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(root)} loads {address}"


def astray(root: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Name links to pages or anchors that are not there, and addresses that are none."""
    for path, page in pages.items():
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https"):
                well = re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", parts.netloc) is not None
            elif parts.scheme:
                well = parts.scheme in ("mailto", "data")
            else:
                well = leads(path, parts.path, unquote(parts.fragment), pages)
            if not well:
                yield f"{path.relative_to(root)} links to {address}"


def bare(root: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Name pages that describe a class of the package, not of a module in it, without a picture."""
    for path, page in pages.items():
        own = "class" in page.described and path.stem.count(".") <= 1
        if own and not any("_images/" in address for address in page.loads):
            yield f"{path.relative_to(root)} describes a class without a picture"


def leads(path: Path, to: str, anchor: str, pages: dict[Path, Page]) -> bool:
    """Return whether a link inside the site leads to a file, and to an anchor in it."""
    there = target(path, to) if to else path
    there = there / "index.html" if there.is_dir() else there
    if there not in pages:
        return there.is_file()
    return not anchor or anchor in pages[there].anchors


def target(path: Path, to: str) -> Path:
    """Return the file that a relative address means."""
    return (path.parent / unquote(to)).resolve()


if __name__ == "__main__":
    main()
