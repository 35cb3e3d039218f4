"""A paper's tables beside ours: every number, mark, count and reason reaches the reader."""

from __future__ import annotations

import re

import pytest
from reports.pages import read_page

from marginfold.protocols.results import RULE, Cell, Figure, Panel, Series, Table
from marginfold.reports import Report, markdown, paper_section, render
from marginfold.reports.tables import agreement

REASON = "the data set sonar | is not here"


def table_of(unit="error %", **changes):
    source = {"study": "lsva", "dataset": "wine", "method": "LSVA", "records": 40}
    cells = [
        Cell("wine", "LSVA", 12.345, 0.678, 5, 12.0, 0.5, 7.0, 9, "agrees", source=source),
        Cell("wine", "PCA", 20.0, None, 1, 25.0, mark="near", source=source),
        Cell("wine", "LSVA (nested)", 13.0, 1.0, 5, dimension=6.5),
        Cell("sonar", "LSVA", printed=16.97, note=REASON),
        Cell("sonar", "PCA", 9.0, 0.1, 5, 30.0, mark="differs", note=REASON),
    ]
    values = {
        "study": "lsva",
        "number": "I",
        "title": "Errors_of *all*",
        "unit": unit,
        "cells": cells,
        "protocol": "5 folds, 5 seeds.",
        "remark": "Partitions differ.",
        "errata": ("E7", "E9"),
    }
    return Table(**{**values, **changes})


def figure_of():
    panel = Panel("p", [Series("A", [1, 2], [1.0, 2.0])])
    return Figure("lsva", "2", "Lines", "A caption.", [panel], source={"study": "lsva"})


def grid_of(table):
    return paper_section([table], [], title="Paper").blocks[0]


def test_cells_hold_ours_and_printed_with_spread_and_dimension():
    grid = grid_of(table_of())
    assert [c.name for c in grid.columns] == ["data", "LSVA", "PCA", "LSVA (nested)"]
    wine, sonar = grid.rows
    assert [e.text for e in wine] == ["wine", "12.35 ± 0.68 (7)", "20.00", "13.00 ± 1.00 (6.5)"]
    assert [e.below for e in wine] == ["", "printed 12.00 ± 0.50 (9)", "printed 25.00", ""]
    assert [e.mark for e in wine] == ["", "agrees", "near", ""]
    assert [e.sort for e in wine[1:]] == [12.345, 20.0, 13.0]
    assert [e.text for e in sonar] == ["sonar", "–", "9.00 ± 0.10", "–"]
    assert [e.below for e in sonar] == ["", "printed 16.97\nnote 1", "printed 30.00\nnote 1", ""]


def test_numbers_that_are_no_percentages_keep_their_digits():
    cells = [Cell("n", "a", 0.0012345, printed=12345.0)]
    entry = grid_of(table_of(unit="seconds", cells=cells)).rows[0][1]
    assert (entry.text, entry.below) == ("0.00123", "printed 1.23e+04")


@pytest.mark.parametrize(
    ("number", "title"),
    [
        ("IV", "Table IV: T (ratio)"),
        ("3, nested", "Table 3, nested: T (ratio)"),
        ("Confusion", "Confusion: T (ratio)"),
        ("figure 2, in numbers", "Figure 2, in numbers: T (ratio)"),
    ],
)
def test_only_tables_of_the_paper_are_numbered(number, title):
    assert grid_of(table_of(number=number, title="T", unit="ratio")).title == title


@pytest.mark.parametrize("unit", ["error %", "accuracy %", "% of folds", "points"])
def test_percentages_have_two_decimals(unit):
    assert grid_of(table_of(unit, cells=[Cell("n", "a", 0.0)])).rows[0][1].text == "0.00"


def test_a_cell_says_on_how_many_seeds_it_rests_and_from_which_records():
    wine = grid_of(table_of()).rows[0]
    assert "mean of 5 seeds" in wine[1].title
    assert "one seed, so no spread" in wine[2].title
    assert wine[1].source == {**table_of().cells[0].source, "seeds": 5}
    assert wine[3].source == {}


def test_counts_stand_below_their_columns_and_in_words():
    grid = grid_of(table_of())
    assert [[e.text for e in row] for row in grid.footer] == [
        ["agree / near / differ", "1 / 0 / 0", "0 / 1 / 1", ""]
    ]
    assert grid.facts["Agreement"] == "Of 3 compared cells 1 agrees, 1 is near and 1 differs."
    assert agreement([table_of()] * 2) == "Of 6 compared cells 2 agree, 2 are near and 2 differ."


def test_a_table_without_printed_numbers_is_not_counted():
    grid = grid_of(table_of(cells=[Cell("wine", "PCA", 1.0)]))
    assert grid.footer == []
    assert grid.legend == ""
    assert grid.facts["Agreement"] == "No cell has a mark."


def test_rule_protocol_remark_and_reasons_are_there():
    grid = grid_of(table_of())
    assert RULE in grid.legend
    assert grid.facts["Protocol"] == "5 folds, 5 seeds."
    assert grid.facts["Differences"] == "Partitions differ. Errata: E7, E9."
    assert [text for name, text in grid.facts.items() if name.startswith("Note")] == [REASON]


def test_a_table_says_what_was_fitted_to_print_and_what_honest_choices_give():
    table = table_of(fitted="The width.", honest="LSVA 14.00 instead of 12.35.")
    facts = grid_of(table).facts
    assert facts["Fitted to print"] == "The width."
    assert facts["Chosen honestly"] == "LSVA 14.00 instead of 12.35."
    assert "\n\nFitted to print: The width.\n\nChosen honestly: LSVA" in markdown([table])
    assert not {"Fitted to print", "Chosen honestly"} & grid_of(table_of()).facts.keys()


def test_a_table_without_remark_and_errata_says_nothing_of_differences():
    assert "Differences" not in grid_of(table_of(remark="", errata=())).facts


def test_a_section_holds_all_tables_then_all_figures():
    section = paper_section([table_of(), table_of(number="II")], [figure_of()], title="LSVA")
    assert (section.title, section.anchor) == ("LSVA", "lsva")
    assert section.paragraphs == ["Of 6 compared cells 2 agree, 2 are near and 2 differ."]
    assert [b.title for b in section.blocks] == [
        "Table I: Errors_of *all* (error %)",
        "Table II: Errors_of *all* (error %)",
        "Figure 2: Lines",
    ]
    assert section.blocks[2].source == {"study": "lsva"}
    assert paper_section([], [], title="Nothing yet").blocks == []


def test_all_of_it_reaches_the_page():
    report = Report("r", sections=[paper_section([table_of()], [figure_of()], title="LSVA")])
    page = read_page(render(report))
    table = page.all("table")[0]
    assert "12.35 ± 0.68 (7)" in table.text
    assert len(page.all("img")) == 1
    for words in (REASON, "Partitions differ.", "5 folds, 5 seeds.", RULE):
        assert words in page.text


def test_markdown_has_the_same_numbers_in_a_table_that_holds():
    text = markdown([table_of()])
    lines = [line for line in text.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert widths == {5}
    assert lines[2] == (
        "| wine | 12.35 ± 0.68 (7)<br>12.00 ± 0.50 (9) ✓ agrees | 20.00<br>25.00 ≈ near "
        "| 13.00 ± 1.00 (6.5) |"
    )
    assert lines[3].startswith("| sonar | – <sup>1</sup><br>16.97 |")
    assert lines[4] == "| *agree / near / differ* | 1 / 0 / 0 | 0 / 1 / 1 |  |"
    assert "### lsva, Table I: Errors\\_of \\*all\\* (error %)" in text
    assert "Partitions differ. Errata: [E7](errata.md), [E9](errata.md)." in text
    assert "<sup>1</sup> the data set sonar \\| is not here" in text
    assert text.count("1.5 sqrt(2) max(s, 0.3 points)") == 1


@pytest.mark.parametrize("label", ["<script>", "a|b", "line\nbreak", "`code`", "[x](y)"])
def test_labels_are_no_markup_in_markdown(label):
    text = markdown([table_of(cells=[Cell(label, label, 1.0)])])
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 3
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}
    assert not re.search(r"(?<!\\)[`\[]|(?<!\\)<script", lines[2])


def test_no_tables_are_no_text():
    assert markdown([]) == ""
