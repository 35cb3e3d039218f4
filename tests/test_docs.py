"""What the documents show runs as it stands, and what they name exists."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import marginfold

ROOT = Path(__file__).parents[1]
GUIDE = sorted(f"docs/guide/{path.name}" for path in (ROOT / "docs" / "guide").glob("*.md"))
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
    *GUIDE,
]
PYTHON_BLOCK = re.compile(
    r"(?:^<!-- (?:runs if installed: (?P<package>\w+)|not run: (?P<reason>[^\n]+)) -->\n)?"
    r"^```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
TEST_NAME = re.compile(r"`(test_\w+)`")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


def read(document: str) -> str:
    path = ROOT / document
    assert path.is_file(), f"{document} is missing: expected it at {path}"
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if "\n```python" in read(name)])
def test_code_runs_from_top_to_bottom_in_one_namespace(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in python_blocks(document):
        exec(compile(block, str(ROOT / document), "exec"), namespace)


def python_blocks(document: str) -> list[str]:
    """The Python blocks, each pushed down to its own line so that a traceback names that line."""
    text = read(document)
    return [
        "\n" * text.count("\n", 0, match.start("code")) + match["code"]
        for match in PYTHON_BLOCK.finditer(text)
        if not match["reason"] and (not match["package"] or find_spec(match["package"]))
    ]


@pytest.mark.parametrize("document", ["README.md", "docs/coming_from.md", *GUIDE])
def test_pages_for_users_show_how_the_package_is_used(document: str) -> None:
    shown = {"docs/guide/index.md": "](", "docs/guide/command_line.md": "```sh"}
    assert shown.get(document, "```python") in read(document)


def test_the_index_of_the_guide_links_every_page_and_lists_it_for_the_site() -> None:
    pages = sorted(Path(name).stem for name in GUIDE if not name.endswith("index.md"))
    text = read("docs/guide/index.md")
    assert sorted(re.findall(r"^- \[.*?\]\((\w+)\.md\)", text, re.MULTILINE)) == pages
    toctree, *_ = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r"^\w+$", toctree, re.MULTILINE)) == pages


def test_the_guide_has_a_place_for_every_public_name() -> None:
    words = set(re.findall(r"\w+", "".join(map(read, GUIDE))))
    assert sorted(set(marginfold.__all__) - {"__version__"} - words) == []


def test_the_guide_explains_every_error_and_warning() -> None:
    named = {
        name
        for name in vars(marginfold.errors)
        if name.endswith(("Error", "Warning")) and name != "MarginfoldError"
    }
    text = read("docs/guide/messages.md")
    assert len(named) > 10
    assert sorted(name for name in named if f"`{name}`" not in text) == []


def test_the_architecture_names_every_subpackage_and_no_file_that_is_gone() -> None:
    package, text = ROOT / "src" / "marginfold", read("docs/architecture.md")
    subpackages = {path.parent.name for path in package.glob("*/__init__.py")}
    assert (
        sorted(subpackage for subpackage in subpackages if f"\n  {subpackage}/ " not in text) == []
    )
    tree, *_ = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    subpackage, gone = "", []
    for line in tree.splitlines():
        subpackage = line.split("/")[0].strip() if re.match(r"  \w+/", line) else subpackage
        where = package / subpackage if line.startswith("    ") else package
        gone += [name for name in re.findall(r"\w+\.py", line) if not (where / name).is_file()]
    named = re.findall(r"`([\w/]+/(?:[\w.]+)?)`", text)
    gone += [name for name in named if not any((base / name).exists() for base in (package, ROOT))]
    assert gone == []


def test_names_in_the_architecture_exist() -> None:
    """``name (`file`)`` and ``| `name` in `file` |`` say where a name is defined."""
    package, text = ROOT / "src" / "marginfold", read("docs/architecture.md")
    pairs = re.findall(r"`[\w.]*?(\w+)`\s+\(`([\w/]+\.py)`\)", text)
    pairs += re.findall(r"`(\w+)` in `([\w/]+\.py)`", text)
    assert len(pairs) > 10
    lost = [
        (name, file)
        for name, file in pairs
        if not re.search(rf"\b(def|class) {name}\b", (package / file).read_text(encoding="utf-8"))
    ]
    assert lost == []


def test_tests_that_the_errata_name_exist() -> None:
    named = set(TEST_NAME.findall(read("docs/errata.md")))
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    defined = {name for source in sources for name in re.findall(r"def (test_\w+)", source)}
    assert named
    assert sorted(named - defined) == []


def test_errata_that_the_tables_name_exist() -> None:
    papers = ROOT / "src" / "marginfold" / "papers"
    sources = [path.read_text(encoding="utf-8") for path in papers.rglob("*.py")]
    named = {number for source in sources for number in re.findall(r'"(E\d+[bc]?)"', source)}
    listed = set(re.findall(r"^\| (E\d+[bc]?) ", read("docs/errata.md"), re.MULTILINE))
    assert named
    assert sorted(named - listed) == []


def test_no_number_of_the_errata_is_missing() -> None:
    listed = re.findall(r"^\| E(\d+)[bc]? ", read("docs/errata.md"), re.MULTILINE)
    numbers = sorted(set(map(int, listed)))
    assert numbers == list(range(1, max(numbers) + 1))


def test_the_notation_names_what_exists() -> None:
    """Calls, classes, attributes with an underscore at the end and files in code marks."""
    code = re.findall(r"`([^`]+)`", read("docs/notation.md"))
    named = {name for text in code for name in re.findall(r"\b(?:[A-Z]\w{2,}|[a-z]\w*_)\b", text)}
    named |= {name for text in code for name in re.findall(r"(\w+)\(", text)} - {"sqrt"}
    named |= {name for text in code for name in re.findall(r"^\w+\.(\w+)$", text)} - {"py"}
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    defined = {
        name
        for source in sources
        for name in re.findall(
            r"(?:\bdef |\bclass |\bself\.|^    (?!def ))(\w+)", source, re.MULTILINE
        )
    }
    assert {"Deflation", "scatter", "alphas_", "graph_moments"} <= named
    assert sorted(named - defined - {"None", "False"}) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    folder = (ROOT / document).parent
    lost = []
    for file, anchor in LINK.findall(CODE_BLOCK.sub("", read(document))):
        target = folder / file if file else ROOT / document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(f"{file}#{anchor}" if anchor else file)
    assert lost == []


def anchors(path: Path) -> set[str]:
    """The anchors of headings, on code hosts and on the site: lower case, with hyphens."""
    headings = HEADING.findall(CODE_BLOCK.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in headings}


def test_headings_of_docstrings_stand_on_their_own_lines() -> None:
    joined = re.compile(r"^ *[A-Z]\w+ -{4,}.*$", re.MULTILINE)
    sources = sorted((ROOT / "src").rglob("*.py"))
    assert not [found for path in sources for found in joined.findall(path.read_text("utf-8"))]
