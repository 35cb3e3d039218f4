"""Tables and figures as values: marks, counts, and points from their coordinates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist

from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.results import (
    RULE,
    Cell,
    Series,
    Table,
    mark,
    points_by_label,
    scores_panel,
)
from marginfold.protocols.studies import Task

BAND = 1.5 * math.sqrt(2.0)


def sampling(printed, n_rows):
    """Standard error of a share in percent, as `RULE` has it."""
    p = printed / 100.0
    return 100.0 * math.sqrt(p * (1.0 - p) / n_rows)


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("printed", [5.0, 20.0, 50.0, 93.0])
@pytest.mark.parametrize("spread", [None, 0.0, 0.2, 0.3, 1.1])
def test_marks_change_exactly_at_their_bounds(side, printed, spread):
    n_rows = 150
    agrees, near = BAND * max(spread or 0.0, 0.3), BAND * sampling(printed, n_rows)
    assert agrees < near
    for bound, inside, outside in ((agrees, "agrees", "near"), (near, "near", "differs")):
        assert mark(printed + side * bound * (1 - 1e-9), spread, printed, n_rows) == inside
        assert mark(printed + side * bound * (1 + 1e-9), spread, printed, n_rows) == outside


def test_a_spread_wider_than_the_sampling_error_decides_alone():
    assert mark(10.0 + BAND - 1e-9, 1.0, 10.0, 10_000) == "agrees"
    assert mark(10.0 + BAND + 1e-9, 1.0, 10.0, 10_000) == "differs"


@pytest.mark.parametrize("spread", [1.5, 4.0, 40.0])
def test_numbers_more_than_three_points_apart_never_agree(spread):
    """A wide spread is no agreement: it says that nothing can be told."""
    assert mark(13.0 - 1e-9, spread, 10.0, 100) == "agrees"
    assert mark(13.0 + 1e-9, spread, 10.0, 100) == "near"
    assert mark(13.0 + 1e-9, spread, 10.0, 10_000) == "differs"


def test_more_rows_narrow_what_is_near():
    marks = [mark(24.0, 0.1, 20.0, n) for n in (100, 300, 1000, 10_000)]
    assert marks == ["near", "near", "differs", "differs"]
    assert sampling(20.0, 300) * BAND > 4.0 > sampling(20.0, 1000) * BAND


@pytest.mark.parametrize("printed", [0.0, 100.0])
def test_no_error_at_all_has_no_sampling_error(printed):
    inward = 1.0 if printed == 0.0 else -1.0
    assert mark(printed, 0.0, printed, 100) == "agrees"
    assert mark(printed + inward * 0.6, 0.0, printed, 100) == "agrees"
    assert mark(printed + inward * 0.7, 0.0, printed, 100) == "differs"


def test_errors_and_accuracies_get_the_same_mark():
    rng = np.random.default_rng(0)
    for value, printed, spread in rng.uniform([0, 0, 0], [40, 40, 2], (200, 3)):
        assert mark(value, spread, printed, 120) == mark(100 - value, spread, 100 - printed, 120)


def test_nothing_to_compare_has_no_mark():
    assert mark(None, None, 20.0, 100) == ""
    assert mark(20.0, 0.5, None, 100) == ""
    assert mark(None, None, None, 100) == ""


def test_the_rule_in_words_has_the_numbers_of_the_rule():
    numbers = ("1.5 sqrt(2)", "0.3 points", "at most 3 points", "p (1 - p) / n")
    assert all(number in RULE for number in numbers)


def a_table():
    cells = [
        Cell("wine", "PCA", 3.0, mark="agrees"),
        Cell("wine", "LDA", 4.0, mark="differs"),
        Cell("iris", "PCA", 5.0, mark="near"),
        Cell("iris", "LDA", 6.0, mark="agrees"),
        Cell("iris", "LDA (nested)", 6.5),
    ]
    return Table("demo", "I", "Errors", "error %", cells, "five folds")


def test_marks_are_counted_in_all_or_in_one_column():
    table = a_table()
    assert table.counts() == {"agrees": 2, "near": 1, "differs": 1}
    assert table.counts("PCA") == {"agrees": 1, "near": 1, "differs": 0}
    assert table.counts("LDA (nested)") == {"agrees": 0, "near": 0, "differs": 0}


def test_a_cell_is_found_by_its_place():
    assert a_table().cell("iris", "LDA").value == 6.0
    assert a_table().cell("wine", "LDA").value == 4.0


def records_of(folder, results):
    with RecordStore(folder) as store:
        store.write(Task("demo", "wine", "PCA", work=print), results, seconds=0.0)
        return store.read()


def coordinates(points, labels, rows=None):
    return [
        Result("coordinate", float(value), {"row": int(row), "label": label}, dimension=k)
        for row, point, label in zip(rows or range(len(points)), points, labels, strict=True)
        for k, value in enumerate(point, start=1)
    ]


@pytest.mark.parametrize("axes", [(1, 2), (3, 4), (4, 1)])
@pytest.mark.parametrize("names", [[0, 1, 2], ["b", "a", "c d"]])
def test_points_come_back_by_label_and_in_the_order_of_rows(tmp_path, axes, names):
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(30, 4)), [names[i] for i in rng.integers(3, size=30)]
    results = coordinates(points, labels)
    shuffled = [results[i] for i in rng.permutation(len(results))]
    found = points_by_label(records_of(tmp_path, shuffled), axes)
    assert list(found) == sorted(names)
    for label, (x, y) in found.items():
        members = np.array([own == label for own in labels])
        assert_array_equal(x, points[members, axes[0] - 1])
        assert_array_equal(y, points[members, axes[1] - 1])


def test_labels_may_share_rows(tmp_path):
    """As the rows of a picture and what is rebuilt of them."""
    results = coordinates([[1, 2], [3, 4]], ["data"] * 2)
    results += coordinates([[5, 6], [7, 8]], ["rebuilt"] * 2)
    found = points_by_label(records_of(tmp_path, results))
    assert_array_equal(found["data"], [[1, 3], [2, 4]])
    assert_array_equal(found["rebuilt"], [[5, 7], [6, 8]])


def test_a_point_of_one_dimension_lies_on_a_line(tmp_path):
    found = points_by_label(records_of(tmp_path, coordinates([[1], [2]], [0, 0])))
    assert_array_equal(found[0], [[1, 2], [0, 0]])


def test_other_metrics_and_skipped_tasks_are_no_points(tmp_path):
    results = [Result("plane", 1.0, {"label": 0}, dimension=1), Result("error", 0.1)]
    assert points_by_label(records_of(tmp_path, results)) == {}
    assert points_by_label([]) == {}


def drawn(series):
    return np.concatenate([np.column_stack([s.x, s.y]) for s in series])


@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_strongly_correlated_scores_are_turned_and_not_stretched(slope):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60)
    y = slope * x + 0.1 * rng.standard_normal(60)
    series = [Series("a", x[:30], y[:30], kind="points"), Series("b", x[30:], y[30:])]
    panel = scores_panel("LSVA", series, (3, 4))
    assert panel.xlabel == "long axis of components 3, 4"
    assert panel.ylabel == "short axis of components 3, 4"
    assert [(s.name, s.kind) for s in panel.series] == [("a", "points"), ("b", "line")]
    before, after = drawn(series), drawn(panel.series)
    assert_allclose(pdist(after), pdist(before), atol=1e-12)
    assert abs(np.corrcoef(after.T)[0, 1]) < 1e-10
    assert after[:, 0].std() > 5 * after[:, 1].std()
    assert_array_equal(series[0].x, x[:30])  # what was given is as it was


@pytest.mark.parametrize(
    "y", [np.zeros(40), np.random.default_rng(1).standard_normal(40), np.full(40, np.nan)]
)
def test_other_scores_are_drawn_as_they_are(y):
    x = np.random.default_rng(0).standard_normal(40)
    panel = scores_panel("MMDA", [Series("", x, y)])
    assert (panel.xlabel, panel.ylabel) == ("component 1", "component 2")
    assert_array_equal(panel.series[0].y, y)
    assert scores_panel("none", []).series == []


def test_a_cell_is_explained_by_a_reading_beside_it_that_agrees():
    def cell(row, column, mark, counted=True):
        return Cell(row, column, 1.0, printed=2.0, mark=mark, counted=counted)

    cells = [
        *(cell("wine", "LDA", "differs"), cell("wine", "LDA shrunk", "near", counted=False)),
        *(cell("iris", "LDA", "differs"), cell("iris", "LDA shrunk", "differs", counted=False)),
        *(cell("heart", "LDA", "near"), cell("heart", "LDA shrunk", "agrees", counted=False)),
        *(cell("sonar", "LDA", "differs"), cell("sonar", "LDA2", "agrees", counted=False)),
        cell("wine", "PCA", "differs"),
    ]
    table = Table("lsva", "I", "", "error %", cells, "")
    assert table.explained() == 1
    assert table.counts() == {"agrees": 0, "near": 1, "differs": 4}
