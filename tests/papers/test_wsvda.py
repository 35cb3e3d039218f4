"""Paper 001: its folds, its settings and its numbers, against plain scikit-learn code."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.svm import SVC

from marginfold.errors import InvalidParameterError
from marginfold.papers import wsvda
from marginfold.papers.wsvda import curve
from marginfold.papers.wsvda.runs import (
    HEADS,
    NESTED,
    PAIR_VARIANTS,
    PICTURE_METHODS,
    PROBLEMS,
    VARIANTS,
    evaluate,
    rows_of,
    separable,
    size_of,
    study_tasks,
    windows,
)
from marginfold.protocols.cells import NOT_COMPUTED
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.run import compute, run_tasks
from marginfold.protocols.studies import StudySize, Task, study_size

TINY = StudySize("tiny", 1, 1, 1, 1, controls=True)

HEADS_OF_SKLEARN = {
    "KNN": lambda: KNeighborsClassifier(5),
    "NC": NearestCentroid,
}


def run(folder, size, keep):
    """Run the planned tasks that are wanted; return the open store."""
    store = RecordStore(folder)
    summary = run_tasks([task for task in study_tasks(size) if keep(task)], store)
    assert summary.failed == 0
    return store


def wine_1v2():
    """Return the rows of classes 1 and 2 from scikit-learn, scaled by one factor."""
    X, y = load_wine(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    return 2 * (X - X.min()) / (X.max() - X.min()) - 1, y


# --------------------------------------------------------------------------------------------
# The plan
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["quick", "standard"])
def test_the_plan_has_every_fold_of_every_column(name):
    size = study_size(name)
    n_folds = {row: problem.n_folds for row, problem in PROBLEMS.items()}
    everything = sum(n_folds.values())
    known = everything - n_folds["splice"]  # whose folds are unknown, and both scalings the same
    expected = 6 * (everything * size.n_seeds + 2 * known)
    expected += len(VARIANTS) * (known + n_folds["splice"] * size.n_seeds)
    expected += len(NESTED) * everything * size.n_seeds * size.controls
    assert len(study_tasks(size, "3")) == expected
    n_columns = len(PICTURE_METHODS) + len(PAIR_VARIANTS["WSVDA"]) - 1
    pictures = len(PICTURE_METHODS) + n_columns * n_folds["sonar"] * size.n_seeds
    assert len(study_tasks(size, "figure 2")) == pictures
    assert len(study_tasks(size)) == expected + pictures  # the curves are those of the table
    keys = {task.key for task in study_tasks(size)}
    for figure in ("figure 3", "figure 4"):
        assert {task.key for task in study_tasks(size, figure)} < keys


def test_an_unknown_table_is_refused():
    with pytest.raises(InvalidParameterError, match="figure 9"):
        study_tasks(TINY, "figure 9")


# --------------------------------------------------------------------------------------------
# The rows and the folds
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_are_those_of_the_catalogue(name):
    X, y = rows_of(name)
    assert len(X) == len(y) == size_of(name)
    assert set(y) == {0, 1}


def test_a_pair_of_wine_is_that_of_scikit_learn():
    X, y = load_wine(return_X_y=True)
    ours, sides = rows_of("wine 1v3")
    assert_array_equal(ours, X[y != 1])
    assert_array_equal(sides, y[y != 1] // 2)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if PROBLEMS[name].sizes])
def test_windows_train_on_the_sizes_and_test_on_the_rest(name):
    problem, (_, y) = PROBLEMS[name], rows_of(name)
    found = windows(y, problem.n_folds, problem.sizes)
    assert len(found) == problem.n_folds
    for train, test in found:
        assert_array_equal(np.bincount(y[train]), problem.sizes)
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))


def test_windows_of_equal_folds_are_stratified_folds_in_order():
    _, y = rows_of("heart")
    problem = PROBLEMS["heart"]
    ours = windows(y, problem.n_folds, problem.sizes)
    for (train, test), (rest, fold) in zip(
        ours, StratifiedKFold(problem.n_folds).split(y, y), strict=True
    ):
        assert_array_equal(train, fold)
        assert_array_equal(test, rest)


@pytest.mark.parametrize("name", ["sonar", "wine 1v2", "wine 1v3", "wine 2v3", "heart"])
def test_printed_accuracies_are_whole_numbers_of_test_rows(name):
    """The evidence for the sizes: two printed decimals leave room for few denominators."""
    problem = PROBLEMS[name]
    total = problem.n_folds * (size_of(name) - sum(problem.sizes))
    values = [cell.value for (row, _), cell in printed("wsvda", "3").items() if row == name]
    counts = np.array(values) * total / 100
    assert_allclose(100 * np.round(counts) / total, values, atol=0.00501)


# --------------------------------------------------------------------------------------------
# Numbers
# --------------------------------------------------------------------------------------------


def test_columns_of_wine_1v2_with_plain_scikit_learn(tmp_path):
    """KNN, NC, SVM, PCA and LDA again, without any of our code but the windows; and the paper's."""
    X, y = wine_1v2()
    splits = windows(y, 5, (12, 15))
    maps = {
        "": [None],
        "PCA+": [PCA(k) for k in range(1, 14)],
        "LDA+": [LinearDiscriminantAnalysis(solver="svd")],
    }
    expected = {"SVM": _accuracy(X, y, splits, None, lambda: SVC(C=1.0, kernel="linear"))}
    for prefix, reducers in maps.items():
        for head, make in HEADS_OF_SKLEARN.items():
            means = [_accuracy(X, y, splits, reducer, make) for reducer in reducers]
            expected[prefix + head] = max(means)

    wanted = ("rows", "SVM", "PCA", "LDA")
    with run(
        tmp_path,
        TINY,
        lambda task: (
            task.dataset == "wine 1v2"
            and task.method in wanted
            and task.protocol == "in order, global"
        ),
    ) as store:
        table = wsvda.tables(store, TINY)[0]
    assert (table.number, table.unit) == ("3", "accuracy %")
    for column, value in expected.items():
        cell = table.cell("wine 1v2", column)
        assert cell.value == pytest.approx(value, abs=1e-9), column
        assert cell.printed == printed("wsvda", "3")["wine 1v2", column].value
        assert abs(cell.value - cell.printed) < 0.00501  # the paper's, to its last digit
        assert cell.mark == "agrees"
    assert table.cell("wine 1v2", "WSVDA+KNN").note == NOT_COMPUTED


def _accuracy(X, y, splits, reducer, make):
    shares = []
    for train, test in splits:
        rows, new = X[train], X[test]
        if reducer is not None:
            fitted = reducer.fit(rows, y[train])
            rows, new = fitted.transform(rows), fitted.transform(new)
        shares.append(make().fit(rows, y[train]).score(new, y[test]))
    return 100 * np.mean(shares)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("heart", "KNN NC SVM PCA+KNN PCA+NC LDA+KNN LDA+NC MMDA+KNN MMDA+NC"),
        ("sonar", "KNN NC SVM PCA+KNN PCA+NC LDA+KNN LDA+NC MMDA+KNN"),
        (
            "wine 1v3",
            "KNN NC SVM PCA+KNN PCA+NC LDA+KNN LDA+NC MMDA+KNN MMDA+NC WSVDA+KNN WSVDA+NC",
        ),
    ],
)
def test_printed_numbers_come_out_to_the_last_digit(tmp_path, name, columns):
    columns = columns.split()
    methods = {column.rpartition("+")[0] or column for column in columns} | {"rows"}
    protocol = f"in order, {PROBLEMS[name].scaling}"
    with run(
        tmp_path,
        TINY,
        lambda task: (task.dataset, task.protocol) == (name, protocol) and task.method in methods,
    ) as store:
        table = wsvda.tables(store, TINY)[0]
    for column in columns:
        cell = table.cell(name, column)
        assert abs(cell.value - cell.printed) < 0.00501, column


def test_units_decide_over_wine(tmp_path):
    """Errata E18: scaled by feature, KNN alone parts classes 1 and 3."""
    with run(
        tmp_path,
        TINY,
        lambda task: (
            task.dataset == "wine 1v3" and task.method == "rows" and "in order" in task.protocol
        ),
    ) as store:
        tables = {table.number: table for table in wsvda.tables(store, TINY)}
    assert tables["3"].cell("wine 1v3", "KNN").value < 90
    assert tables["3, other scaling"].cell("wine 1v3", "KNN").value > 99
    assert tables["3, other scaling"].cell("wine 1v3", "KNN").printed is None


def test_nested_choice_is_no_better_than_the_choice_on_test_rows(tmp_path):
    with run(
        tmp_path,
        TINY,
        lambda task: (
            (task.dataset, task.method) == ("wine 1v2", "PCA") and "in order" not in task.protocol
        ),
    ) as store:
        tables = {table.number: table for table in wsvda.tables(store, TINY)}
    table = tables["3, random folds"]
    for head in HEADS:
        honest = table.cell("wine 1v2", f"PCA+{head} (nested)").value
        assert honest <= table.cell("wine 1v2", f"PCA+{head}").value + 1e-9


def test_a_fold_with_too_few_rows_for_the_nested_choice_is_skipped_with_a_reason():
    options = {"folds": 30, "scaling": "global", "C": 1.0, "ridge": 1e-8, "class_weight": None}
    task = Task("wsvda", "wine 2v3", "PCA", "nested, global", 0, 0, options, work=evaluate)
    outcome = compute(task)
    assert outcome.status == "skipped"
    assert "3 inner folds" in outcome.results[0].reason


def test_without_records_there_is_neither_table_nor_figure(tmp_path):
    with RecordStore(tmp_path) as store:
        assert wsvda.tables(store, TINY) == []
        assert wsvda.figures(store, TINY) == []


# --------------------------------------------------------------------------------------------
# Figures
# --------------------------------------------------------------------------------------------


def test_figure_2_shows_the_first_window_of_sonar(tmp_path):
    X, y = rows_of("sonar")
    train = windows(y, 10, (11, 10))[0][0]
    low, high = X.min(axis=0), X.max(axis=0)
    rows = (2 * (X - low) / (high - low) - 1)[train]
    reference = PCA(6).fit_transform(rows)
    with run(tmp_path, TINY, lambda task: task.protocol in ("picture", "pairs")) as store:
        figure = wsvda.figures(store, TINY)[0]
        table = wsvda.tables(store, TINY)[-1]
    assert (figure.number, figure.n_columns, len(figure.panels)) == ("2", 3, 12)
    assert [panel.title for panel in figure.panels[::3]] == list(PICTURE_METHODS)
    for panel, pair in zip(figure.panels[:3], ((0, 1), (2, 3), (4, 5)), strict=True):
        for side, series in enumerate(panel.series):
            members = y[train] == side
            assert_allclose(series.x, rows[members, pair[0]], atol=1e-12)
            assert_allclose(series.y, rows[members, pair[1]], atol=1e-12)
    x = np.concatenate([series.x for series in figure.panels[9].series])
    by_class = np.concatenate([reference[y[train] == side, 0] for side in (0, 1)])
    assert_allclose(np.abs(x), np.abs(by_class), atol=1e-9)
    assert table.number == "figure 2, in numbers"
    assert table.cell("1, 2", "initial data").value == 0.0


def test_curves_are_means_over_the_paper_s_folds_and_their_tops_are_table_3(tmp_path):
    def wanted(task):
        return (task.dataset, task.method, task.protocol) == ("heart", "PCA", "in order, whole")

    with run(tmp_path, TINY, wanted) as store:
        table = wsvda.tables(store, TINY)[0]
        records = store.read(metric="error")
        figure = wsvda.figures(store, TINY)[0]
    assert figure.number == "3"
    assert [panel.title for panel in figure.panels] == ["heart, KNN", "heart, NC"]
    series = figure.panels[1].series[0]
    third = [r.value for r in records if r.dimension == 3 and r.params["head"] == "centroid"]
    assert len(third) == 5
    assert series.y[2] == pytest.approx(100 - 100 * np.mean(third))
    assert series.spread is None  # of one partition
    for panel, head in zip(figure.panels, ("KNN", "NC"), strict=True):
        cell = table.cell("heart", f"PCA+{head}")
        assert panel.series[0].y.max() == pytest.approx(cell.value)
        assert cell.value == pytest.approx(cell.printed, abs=0.005)


def test_a_curve_ends_where_a_fold_does(tmp_path):
    options = {"folds": 2}
    with RecordStore(tmp_path) as store:
        for fold, n in enumerate((3, 2)):
            task = Task("wsvda", "heart", "PCA", "x", 0, fold, options, work=evaluate)
            store.write(task, _errors(n), seconds=0.0)
        assert_allclose(curve(store.read()), [[90.0, 80.0]])
        task = Task("wsvda", "heart", "PCA", "x", 0, 2, options, work=evaluate)
        store.write(task, _errors(0), seconds=0.0)
        assert curve(store.read()).size == 0


def _errors(n):
    found = [Result("error", 0.1 * k, {"head": "5-nn"}, k) for k in range(1, n + 1)]
    return found or [Result("error", None, reason="no direction carries anything")]


@pytest.mark.parametrize("seed", range(5))
def test_separable_agrees_with_trying_all_directions(seed):
    """Projections change their order only at normals to pairs of points: try between them."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 8)
    for gap in (0.0, 1.0, 4.0):
        points = rng.normal(size=(16, 2)) + np.outer(y, [gap, 0.0])
        i, j = np.triu_indices(16, 1)
        turns = np.sort((np.arctan2(*(points[i] - points[j]).T[::-1]) + np.pi / 2) % np.pi)
        between = (turns + np.append(turns[1:], turns[0] + np.pi)) / 2
        along = points @ np.stack([np.cos(between), np.sin(between)])
        first, second = along[y == 0], along[y == 1]
        apart = (first.max(axis=0) < second.min(axis=0)) | (second.max(axis=0) < first.min(axis=0))
        assert separable(points * [1.0, 1e-4], y) == apart.any()


def pairs_of(method):
    """Return the tasks of one partition that say which pairs a method parts."""
    return [task for task in study_tasks(TINY) if (task.method, task.protocol) == (method, "pairs")]


def test_a_missing_component_parts_nothing(tmp_path):
    """Of ten folds nine part the second pair and one has no fourth component."""
    tasks = pairs_of("MMDA")
    with RecordStore(tmp_path) as store:
        for task in tasks:
            missing = task.fold == 3
            results = [
                Result("separable", 1.0, {"pair": "1, 2"}),
                Result("separable", None, {"pair": "3, 4"}, reason="fewer components")
                if missing
                else Result("separable", 1.0, {"pair": "3, 4"}),
                Result("separable", None, {"pair": "5, 6"}, reason="fewer components"),
            ]
            store.write(task, results, seconds=0.0)
        (table,) = wsvda.tables(store, TINY)
    shares = [table.cell(pair, "MMDA").value for pair in ("1, 2", "3, 4", "5, 6")]
    assert_allclose(shares, [100.0, 90.0, 0.0])
    notes = [table.cell(pair, "MMDA").note for pair in ("1, 2", "3, 4", "5, 6")]
    assert [note.partition(" folds")[0] for note in notes] == ["", "in 1 of 10", "in 10 of 10"]
    assert "all 10 folds" in table.protocol


def test_a_failed_fold_leaves_no_share(tmp_path):
    """That a method failed says nothing of what it would have parted."""
    tasks = pairs_of("MMDA")
    with RecordStore(tmp_path) as store:
        for task in tasks[1:]:
            pairs = [Result("separable", 1.0, {"pair": pair}) for pair in ("1, 2", "3, 4", "5, 6")]
            store.write(task, pairs, seconds=0.0)
        failed = [Result("none", None, reason="why")]
        store.write(tasks[0], failed, seconds=0.0, status="failed")
        for task in pairs_of("PCA"):
            store.write(task, pairs, seconds=0.0)
        (table,) = wsvda.tables(store, TINY)
    assert table.cell("1, 2", "PCA").value == 100.0
    assert (table.cell("1, 2", "MMDA").value, table.cell("1, 2", "MMDA").note) == (None, "why")


def test_no_printed_cell_is_counted_twice(tmp_path):
    protocol = f"in order, {PROBLEMS['wine 1v2'].scaling}"
    tasks = [
        task
        for task in study_tasks(TINY, "3")
        if (task.dataset, task.method, task.protocol) == ("wine 1v2", "WSVDA", protocol)
    ]
    with RecordStore(tmp_path) as store:
        assert run_tasks(tasks, store).failed == 0
        tables = {table.number: table for table in wsvda.tables(store, TINY)}
    again = tables["3, open settings"].cell("wine 1v2", "WSVDA+KNN")
    assert again.mark == tables["3"].cell("wine 1v2", "WSVDA+KNN").mark != ""
    assert again.printed == printed("wsvda", "3")["wine 1v2", "WSVDA+KNN"].value
    assert sum(tables["3, open settings"].counts().values()) == 0
    assert sum(tables["3"].counts().values()) == 2


def test_remarks_count_who_is_ahead(tmp_path):
    """WSVDA ahead with KNN, behind with NC; in print ahead with both."""
    errors = {("WSVDA", "5-nn"): 0.1, ("WSVDA", "centroid"): 0.3}
    with RecordStore(tmp_path) as store:
        for task in study_tasks(TINY, "3"):
            shuffled = task.protocol.startswith("shuffled")
            if shuffled and task.dataset == "sonar" and task.method in ("WSVDA", "MMDA"):
                found = [
                    Result("error", errors.get((task.method, head), 0.2), {"head": head}, 1)
                    for head in HEADS.values()
                ]
                store.write(task, found, seconds=0.0)
        (table,) = wsvda.tables(store, TINY)
    numbers = printed("wsvda", "3")
    in_print = sum(
        numbers["sonar", f"WSVDA+{head}"].value > numbers["sonar", f"MMDA+{head}"].value
        for head in HEADS
    )
    expected = f"ahead of MMDA in 1 of 2 places, in print in {in_print} of them."
    assert table.remark.endswith(expected)
