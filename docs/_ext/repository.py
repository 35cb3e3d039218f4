"""What the repository shows and the site shows too: links between Markdown files, names in code.

A Markdown file links to others by relative paths, as a reader of the repository needs it.  On the
site some of them are other pages (`PAGES`), and a file that is included by a page elsewhere has its
links seen from there.  Public names in code marks become links to their page of the reference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import marginfold

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples": "gallery/index.rst",
}
"""Files of the repository, and the page below docs/ that shows each."""

LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=#[^)]*\)|\))")
"""The path of a relative link."""

FITTED_SIZE = re.compile(r"(?<=[(, ])(\w+)_(?=[,)])")
"""A size such as ``n_components_`` in a shape, which reStructuredText takes for a link."""

CALL = re.compile(r"(?:marginfold\.)?(\w+)(?:\(.*\))?", re.DOTALL)
"""A name in code marks, perhaps called."""


TARGETS = {name: f"marginfold.{name}" for name in marginfold.__all__ if name != "__version__"} | {
    name: f"marginfold.errors.{name}"
    for name in vars(marginfold.errors)
    if name.endswith(("Error", "Warning"))
}
"""Where each public name, error and warning is described."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hooks."""
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    app.connect("missing-reference", find_error)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", escape_shapes, priority=600)  # after numpydoc
    app.add_transform(PublicNames)
    app.add_transform(Percentages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def read_page(app: Sphinx, docname: str, content: list[str]) -> None:
    """Turn the links of a page below docs/ to other pages."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        content[0] = turned(content[0], path.parent, path.parent, Path(app.srcdir))


def read_included(app: Sphinx, path: Path, docname: str, content: list[str]) -> None:
    """Turn the links of an included file, seen from the page that includes it."""
    docs = Path(app.srcdir)
    content[0] = turned(content[0], (docs / path).resolve().parent, docs, docs)


def turned(text: str, folder: Path, page_folder: Path, docs: Path) -> str:
    """Return a text whose links, written for a folder, are those of a page in another."""

    def of_page(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[1]))
        known = target.relative_to(docs.parent).as_posix() if target.exists() else ""
        target = docs / PAGES[known] if known in PAGES else target
        return os.path.relpath(target, page_folder) if target.exists() else match[1]

    return LINK.sub(of_page, text)


class PublicNames(SphinxTransform):
    """`LSVA` and `LSVA(2)` in code marks link to the page of the name."""

    default_priority = 400

    def apply(self) -> None:
        """Replace the marks, outside of links and headings."""
        for node in list(self.document.findall(nodes.literal)):
            found = CALL.fullmatch(node.astext())
            if found is None or found[1] not in TARGETS or is_inside_link(node):
                continue
            target = TARGETS[found[1]]
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refdoc=self.env.docname
            )
            node.replace_self(link)
            link += node


class Percentages(SphinxTransform):
    """A number and its percent sign stay on one line."""

    default_priority = 410

    def apply(self) -> None:
        """Replace the blank between them, outside of code."""
        for node in list(self.document.findall(nodes.Text)):
            if " %" in node and not isinstance(node.parent, nodes.literal | nodes.literal_block):
                node.parent.replace(node, nodes.Text(re.sub(r"(?<=\d) %", "\u00a0%", node)))


def is_inside_link(node: nodes.Node) -> bool:
    """Return whether a node is part of a link, of a heading or of a signature."""
    outer = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)
    while node.parent is not None:
        node = node.parent
        if isinstance(node, outer):
            return True
    return False


def skip_inherited(
    app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what a class has from scikit-learn; its own documentation describes that."""
    module = getattr(member, "__module__", None) or ""
    routed = re.fullmatch(r"(set_\w+_request|get_metadata_routing|set_output)", name)
    return True if routed or module.startswith(("sklearn.", "anywidget", "traitlets")) else None


def escape_shapes(
    app: Sphinx, what: str, name: str, member: Any, options: Any, lines: list[str]
) -> None:
    """Keep the underscores of sizes in ``array of shape (n_components_, n_features)``."""
    lines[:] = [
        line if line.lstrip().startswith((">>>", "...")) else FITTED_SIZE.sub(r"\1\\_", line)
        for line in lines
    ]


def find_error(app: Sphinx, env: Any, node: Any, content: nodes.Element) -> nodes.Node | None:
    """Find the page of an error or warning that a docstring names without its module."""
    target = TARGETS.get(node.get("reftarget"))
    if node.get("refdomain") != "py" or target is None or target == node["reftarget"]:
        return None
    domain = env.get_domain("py")
    where = (app.builder, "obj", target, node, content)
    return domain.resolve_xref(env, node["refdoc"], *where)
