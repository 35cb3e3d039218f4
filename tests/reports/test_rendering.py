"""The page: self-contained, inert whatever is in it, traceable, and the same each time."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from reports.pages import read_page

from marginfold.compare.pictures import MapPoint
from marginfold.errors import InvalidInputError
from marginfold.reports import (
    Code,
    Column,
    Entry,
    Grid,
    Picture,
    Report,
    Section,
    render,
    write_report,
)
from marginfold.reports.charts import N_COLOURS, N_SHAPES, Dot, dot_plot, map_plot

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><path d="M0 0"/></svg>'
HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)> \"'&{{ 7*7 }}"
TEXTS = {
    *("title", "desc", "code"),
    *("h1", "h2", "h3", "p", "li", "dt", "dd", "th", "td", "figcaption"),
}
LOADING = {"src", "srcset", "data", "poster", "background", "action", "formaction"}


def report_of(text="plain"):
    """A report with every kind of part, and the same text wherever there is text."""
    source = {"study": text, "dataset": "wine", "records": 12, "seeds": 3}
    columns = [Column(text, numeric=False, help=text), Column(text), Column("none", help="h")]
    rows = [
        [Entry(text), Entry("1.5", 1.5, "agrees", text, source, text), Entry("2")],
        [Entry("b"), Entry(text, None, text, text, {**source, "dataset": "sonar"}), Entry(text)],
        [Entry("c"), Entry("1.5", 1.5, "differs", source=source), Entry("", float("nan"))],
    ]
    footer = [[Entry(text), Entry("1 / 0 / 1"), Entry("")]]
    grid = Grid(text, columns, rows, text, footer, {text: text})
    picture = Picture(text, text, SVG, source)
    dots = [Dot(text, 0.0, 0.0, 0.0, text, "best"), Dot(text, 9.0, 1.0, 12.0, text)]
    ranking = dot_plot(dots, title=text, caption=text, axis=text, limits=(-1, 5), source=source)
    points = [MapPoint(0.0, 1.0, text, 1), MapPoint(0.5, 0.0, "~", 2)]
    plain = map_plot(points, title=text, caption=text, source=source)
    anchored = map_plot(points, title=text, caption=text, anchors={text: (1.0, 0.0)})
    sections = [
        Section(text, [text, text], [grid, picture, plain, anchored], text, n_open=3),
        Section("Last", [], [grid], folded=True),
    ]
    return Report(
        *(text, [text], sections, {text: text, "seeds": 3}, text),
        about=text,
        answer=[text, text],
        code=[Code(text, text)],
        front=ranking,
    )


@pytest.mark.parametrize("text", ["plain", HOSTILE])
def test_the_page_is_well_formed_and_loads_nothing(text):
    page = read_page(render(report_of(text)))
    loaded = [
        (node.tag, name, value)
        for node in page.all()
        for name, value in node.attributes.items()
        if name in LOADING and not value.startswith("data:")
    ]
    assert loaded == []
    assert page.all("link", "iframe", "object", "embed", "form", "base") == []
    style = page.all("style")[0].text
    assert "url(" not in style
    assert "@import" not in style


def test_only_its_own_script_may_run():
    page = read_page(render(report_of(HOSTILE)))
    (script,) = page.all("script")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    policies = [
        node.attributes["content"]
        for node in page.all("meta")
        if node.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    (policy,) = policies
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == "'unsafe-inline'"
    assert rules["img-src"] == "data:"
    assert rules["script-src"] == f"'sha256-{digest}'"


def test_hostile_text_is_shown_and_never_becomes_an_element():
    plain, hostile = (read_page(render(report_of(text))) for text in ("plain", HOSTILE))
    assert [n.tag for n in plain.all()] == [n.tag for n in hostile.all()]
    assert [sorted(n.attributes) for n in plain.all()] == [
        sorted(n.attributes) for n in hostile.all()
    ]
    texts = [n.text.replace("''", "'") for n in hostile.all() if n.tag in TEXTS]  # quoted in SQL
    plain_texts = [n.text for n in plain.all() if n.tag in TEXTS]
    assert [HOSTILE in text for text in texts] == ["plain" in text for text in plain_texts]
    assert any(HOSTILE in text for text in texts)
    drawn = {n.text.rstrip("…") for n in hostile.all("text")} - {"~", "▸"}
    assert all(HOSTILE.startswith(text) or text.strip("+-").isdigit() for text in drawn)


def test_links_lead_to_places_of_the_page_alone():
    page = read_page(render(report_of()))
    addresses = {n.attributes["href"] for n in page.all("a")}
    assert all(a.startswith("#") for a in addresses)
    names = [n.attributes["id"] for n in page.all() if "id" in n.attributes]
    assert len(names) == len(set(names))
    assert {a[1:] for a in addresses} <= set(names)


def test_sections_with_equal_titles_have_their_own_anchors():
    sections = [Section("A b", anchor=a) for a in ("", "", "origin", "A b", "A-b-2", "ü")]
    page = read_page(render(Report("r", sections=sections, facts={"a": 1})))
    names = [n.attributes["id"] for n in page.all("section")]
    assert len(set(names)) == len(names) == 7
    contents = [n.attributes["href"][1:] for n in page.all("nav")[0].all("a")]
    assert contents == names


def test_the_contents_list_every_section_and_block():
    page = read_page(render(report_of()))
    links = page.all("nav")[0].all("a")
    expected = [*["plain"] * 5, "Last", "plain", "How this report came about"]
    assert [n.text for n in links] == expected


def test_headings_and_cells_say_how_they_sort():
    table = read_page(render(report_of())).all("table")[0]
    assert "data-sortable" in table.attributes
    heads = table.all("thead")[0].all("th")
    assert [n.attributes["aria-sort"] for n in heads] == ["none"] * 3
    assert ["data-numeric" in n.attributes for n in heads] == [False, True, True]
    rows = [row.all("th", "td") for row in table.all("tbody")[0].all("tr")]
    keys = [[n.attributes.get("data-sort") for n in row] for row in rows]
    assert keys == [["plain", "1.5", "2.0"], ["b", None, None], ["c", "1.5", None]]
    assert all(row[0].tag == "th" and row[0].attributes["scope"] == "row" for row in rows)


@pytest.mark.parametrize(
    ("sort", "expected"), [(1e-7, 1e-7), (float("inf"), None), (-float("inf"), None), (0, 0.0)]
)
def test_numbers_are_written_as_the_script_reads_them(sort, expected):
    grid = Grid("g", [Column("a", numeric=False), Column("b")], [[Entry("r"), Entry("t", sort)]])
    page = read_page(render(Report("r", sections=[Section("s", blocks=[grid])])))
    key = page.all("td")[0].attributes["data-sort"]
    assert key in ("Infinity", "-Infinity") if expected is None else float(key) == expected


def test_every_source_is_in_the_page_once_and_every_traced_number_leads_to_it():
    page = read_page(render(report_of()))
    block = page.of_class("block")[0]
    listed = {n.attributes["id"]: n.text for n in block.of_class("sources")[0].all("li")}
    traced = [n for n in block.all("a") if "data-source" in n.attributes]
    assert [n.text for n in traced] == ["1.5", "plain", "1.5"]
    reached = [listed[n.attributes["href"][1:]] for n in traced]
    assert len(listed) == 2
    assert reached[0] == reached[2] != reached[1]
    assert "WHERE study = 'plain' AND dataset = 'wine' (12 records, 3 seeds)" in reached[0]
    assert "dataset = 'sonar'" in reached[1]
    picture = page.of_class("picture")[0]
    assert "dataset = 'wine'" in picture.of_class("sources")[0].text


def test_a_mark_is_a_word_and_a_symbol_and_not_colour_alone():
    marks = [n.text.strip() for n in read_page(render(report_of())).of_class("mark")]
    assert marks == ["✓ agrees", "plain", "✗ differs"] * 2


def test_pictures_are_images_of_the_given_drawing_with_words_beside_them():
    (image,) = read_page(render(report_of())).all("img")
    kind, _, content = image.attributes["src"].partition(";base64,")
    assert kind == "data:image/svg+xml"
    assert base64.b64decode(content).decode() == SVG
    assert image.attributes["alt"] == "plain"


def test_the_page_is_made_for_phones_darkness_and_paper():
    html = render(report_of())
    page = read_page(html)
    metas = {
        n.attributes.get("name"): n.attributes["content"]
        for n in page.all("meta")
        if "name" in n.attributes
    }
    assert metas["viewport"] == "width=device-width, initial-scale=1"
    style = page.all("style")[0].text
    for rule in ("prefers-color-scheme: dark", "@media print", "overflow-x: auto", "sticky"):
        assert rule in style
    boxes = page.of_class("box")
    assert len(boxes) == 7
    assert all(box.attributes["tabindex"] == "0" for box in boxes)
    used = set(re.findall(r"var\((--\w+)\)", style))
    assert used == set(re.findall(r"(--\w+):", style))


def test_without_script_nothing_is_missing_and_nothing_is_dead():
    page = read_page(render(report_of()))
    assert page.all("button") == []
    assert all("hidden" in n.attributes and not n.text for n in page.of_class("trace"))


def test_the_same_report_is_the_same_bytes():
    assert render(report_of()) == render(report_of())


def test_an_empty_report_is_a_page():
    page = read_page(render(Report("nothing")))
    assert page.all("h1")[0].text == "nothing"
    assert page.all("section") == []


def test_a_row_of_another_length_is_refused():
    with pytest.raises(InvalidInputError, match="2 columns and a row of 1 entries"):
        Grid("g", [Column("a"), Column("b")], [[Entry("1")]])


@pytest.mark.parametrize("svg", ["", "<p>no drawing</p>", "<svg></svg>"])
def test_a_picture_that_would_not_show_is_refused(svg):
    with pytest.raises(InvalidInputError, match="SVG"):
        Picture("p", "", svg)


def test_a_report_is_written_whole_and_replaced_only_when_asked(tmp_path):
    path = tmp_path / "report.html"
    write_report(report_of(), path)
    assert path.read_bytes() == render(report_of()).encode()
    with pytest.raises(InvalidInputError, match="exists"):
        write_report(Report("other"), path)
    assert path.read_bytes() == render(report_of()).encode()
    write_report(Report("other"), path, overwrite=True)
    assert path.read_bytes() == render(Report("other")).encode()
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"no folder .*absent"):
        write_report(Report("r"), tmp_path / "absent" / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_text_that_is_no_unicode_can_be_written(tmp_path):
    write_report(Report("broken \udc80 name"), tmp_path / "r.html")
    assert "name" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_first_screen_is_what_the_page_is_then_the_answer_the_code_and_the_chart():
    header = read_page(render(report_of())).all("header")[0]
    assert header.children[0].attributes["class"] == "about"
    places = [n.attributes.get("class") for n in header.all("p", "pre", "svg", "ul")]
    order = ["about", "answer", "answer", "label", "box", "label", "chart dots"]
    assert places[: len(order)] == order
    assert places[-1] == "remarks"


def test_charts_have_a_name_and_a_description():
    page = read_page(render(report_of()))
    charts = page.of_class("chart")
    assert len(charts) == 3
    parts = {n.attributes["id"]: n for n in page.all("title", "desc") if "id" in n.attributes}
    for chart in charts:
        assert chart.attributes["role"] == "img"
        title, description = chart.attributes["aria-labelledby"].split()
        assert (parts[title].tag, parts[description].tag) == ("title", "desc")
        assert parts[title].text
        assert parts[description].text


def test_shapes_and_colours_of_a_chart_are_those_of_the_page():
    page = read_page(render(report_of()))
    names = {n.attributes["id"] for n in page.all() if "id" in n.attributes}
    used = {n.attributes["href"][1:] for n in page.all("use")}
    assert used
    assert used <= names
    style = page.all("style")[0].text
    colours = {f"c{k}" for k in range(N_COLOURS)}
    assert colours == set(re.findall(r"\.(c\d)\b", style))
    assert {f"m{k}" for k in range(N_SHAPES)} <= names


def test_folded_parts_are_in_the_page_and_open_without_a_script():
    page = read_page(render(report_of()))
    (folded,) = page.of_class("folded")
    assert folded.tag == "details"
    assert folded.all("summary")[0].text == "Last"
    assert len(folded.all("table")) == 1
    (more,) = page.of_class("more")
    assert more.all("summary")[0].text == "Show 1 more"
    assert len(more.of_class("chart")) == 1
