"""The documentation site has a place for every public name and asks no other host."""

from __future__ import annotations

import re
import runpy
import subprocess
from importlib import import_module
from pathlib import Path

import check_site
import matplotlib.pyplot as plt
import pytest

import marginfold

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SPHINX = ROOT / ".venv-docs" / "bin" / "python"
PICTURES = sorted((DOCS / "api" / "pictures").glob("*.py"))
SOURCES = sorted(
    path
    for folder in (DOCS, ROOT / "examples")
    for path in folder.rglob("*")
    if path.suffix in {".md", ".rst", ".css", ".html", ".py"}
    and not {"_build", "generated", "gallery"} & set(path.relative_to(ROOT).parts)
)
OUTSIDE = re.compile(
    r"""<(?:script|img|iframe|link)\b[^>]*(?:src|href)\s*=\s*["']?(?:https?:)?//"""
    r"""|url\(\s*["']?(?:https?:)?//|@import\s+["'](?:https?:)?//|!\[[^]]*\]\(https?://"""
    r"""|^\s*\.\. (?:image|figure)::\s*https?://""",
    re.MULTILINE,
)
"""Something that a built page would load from another host."""

CUT = 0.03
"""Inches beyond the edge of a picture that are no loss: less than the half of a letter."""


def test_every_public_name_has_one_place_in_the_reference() -> None:
    listed = re.findall(
        r"^   ([\w.]+)$", (DOCS / "api" / "index.rst").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(set(listed)) == len(listed)
    elsewhere = {name for name in listed if "." in name}
    assert {*listed} - elsewhere == {*marginfold.__all__, "errors"} - {"__version__"}
    for name in elsewhere:
        module, _, own = name.rpartition(".")
        assert own in import_module(f"marginfold.{module}").__all__


def test_every_public_class_has_a_picture() -> None:
    public = {name: getattr(marginfold, name) for name in marginfold.__all__}
    classes = {name for name, value in public.items() if isinstance(value, type)}
    drawn = {path.stem for path in PICTURES}
    assert sorted(classes - drawn) == []
    assert sorted(drawn - set(public)) == []


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("error::marginfold.errors.MarginfoldWarning")
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_a_picture_shows_its_class_with_names_and_uncut(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")  # what readers who see none are told
    plt.close("all")
    used = runpy.run_path(str(path))
    (number,) = plt.get_fignums()
    figure = plt.figure(number)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert used[path.stem] is getattr(marginfold, path.stem)
    assert axes.has_data()
    assert axes.get_xlabel() or axes.texts
    box = figure.get_tightbbox()
    assert box.min.min() > -CUT
    assert (box.max < figure.get_size_inches() + CUT).all()
    plt.close(figure)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_of_the_site_loads_from_another_host(path: Path) -> None:
    assert OUTSIDE.findall(path.read_text(encoding="utf-8")) == []


def test_every_page_is_in_the_contents() -> None:
    pages = {
        path.relative_to(DOCS).with_suffix("").as_posix()
        for path in SOURCES
        if DOCS in path.parents
        and path.suffix in {".md", ".rst"}
        and "_templates" not in path.parts
    }
    assert sorted(pages - set(contents("index"))) == []


def contents(page: str) -> list[str]:
    """The pages below one, itself included, as the tables of contents list them."""
    source = next((DOCS / f"{page}{end}" for end in (".md", ".rst") if exists(page, end)), None)
    text = source.read_text(encoding="utf-8") if source else ""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names = [name for tree in trees for name in re.findall(r"^[\w/]+$", tree, re.MULTILINE)]
    folder = Path(page).parent
    return [page, *(each for name in names for each in contents((folder / name).as_posix()))]


def exists(page: str, end: str) -> bool:
    return (DOCS / f"{page}{end}").is_file()


def test_the_configuration_is_read() -> None:
    settings = runpy.run_path(str(DOCS / "conf.py"))
    assert settings["version"] == marginfold.__version__
    assert not settings["mathjax_path"].startswith("http")
    gallery = settings["sphinx_gallery_conf"]
    assert re.search(gallery["filename_pattern"], "/examples/plot_one.py")
    assert not re.search(gallery["ignore_pattern"], "/examples/plot_one.py")
    assert re.search(gallery["ignore_pattern"], "/examples/other.py")


@pytest.mark.skipif(not SPHINX.exists(), reason="no .venv-docs here: make docs installs Sphinx")
def test_links_of_the_repository_lead_to_pages_of_the_site() -> None:
    program = """
import sys
from pathlib import Path
sys.path.insert(0, "docs/_ext")
from repository import turned
docs = Path("docs").resolve()
text = "[a](../CONTRIBUTING.md) [b](errata.md#widths) [c](https://x.org/README.md) [d](#here)"
print(turned(text, docs, docs, docs))
print(turned("[a](../docs/errata.md) [b](README.md)", docs.parent / "benchmarks", docs, docs))
"""
    done = subprocess.run([SPHINX, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[a](contributing.md) [b](errata.md#widths) [c](https://x.org/README.md) [d](#here)",
        "[a](errata.md) [b](benchmarks.md)",
    ]


PAGE = '<html><head>{head}</head><body><h1 id="top">A</h1>{body}</body></html>'


def problems(folder: Path, head: str = "", body: str = "") -> list[str]:
    (folder / "a.html").write_text(PAGE.format(head=head, body=body), encoding="utf-8")
    (folder / "b.html").write_text(PAGE.format(head="", body=""), encoding="utf-8")
    (folder / "_images").mkdir()
    (folder / "_images" / "a.svg").touch()
    pages = {path: check_site.read_page(path) for path in folder.glob("*.html")}
    return check_site.faults(folder, pages)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("", '<a href="b.html#top">b</a> <a href="#top">here</a> <a href="https://a.org">a</a>'),
        ('<link rel="canonical" href="https://a.org/">', '<img src="data:image/png;base64,AA==">'),
        ("", '<dl class="py class"></dl><img src="_images/a.svg">'),
        ("", '<dl class="py function"></dl>'),
    ],
)
def test_a_site_without_faults_passes(head: str, body: str, tmp_path: Path) -> None:
    assert problems(tmp_path, head, body) == []


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ('<script src="https://cdn.org/x.js"></script>', ""),
        ('<link rel="stylesheet" href="//cdn.org/x.css">', ""),
        ("<style>@import 'https://cdn.org/x.css';</style>", ""),
        ("<style>p { background: url(https://cdn.org/x.png) }</style>", ""),
        ("", '<img srcset="a.html 1x, https://cdn.org/x.png 2x">'),
        ("", '<img src="gone.png">'),
        ("", '<a href="gone.html">gone</a>'),
        ("", '<a href="b.html#gone">gone</a>'),
        ("", '<a href="https://">nowhere</a>'),
        ("", '<a href="javascript:alert(1)">code</a>'),
        ("", '<dl class="py class"></dl>'),
    ],
)
def test_a_fault_of_a_site_is_found(head: str, body: str, tmp_path: Path) -> None:
    (found,) = problems(tmp_path, head, body)
    assert found.startswith("a.html ")


def test_a_style_sheet_that_loads_from_another_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text("p { src: url('//cdn.org/x.woff') }", encoding="utf-8")
    assert problems(tmp_path) == ["x.css loads //cdn.org/x.woff"]


def test_the_first_page_has_the_counts_of_the_pages_it_names() -> None:
    first, reproduced, attacked = (
        (DOCS / name).read_text(encoding="utf-8")
        for name in ("index.md", "reproduction.md", "hardening.md")
    )
    counts = re.search(
        r"Of (\d+) compared cells (\d+) agree, (\d+) are near and (\d+) differ", reproduced
    )
    cases = re.search(r"(\d+) cases tried, 0 open, 0 tests failed", attacked)
    assert counts is not None
    assert cases is not None
    n, agree, near, differ = counts.groups()
    assert f"{agree} of {n} printed numbers agree, {near} are near, {differ} differ" in first
    assert f"{int(cases[1]):,} hostile cases, none open" in first
