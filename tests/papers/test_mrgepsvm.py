"""Paper 003: protocols, times, digits and planes, on small runs."""

from __future__ import annotations

import literal_planes
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from marginfold.data import cross_planes
from marginfold.errors import InvalidParameterError, SolverError
from marginfold.papers import mrgepsvm
from marginfold.papers import paper_data as data
from marginfold.papers.mrgepsvm import line_ends, methods, runs
from marginfold.papers.paper_data import rows_and_labels, scaled_fold, split_scaled
from marginfold.protocols.cells import NOT_COMPUTED
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.run import compute, run_tasks
from marginfold.protocols.splits import folds
from marginfold.protocols.studies import STUDY_SIZES, Skip, StudySize

pytestmark = pytest.mark.filterwarnings("ignore::marginfold.errors.ExhaustedWarning")

SMALL = StudySize("quick", 1, 2, 2, 1, controls=True)
PLAIN = StudySize("quick", 2, 2, 2, 1, controls=False)


def of(tasks, **columns):
    return [t for t in tasks if all(getattr(t, name) == v for name, v in columns.items())]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """GEPSVM and the SVM on one set by both protocols, times of one set, the figures."""
    with RecordStore(tmp_path_factory.mktemp("run")) as store:
        tasks = [
            task
            for task in of(runs.study_tasks(SMALL, "1"), dataset="hepatitis")
            if task.method in ("GEPSVM", "SVM")
        ]
        tasks += of(runs.study_tasks(SMALL, "4"), dataset="sonar")
        tasks += runs.study_tasks(SMALL, "figure 5") + runs.study_tasks(SMALL, "figure 6")
        assert run_tasks(tasks, store).failed == 0
        yield store


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINFOLD_DATA", str(tmp_path))
    data._load.cache_clear()
    yield
    data._load.cache_clear()


@pytest.mark.parametrize("size", STUDY_SIZES.values(), ids=str)
def test_the_plan(size):
    n = size.n_seeds
    tuned, nested = 5 * n, 5 * n * size.controls  # four printed columns and an untuned one
    sizes = {"1": 6 * (tuned + 5 * nested), "2": 3 * (tuned + 6 * nested), "3": 9, "4": 9}
    sizes |= {"5": 35 * n * (2 if size.name == "full" else 1), "figure 5": 2, "figure 6": 1}
    assert {name: len(runs.study_tasks(size, name)) for name in sizes} == sizes
    tasks = runs.study_tasks(size)
    assert len({task.key for task in tasks}) == len(tasks) == sum(sizes.values())


def test_every_printed_cell_has_a_place():
    rows = {"1": runs.DATASETS["1"], "2": runs.DATASETS["2"], "3": runs.TIMED_DATASETS}
    rows |= {"4": runs.TIMED_DATASETS, "5": [runs.row_name(n) for n in runs.LABELLED]}
    for number, names in rows.items():
        columns = runs.DIGIT_METHODS if number == "5" else methods.PRINTED
        expected = {(row, column) for row in names for column in columns}
        assert set(printed("mrgepsvm", number)) == expected


def test_an_unknown_table_is_refused():
    with pytest.raises(InvalidParameterError, match="figure 4"):
        runs.study_tasks(SMALL, "figure 4")


@pytest.mark.parametrize("number", ["1", "2", "3", "4"])
def test_an_unknown_scale_is_refused(number):
    with pytest.raises(InvalidParameterError, match="'tiny'"):
        runs.study_tasks(StudySize("tiny", 1, 1, 1, 1, controls=False), number)


@pytest.mark.parametrize("size", STUDY_SIZES)
def test_grids_are_powers_of_two_within_the_printed_range(size):
    for kernel in ("linear", "rbf"):
        grid = methods.grid(kernel, size)
        assert all(min(tried) >= -9 and max(tried) <= 9 for tried in grid.values())
        found = methods.candidates("MRGEPSVM", grid)
        sizes = [sum(abs(np.log2(v)) for v in params.values()) for params in found]
        assert sizes == sorted(sizes)
        assert len({tuple(params.items()) for params in found}) == len(found)
        assert ("gamma" in found[0]) == (kernel == "rbf")


def test_parameters_without_a_solution_are_not_chosen(monkeypatch):
    def error(method, params, split, setting):
        if params["ridge"] == 1.0:
            raise SolverError("no")
        return 1.0 if params["ridge"] > 1 else 0.9

    monkeypatch.setattr(methods, "error", error)
    split = (np.zeros((1, 1)),) * 4
    assert methods.chosen("GEPSVM", {"ridge": [-3, 0, 3]}, [split]) == {"ridge": 0.125}


def test_the_paper_s_protocol_written_out(store):
    """A linear SVM: cost chosen on a tenth of all rows, accuracy on five folds of all rows."""
    X, y = rows_and_labels("hepatitis")
    means = np.nanmean(X, axis=0)
    X = np.where(np.isnan(X), means, X)
    X = 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1
    rest, tuning = folds(y, 10, 0)[0]
    costs = [2.0**i for i in (-3, 3, -9, 9)]
    scores = [
        SVC(kernel="linear", C=C).fit(X[rest], y[rest]).score(X[tuning], y[tuning]) for C in costs
    ]
    C = costs[int(np.argmax(scores))]
    accuracy = [
        SVC(kernel="linear", C=C).fit(X[train], y[train]).score(X[test], y[test])
        for train, test in folds(y, 5, 0)
    ]
    table = mrgepsvm.tables(store, SMALL)[0]
    cell = table.cell("hepatitis", "SVM")
    assert table.number == "1"
    assert cell.value == pytest.approx(100 * np.mean(accuracy))
    assert cell.printed == printed("mrgepsvm", "1")["hepatitis", "SVM"].value


def test_the_nested_protocol_never_sees_test_rows(store):
    """A fold's record, written out with the training rows alone."""
    X, y = rows_and_labels("hepatitis")
    train, test = folds(y, 5, 0)[2]
    own = X[train]
    tried = methods.candidates("GEPSVM", methods.grid("linear", "quick"))
    errors = []
    for params in tried:
        inner = []
        for fit, check in folds(y[train], 3, 0):
            rows, new = split_scaled(own, fit, check, "train")
            model = methods.estimator("GEPSVM", params).fit(rows, y[train][fit])
            inner.append(np.mean(model.predict(new) != y[train][check]))
        errors.append(np.mean(inner))
    params = tried[int(np.argmin(errors))]
    rows, new = split_scaled(X, train, test, "train")
    wrong = np.mean(methods.estimator("GEPSVM", params).fit(rows, y[train]).predict(new) != y[test])
    (record,) = store.read(method="GEPSVM", protocol="linear, nested", fold=2)
    assert record.params == params
    assert record.value == pytest.approx(wrong)


def test_nested_columns_stand_beside_without_a_printed_number(store):
    table = mrgepsvm.tables(store, SMALL)[0]
    cell = table.cell("hepatitis", "GEPSVM (nested)")
    records = store.read(method="GEPSVM", protocol="linear, nested")
    assert cell.value == pytest.approx(100 - 100 * np.mean([r.value for r in records]))
    assert cell.printed is None
    assert table.cell("votes", "SVM").note == NOT_COMPUTED


def test_the_planes_are_the_printed_ones():
    model = methods.estimator("MRGEPSVM", {"ridge": 2.0, "graph_weight": 4.0, "gamma": 0.5})
    shown = model.get_params(deep=False)
    assert not shown["normalize"]
    assert (shown["manifold"], shown["tikhonov"]) == ("denominator", "dual")
    assert (shown["ridge"], shown["graph_weight"], shown["kernel"].gamma) == (2.0, 4.0, 0.5)
    assert (shown["graph"].mode, shown["graph"].n_neighbors, shown["graph"].width) == (
        "mutual",
        7,
        2.0,
    )
    other = methods.estimator("MRGEPSVM numerator", {"ridge": 2.0, "graph_weight": 4.0})
    assert (other.manifold, other.kernel) == ("numerator", "linear")
    for method in ("MRGEPSVM rkhs", "GEPSVM rkhs"):
        model = methods.estimator(method, {"ridge": 2.0, "graph_weight": 4.0, "gamma": 0.5})
        assert (model.tikhonov, model.normalize) == ("rkhs", False)


def test_times_are_ratios_within_one_record_set(store):
    table = next(t for t in mrgepsvm.tables(store, SMALL) if t.number == "4")
    assert table.unit == "ratio"
    seconds = {r.params["method"]: r.value for r in store.read(metric="seconds")}
    numbers = printed("mrgepsvm", "4")
    for method in ("MRGEPSVM", "TSVM", "SVM"):
        cell = table.cell("sonar", f"{method} / GEPSVM")
        assert cell.value == pytest.approx(seconds[method] / seconds["GEPSVM"])
        ratio = numbers["sonar", method].value / numbers["sonar", "GEPSVM"].value
        assert cell.printed == pytest.approx(ratio)
        same = (cell.value > 1) == (ratio > 1)
        assert cell.note.startswith("same side" if same else "other side")
        assert cell.mark == ""
    assert table.errata == ("E44",)
    same = sum(cell.note.startswith("same side") for cell in table.cells)
    assert table.remark.startswith(f"On the printed side of GEPSVM are {same} of 3 ratios;")


def test_large_sets_are_subsampled_with_the_rbf_kernel_only():
    task = of(runs.study_tasks(SMALL, "3"), dataset="sonar")[0]
    fewer = type(task)(
        *(task.study, task.dataset, task.method, task.protocol, task.seed, task.fold),
        {"repeats": 1, "largest": 50},
        work=task.work,
    )
    assert {r.params["rows"] for r in runs.measure_times(fewer)} == {50}
    linear = of(runs.study_tasks(SMALL, "4"), dataset="sonar")[0]
    assert {r.params["rows"] for r in runs.measure_times(linear)} == {208}


def test_times_of_absent_data_are_skipped_with_a_reason(no_data, tmp_path):
    task = of(runs.study_tasks(SMALL, "3"), dataset="ida_banana")[0]
    outcome = compute(task)
    assert outcome.status == "skipped"
    with RecordStore(tmp_path / "run") as store:
        run_tasks([task], store)
        table = next(t for t in mrgepsvm.tables(store, SMALL) if t.number == "3")
    cell = table.cell("ida_banana", "SVM / GEPSVM")
    assert cell.value is None
    assert "ida_banana" in cell.note
    assert cell.printed is not None


def test_digits_are_drawn_by_class_and_training_images_are_nested():
    y = np.repeat([0, 1, 2], 40)
    few, rest = runs.drawn(y, 30, 5, seed=3)
    more, _ = runs.drawn(y, 30, 9, seed=3)
    assert np.bincount(y[few]).tolist() == [5, 5, 5]
    assert np.bincount(y[rest]).tolist() == [25, 25, 25]
    assert not set(few) & set(rest)
    assert set(few) <= set(more)
    assert set(runs.drawn(y, 30, 5, seed=4)[0]) != set(few)


def test_a_class_with_too_few_images_is_a_reason_to_skip():
    with pytest.raises(Skip, match="110 rows"):
        runs.drawn(np.repeat([0, 1], 50), 110, 10, seed=0)


@pytest.mark.parametrize("method", [*runs.DIGIT_METHODS, "GEPSVM one against rest"])
def test_digits_are_measured_on_other_images(method, monkeypatch):
    """Three digits of scikit-learn's set stand in for USPS."""
    X, y = load_digits(n_class=3, return_X_y=True)
    monkeypatch.setattr(runs, "rows_and_labels", lambda name: (X, y))
    task = of(runs.digit_tasks(PLAIN), method=method, protocol="l = 10")[0]
    (result,) = runs.measure_digits(task)
    assert 0 <= result.value < 0.15
    n_tested = 3 * 100
    assert result.value * n_tested == pytest.approx(round(result.value * n_tested))


def test_planes_of_digits_are_those_of_each_pair_written_out():
    X, y = load_digits(n_class=4, return_X_y=True)
    X, params = X / 8 - 1, {"ridge": 0.125, "gamma": 1 / X.shape[1]}
    rows, labels, new = X[::6], y[::6], X[1::6]
    kernels = (rbf_kernel(Z, rows, gamma=params["gamma"]) for Z in (rows, new))
    space = literal_planes.kernel_space(*kernels, "rkhs")
    options = {"ridge": params["ridge"], "normalize": False, "multiclass": "one_vs_one"}
    planes = literal_planes.gepsvm(space, labels, **options)
    distances = np.column_stack([plane.distances_new for plane in planes])
    model = methods.estimator("GEPSVM", params, runs.DIGIT_SETTING).fit(rows, labels)
    assert len(planes) == len(model.planes_) == 12
    np.testing.assert_array_equal(model.predict(new), literal_planes.votes(distances, 4))
    rest = methods.estimator("GEPSVM one against rest", params, runs.DIGIT_SETTING)
    assert len(rest.fit(rows, labels).planes_) == 4


def test_digits_by_defaults_are_those_of_libsvm_on_grey_values_from_0_to_1(monkeypatch):
    X, y = load_digits(n_class=3, return_X_y=True)
    X = np.column_stack([X, np.zeros((len(X), 256 - X.shape[1]))])
    monkeypatch.setattr(runs, "rows_and_labels", lambda name: (X, y))
    task = of(runs.digit_tasks(PLAIN), method="SVM defaults", protocol="l = 10")[0]
    train, test = runs.drawn(y, 110, 10, task.seed)
    svc = SVC(C=1.0, gamma="auto").fit(X[train] / 16, y[train])
    (result,) = runs.measure_digits(task)
    assert result.value == pytest.approx(1 - svc.score(X[test] / 16, y[test]))


@pytest.mark.parametrize(("number", "column"), [("1", "GEPSVM 2^-9"), ("2", "SVM defaults")])
def test_what_was_not_tuned_stands_beside_the_printed_number_and_does_not_count(
    number, column, tmp_path
):
    tasks = of(runs.study_tasks(PLAIN, number), dataset="hepatitis", method=column)
    X, y = rows_and_labels("hepatitis")
    with RecordStore(tmp_path) as store:
        assert run_tasks(tasks, store).failed == 0
        (table,) = mrgepsvm.tables(store, PLAIN)
    cell = table.cell("hepatitis", column)
    params = {"ridge": 2.0**-9} if number == "1" else {"C": 1.0, "gamma": 1 / X.shape[1]}
    errors = [
        methods.error(column.split()[0], params, scaled_fold(X, y, train, test, "whole"))
        for seed in PLAIN.seeds
        for train, test in folds(y, 5, seed)
    ]
    assert cell.value == pytest.approx(100 * (1 - np.mean(errors)))
    assert cell.printed == printed("mrgepsvm", number)["hepatitis", column.split()[0]].value
    assert cell.mark
    assert not cell.counted


def test_digits_without_data_are_skipped(no_data):
    outcome = compute(next(iter(runs.digit_tasks(PLAIN))))
    assert outcome.status == "skipped"
    assert "usps" in outcome.results[0].reason


def test_figure_5_shows_rows_planes_and_accuracy(store):
    (figure,) = mrgepsvm.figures(store, SMALL)
    assert figure.number == "5"
    cross = cross_planes()
    for panel, method in zip(figure.panels, runs.PLANE_METHODS, strict=True):
        model = methods.estimator(method, runs.PLANE_PARAMS).fit(cross.X, cross.y)
        score = 100 * model.score(cross.X, cross.y)
        assert panel.title == f"{method}: {score:.1f} % correct"
        assert score > 90
        points, lines = panel.series[:2], panel.series[2:]
        found = np.vstack([np.column_stack([s.x, s.y]) for s in points])
        np.testing.assert_allclose(found, cross.X)
        for line, plane in zip(lines, model.planes_, strict=True):
            heights = np.column_stack([line.x, line.y]) @ plane.normal + plane.offset
            np.testing.assert_allclose(heights, 0.0, atol=1e-9)
            assert np.ptp(line.x) > 1


@pytest.mark.parametrize("normal", [(1.0, 0.0), (0.0, -2.0), (0.6, 0.8), (-3.0, 3.0)])
def test_ends_of_a_line_lie_on_it(normal):
    ends = line_ends(np.array(normal), 0.4, 1.5)
    np.testing.assert_allclose(ends @ np.array(normal) + 0.4, 0.0, atol=1e-12)
    assert np.linalg.norm(ends[0] - ends[1]) >= 3.0


def test_figure_6_is_a_record_of_why_not(store):
    (record,) = store.read(protocol="figure 6")
    assert (record.status, record.value) == ("skipped", None)
    assert "not published" in record.reason
    assert "6" not in {figure.number for figure in mrgepsvm.figures(store, SMALL)}


def test_nothing_computed_gives_nothing(tmp_path):
    with RecordStore(tmp_path) as store:
        assert mrgepsvm.tables(store, SMALL) == []
        assert mrgepsvm.figures(store, SMALL) == []


def test_a_failed_method_keeps_its_reason(tmp_path):
    task = of(runs.study_tasks(SMALL, "2"), dataset="liver", method="TSVM")[0]
    other = of(runs.study_tasks(SMALL, "2"), dataset="liver", method="SVM")[0]
    with RecordStore(tmp_path) as store:
        reason = "SolverError: no"
        store.write(task, [Result("none", None, reason=reason)], seconds=0.0, status="failed")
        store.write(other, [Result("error", 0.3)], seconds=0.0)
        table = next(t for t in mrgepsvm.tables(store, SMALL) if t.number == "2")
    assert table.cell("liver", "TSVM").note == "SolverError: no"
    assert table.cell("liver", "SVM").value == pytest.approx(70.0)


ONE_SEED = StudySize("quick", 1, 2, 2, 1, controls=False)


def first(number, dataset, method):
    """Return the first task of a cell."""
    tasks = mrgepsvm.study_tasks(ONE_SEED, number)
    return next(t for t in tasks if (t.dataset, t.method) == (dataset, method))


def test_a_remark_names_the_sets_on_which_the_printed_planes_are_below_ours(tmp_path):
    numbers = printed("mrgepsvm", "1")
    gains = {"sonar": 20.0, "votes": 0.1, "heart": -20.0}
    with RecordStore(tmp_path) as store:
        for dataset, gain in gains.items():
            task = first("1", dataset, "GEPSVM")
            error = 1 - (numbers[dataset, "GEPSVM"].value + gain) / 100
            store.write(task, [Result("error", error)], seconds=0.0)
        (table,) = mrgepsvm.tables(store, ONE_SEED)
    assert "GEPSVM is below ours on sonar, as if" in table.remark


def test_the_remark_on_the_rbf_kernel_quotes_the_paper_and_the_catalogue(tmp_path):
    task = first("2", "liver", "SVM")
    with RecordStore(tmp_path) as store:
        store.write(task, [Result("error", 0.3)], seconds=0.0)
        (table,) = mrgepsvm.tables(store, ONE_SEED)
    _, y = rows_and_labels("liver")
    share = 100 * np.bincount(y).max() / len(y)
    value = printed("mrgepsvm", "2")["liver", "SVM"].value
    assert abs(value - share) < 1.0
    assert f"({value:.2f})" in table.remark
    assert f"({share:.2f})" in table.remark
