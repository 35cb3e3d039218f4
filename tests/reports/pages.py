"""A page read back: what the tests of reports look for in the HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "input", "hr", "base", "source"}


@dataclass
class Node:
    """An element with its attributes, and what is in it."""

    tag: str
    attributes: dict[str, str | None]
    content: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.content)

    @property
    def children(self) -> list[Node]:
        return [part for part in self.content if isinstance(part, Node)]

    def all(self, *tags: str) -> list[Node]:
        """All elements below with one of these tags, in the order of the page."""
        found = []
        for child in self.children:
            found += [child] if child.tag in tags or not tags else []
            found += child.all(*tags)
        return found

    def of_class(self, name: str) -> list[Node]:
        return [n for n in self.all() if name in (n.attributes.get("class") or "").split()]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        node = Node(tag, dict(attrs))
        assert len(node.attributes) == len(attrs), f"an attribute of {tag} is there twice"
        self.open[-1].content.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].content.append(data)


def read_page(html: str) -> Node:
    """The page as a tree; every element must be closed where it should be."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert [node.tag for node in reader.open] == [""]
    return reader.root
