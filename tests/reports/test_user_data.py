"""The report of a comparison: its numbers against the records, and its names inert."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")

import pandas as pd
from compare.verdicts import around, blobs, recorded, saved
from reports.pages import read_page
from sklearn.metrics import confusion_matrix

from marginfold.compare.comparison import conclude
from marginfold.compare.importance import IMPORTANCE, REPEATS, read_importance
from marginfold.compare.methods import LARGEST_CLASS, procedure
from marginfold.compare.mistakes import held_out_answers
from marginfold.compare.runs import Comparison, weigh_columns
from marginfold.compare.table import Source
from marginfold.protocols.records import RecordStore
from marginfold.protocols.run import run_tasks
from marginfold.protocols.splits import folds
from marginfold.reports import render
from marginfold.reports.user_data import comparison_report

HOSTILE = "</svg></title><script>alert(1)</script>\"'&<img src=x onerror=alert(1)>{{ 7*7 }}"


@pytest.fixture
def store(tmp_path):
    with RecordStore(tmp_path / "run") as opened:
        yield opened


def page_of(comparison, store, **options):
    verdict = conclude(comparison, store, **options)
    return verdict, read_page(render(comparison_report(comparison, verdict, store, facts={"a": 1})))


def measured(source, store, methods=("lda", "pca", "marginmap"), n_folds=3, n_repeats=2):
    """A comparison with all that a report shows."""
    comparison = Comparison.of(source, list(methods), n_folds=n_folds, n_repeats=n_repeats)
    run_tasks(comparison.tasks(), store)
    best = conclude(comparison, store).best
    run_tasks(comparison.importance_tasks(best), store)
    return comparison


def overlapping(n=90, names=("a", "b", "c")):
    """Rows of three classes that overlap; one column holds words."""
    rng = np.random.default_rng(3)
    codes = np.arange(n) % 3
    frame = pd.DataFrame(rng.standard_normal((n, 2)) + codes[:, None], columns=["x0", "x1"])
    kinds = np.array(names, dtype=object)[codes]
    return frame.assign(hue=np.array(["red", "blue"])[rng.integers(2, size=n)], kind=kinds)


def numbers_of(page, title):
    """The body of the table with this title, as lists of texts by row name."""
    block = next(b for b in page.of_class("block") if title in b.all("h3")[0].text)
    heads = [n.text for n in block.all("thead")[0].all("th")]
    rows = {}
    for row in block.all("tbody")[0].all("tr"):
        cells = row.all("th", "td")
        rows[cells[0].of_class("text")[0].text] = dict(zip(heads, cells, strict=True))
    return rows


def test_the_plot_of_the_ranking_has_the_numbers_of_the_table(tmp_path, store):
    source = saved(blobs(40, 3, np.repeat(["a", "b"], 20)), tmp_path)
    errors = {
        "LDA": around(0.10, 0.05),
        "PCA": around(0.12, 0.05, 1),
        "MMDA": around(0.3, 0.02, 2),
        LARGEST_CLASS: around(0.5, 0.02, 3),
    }
    verdict, page = page_of(recorded(source, store, errors), store)
    table = numbers_of(page, "Every method")
    chart = page.of_class("front")[0]
    ticks = {float(t.text): float(t.attributes["x"][:-1]) for t in chart.of_class("tick")}
    slope, start = np.polyfit(list(ticks), list(ticks.values()), 1)
    shown = 0
    for dot, row in zip(chart.of_class("dot"), verdict.rows, strict=True):
        name, *_, text = (t.text for t in dot.all("text"))
        assert name == row.method
        assert float(table[name]["error %"].attributes["data-sort"]) == pytest.approx(row.error)
        assert text == f"{row.error:.1f} %"
        if row.behind is None:
            assert "best" in dot.attributes["class"]
            continue
        low, high = table[name]["more than best"].of_class("below")[0].text.split(" to ")
        for line in dot.all("line"):
            ends = [(float(line.attributes[e][:-1]) - start) / slope for e in ("x1", "x2")]
            edge = (83.0 - start) / slope
            assert ends[0] == pytest.approx(float(low), abs=0.1)
            assert ends[1] == pytest.approx(min(float(high), edge), abs=0.1)
            shown += 1
        equal = float(low) <= 0 and row.method != LARGEST_CLASS
        assert ("equal" in dot.attributes["class"].split()) is equal
    assert shown >= 2


def test_the_first_screen_says_what_where_how_and_nothing_twice(tmp_path, store):
    source = saved(blobs(40, 3, np.repeat(["a", "b"], 20)), tmp_path)
    errors = {"LDA": around(0.1), "PCA": around(0.3, seed=1), LARGEST_CLASS: 0.5}
    verdict, page = page_of(recorded(source, store, errors), store)
    header = page.all("header")[0]
    assert header.of_class("about")[0].text.startswith("This page compares 2 ways to predict the")
    assert page.all("h1")[0].text == "Which method predicts kind in t.csv?"
    assert [n.text for n in header.of_class("answer")] == list(verdict.answer)
    assert [n.text for n in header.all("code")] == [verdict.command, verdict.snippet]
    remarks = [n.text for n in header.of_class("remarks")[0].all("li")]
    assert [*verdict.answer, *remarks] == list(verdict.sentences)


def test_nothing_is_to_be_kept_where_nothing_was_learnt(tmp_path, store):
    source = saved(blobs(40, 3, np.repeat(["a", "b"], 20)), tmp_path)
    comparison = recorded(source, store, {"LDA": around(0.5), LARGEST_CLASS: around(0.5, seed=1)})
    _, page = page_of(comparison, store)
    assert page.all("pre") == []
    assert "No evidence that anything can be predicted" in page.of_class("answer")[0].text


def test_a_comparison_without_a_result_is_a_page(tmp_path, store):
    source = saved(blobs(40, 3, np.repeat(["a", "b"], 20)), tmp_path)
    comparison = Comparison.of(source, ["lda"])
    _, page = page_of(comparison, store, stopped=60.0)
    assert page.of_class("answer")[0].text.startswith("STOPPED BY THE CLOCK after 60 s")
    assert page.of_class("front") == []


def test_confusions_and_wrong_rows_are_those_of_the_answers(tmp_path, store):
    """Rows are numbered as in the file, of which rows without a class were left out."""
    frame = overlapping()
    frame.loc[[0, 7, 20], "kind"] = None
    source = saved(frame, tmp_path, drop_missing=True)
    comparison = measured(source, store)
    verdict, page = page_of(comparison, store)
    answers = held_out_answers(comparison, store, verdict.best)
    table = numbers_of(page, "Confusion matrix")
    expected = confusion_matrix(answers.labels, answers.said)
    found = [[int(table[name][other].text.replace("·", "0")) for other in "abc"] for name in "abc"]
    assert found == expected.tolist()
    for k, name in enumerate("abc"):
        share = 100 * (1 - expected[k, k] / expected[k].sum())
        assert table[name]["error %"].text == f"{share:.1f}"
    always = numbers_of(page, "always wrong")
    right = set(answers.rows[answers.labels == answers.said])
    wrong = sorted(set(answers.rows) - right)
    kept = np.flatnonzero(frame["kind"].notna())
    assert [int(row) for row in always] == [kept[row] + 1 for row in wrong][:20]
    for row, cells in always.items():
        assert cells["class"].text == frame["kind"][int(row) - 1]
        assert cells["answered"].text != cells["class"].text
        assert cells["held out"].text == "2"


def test_the_importance_of_columns_is_the_literal_loop_on_the_table(tmp_path, store):
    source = saved(overlapping(), tmp_path)
    comparison = Comparison.of(source, ["lda"], n_folds=3, n_repeats=1)
    (task,) = comparison.importance_tasks("LDA")
    found = {
        (r.params["column"], r.params["shuffle"]): r.value
        for r in weigh_columns(task, source=source)
    }
    rows = source.read()
    train, test = folds(rows.labels, 3, 0)[0]
    X, X_test = rows.encoded(train, test)
    model = procedure("lda", rows.size).fit(X, rows.labels[train])
    before = np.mean(model.predict(X_test) != rows.labels[test])
    rng = np.random.default_rng(0)
    expected = {}
    for name in rows.frame.columns:
        for shuffle in range(REPEATS):
            held_out = rows.frame.iloc[test].copy()
            held_out[name] = held_out[name].to_numpy()[rng.permutation(len(test))]
            encoded = rows.encoder(train)(held_out)
            wrong = model.predict(encoded) != rows.labels[test]
            expected[name, shuffle] = np.mean(wrong) - before
    assert found == pytest.approx(expected, abs=1e-12)
    assert {name for name, _ in found} == {"x0", "x1", "hue"}  # columns of the table


def test_the_columns_that_matter_most_are_shown_with_their_spread(tmp_path, store):
    comparison = measured(saved(overlapping(), tmp_path), store, ["lda"])
    _, page = page_of(comparison, store)
    chart = next(b for b in page.of_class("block") if "Columns that matter" in b.all("h3")[0].text)
    records = store.read(protocol=IMPORTANCE)
    found = read_importance("LDA", records)
    assert [c.mean for c in found.columns] == sorted((c.mean for c in found.columns), reverse=True)
    for dot, column in zip(chart.of_class("dot"), found.columns, strict=True):
        values = [100 * r.value for r in records if r.params["column"] == column.column]
        assert column.mean == pytest.approx(np.mean(values))
        assert column.spread == pytest.approx(np.std(values, ddof=1))
        name, text = (t.text for t in dot.all("text"))
        assert (name, text) == (column.column, f"{column.mean:+.1f}")


def test_a_wide_table_says_why_its_columns_are_not_weighed(tmp_path, store):
    source = saved(blobs(40, 1001, np.repeat(["a", "b"], 20)), tmp_path)
    comparison = Comparison.of(source, ["lda"], n_folds=2, n_repeats=1)
    run_tasks(comparison.fold_tasks() + comparison.importance_tasks("LDA"), store)
    _, page = page_of(comparison, store)
    said = "Which columns matter most is not shown: the table has 1001 columns: shuffling each"
    assert said in page.text


def test_names_and_cells_of_a_table_never_become_markup(tmp_path, store):
    """Names of the file, of columns, of the target and of classes; the page loads nothing."""
    frame = overlapping(names=(HOSTILE, f"b{HOSTILE}", "c"))
    frame = frame.rename(columns={"x0": f"x{HOSTILE}", "hue": f"h{HOSTILE}", "kind": HOSTILE})
    path = tmp_path / "<b>a&b<script>.csv"
    frame.to_csv(path, index=False)
    comparison = measured(Source(str(path), HOSTILE), store)
    _, page = page_of(comparison, store)
    assert len(page.all("script")) == 1
    assert page.all("img") == []
    assert page.all("b", "link", "iframe", "object", "form") == []
    for node in page.all():
        assert not any(name.startswith("on") for name in node.attributes)
        assert node.attributes.get("href", "#").startswith("#")
        assert "src" not in node.attributes
    titles = [n.text for n in page.all("title")]
    assert any(re.fullmatch(r"row \d+: " + re.escape(HOSTILE), title) for title in titles)
    assert page.all("h1")[0].text == f"Which method predicts {HOSTILE} in {path.name}?"


def test_maps_have_all_held_out_rows_and_the_anchors_of_the_margin_map(tmp_path, store):
    comparison = measured(saved(overlapping(), tmp_path), store)
    _, page = page_of(comparison, store)
    maps = page.of_class("map")
    assert len(maps) == 3
    table = comparison.source.read()
    _, test = folds(table.labels, 3, 0)[0]
    expected = {f"row {row + 1}: {table.labels[row]}" for row in test}
    for one in maps:
        assert {use.all("title")[0].text for use in one.all("use")} == expected
    (anchored,) = page.of_class("square")
    assert len(anchored.of_class("anchor")) == 3
    assert {t.text for t in anchored.of_class("class")} == {"a", "b", "c"}


def test_folds_and_queries_are_folded_away(tmp_path, store):
    comparison = measured(saved(overlapping(), tmp_path), store, ["lda"])
    _, page = page_of(comparison, store)
    folded = page.of_class("folded")[0]
    assert "The rows were dealt into 3 parts, 2 times anew." in folded.text
    assert len(folded.all("tbody")[0].all("tr")) == 2 * 3 * 2  # LDA and the largest class
    unfolded = page.text
    for details in page.all("details"):
        unfolded = unfolded.replace(details.text, "")
    assert "SELECT" not in unfolded
