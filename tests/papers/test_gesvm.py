"""Paper 002: its protocol against plain scikit-learn and explicit kernels, on small gesvm."""

from __future__ import annotations

import dataclasses

import literal
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from marginfold.errors import InvalidParameterError
from marginfold.estimators.gesvm import GESVC
from marginfold.feature_maps import ExactKernel
from marginfold.papers import gesvm
from marginfold.papers.gesvm import as_printed
from marginfold.papers.paper_data import rows_and_labels, split_scaled
from marginfold.protocols.cells import NOT_COMPUTED
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.run import compute, run_tasks
from marginfold.protocols.splits import Fold, folds
from marginfold.protocols.statistics import paired_interval
from marginfold.protocols.studies import STUDY_SIZES, StudySize, Task

pytestmark = pytest.mark.filterwarnings("ignore::marginfold.errors.ExhaustedWarning")

SMALL = StudySize("quick", 1, 2, 2, 1, controls=False)
WEIGHTS = [0.1, 1.0, 10.0]


def of(tasks, **columns):
    return [t for t in tasks if all(getattr(t, name) == v for name, v in columns.items())]


def first_fold(dataset):
    X, y = rows_and_labels(dataset)
    train, test = folds(y, 5, 0)[0]
    rows, new = split_scaled(X, train, test, "whole")
    return rows, y[train], new, y[test]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two methods on one set, one kernel each."""
    with RecordStore(tmp_path_factory.mktemp("run")) as store:
        tasks = of(gesvm.study_tasks(SMALL), dataset="hepatitis")
        wanted = [t for t in tasks if t.method in ("SVM", "SVM, C = 50", "Q_W", "Q_E")]
        assert run_tasks(wanted, store).failed == 0
        yield store


@pytest.mark.parametrize("size", STUDY_SIZES.values(), ids=str)
def test_the_plan(size):
    n_cells = 10 * 8 + 5 if size.controls else 10 * 6  # five small sets are read to the letter
    assert len(gesvm.study_tasks(size, "4")) == n_cells * size.n_seeds * 5
    tasks = gesvm.study_tasks(size)
    assert len({t.key for t in tasks}) == len(tasks)
    sets = {t.dataset for t in gesvm.study_tasks(size, "5")}
    assert len(sets) == (5 if size.name == "quick" else 10)
    assert ("german" in sets) == (size.name != "quick")
    at_half = of(tasks, method="SVM, C = 50")
    assert {t.protocol for t in at_half} == {"rbf"}
    assert len(at_half) == len(sets) * size.n_seeds * 5


def test_every_printed_cell_has_a_place():
    for number in gesvm.KERNELS:
        expected = {(d, m) for d in gesvm.DATASETS for m in (gesvm.PLAIN, *gesvm.GRAPHS)}
        assert set(printed(gesvm.STUDY, number)) == expected


def test_an_unknown_table_is_refused():
    with pytest.raises(InvalidParameterError, match="'3'"):
        gesvm.study_tasks(SMALL, "3")


@pytest.mark.parametrize("dataset", ["heart", "transfusion"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", gesvm.GRAPHS)
def test_the_path_is_gesvc_at_each_weight(dataset, kernel, name):
    """transfusion's linear SVM is the larger class whatever the graph."""
    split = first_fold(dataset)
    if kernel == "rbf" and dataset == "transfusion":
        split = tuple(part[:150] for part in split)
    rows, y, new, y_new = split
    graph = gesvm.GRAPHS[name]
    models = [gesvm.graph_svm(kernel, graph, weight).fit(rows, y) for weight in WEIGHTS]
    expected = [float(np.mean(model.predict(new) != y_new)) for model in models]
    assert gesvm.path_errors(kernel, graph, WEIGHTS, Fold(*split)) == expected


@pytest.mark.parametrize(
    ("method", "kernel", "C"),
    [("SVM", "linear", 100.0), ("SVM", "rbf", 100.0), ("SVM, C = 50", "rbf", 50.0)],
)
def test_the_plain_svm_is_that_of_scikit_learn(method, kernel, C):
    rows, y, new, y_new = first_fold("liver")
    task = Task("gesvm", "liver", method, kernel, 0, 0, {"folds": 5}, work=gesvm.evaluate)
    (result,) = gesvm.evaluate(task)
    svc = SVC(C=C, kernel=kernel, gamma=1.0, tol=1e-6).fit(rows, y)
    assert result.value == np.mean(svc.predict(new) != y_new)


def test_without_a_weight_a_graph_is_the_reference():
    """What the differences are taken against: the same SVM, at the same cost."""
    rows, y, new, _ = first_fold("liver")
    for kernel in ("linear", "rbf"):
        cost = gesvm.PLAIN_COSTS[gesvm.reference(kernel)]
        plain = gesvm.plain_svm(kernel, cost).fit(rows, y).decision_function(new)
        none = gesvm.graph_svm(kernel, "within", 0.0).fit(rows, y).decision_function(new)
        np.testing.assert_allclose(none, plain, atol=1e-9)


def test_the_printed_kernel_at_c_is_the_consistent_one_at_half_of_it():
    """E22, with 002 eq. (25) written out: Q1 = 1/2 K (I + lam L K)^-1."""
    rows, y, new, _ = first_fold("heart")
    weight, n = 2.0, len(y)
    K, K_new = rbf_kernel(rows, gamma=1.0), rbf_kernel(new, rows, gamma=1.0)
    within = (y[:, None] == y) / np.bincount(y)[y]
    L = np.eye(n) - within
    inverse = np.linalg.inv(np.eye(n) + weight * L @ K)
    Q = K @ inverse / 2
    svc = SVC(C=100.0, kernel="precomputed", tol=1e-8).fit((Q + Q.T) / 2, y)
    literal = svc.decision_function(K_new @ inverse / 2)
    # the library centres the kernel, which changes nothing but |w|^2 along a constant
    model = GESVC(
        C=gesvm.Q1_COST,
        kernel=ExactKernel("rbf", gamma=1.0, center=False),
        graph="within",
        graph_weight=weight,
        normalize_graph=False,
    ).fit(rows, y)
    assert np.abs(model.decision_function(new) - literal).max() < 1e-4
    paper = gesvm.graph_svm("rbf", "within", weight).fit(rows, y)
    assert np.mean(paper.predict(new) != svc.predict(K_new @ inverse / 2)) <= 1 / 54


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_to_the_letter_without_a_slip_is_the_library(kernel):
    """Explicit Q0 and Q1 of 002 eqs. (17) and (27) with a graph that has no wrong sign."""
    fold = Fold(*first_fold("heart"))
    for name in ("Q_W", "Q_L", "Q_E"):
        error = as_printed.letter_error(as_printed.Letter(name), kernel, fold)
        for weight in (0.1, 10.0):
            model = gesvm.graph_svm(kernel, gesvm.GRAPHS[name], weight).fit(fold.X, fold.y)
            wrong = np.mean(model.predict(fold.X_test) != fold.y_test)
            assert error(weight) == pytest.approx(wrong, abs=1 / len(fold.y_test) + 1e-12)


def test_slips_in_prediction_written_out():
    """K instead of Q1 for new rows, and no intercept, with multipliers of Q1."""
    rows, y, new, y_new = first_fold("heart")
    K, K_new = rbf_kernel(rows, gamma=1.0), rbf_kernel(new, rows, gamma=1.0)
    L = np.eye(len(y)) - (y[:, None] == y) / np.bincount(y)[y]
    inverse = np.linalg.inv(2 * np.eye(len(y)) + 2 * 3.0 * L @ K)
    Q = K @ inverse
    svc = SVC(C=100.0, kernel="precomputed").fit((Q + Q.T) / 2, y)
    dual = np.zeros(len(y))
    dual[svc.support_] = svc.dual_coef_[0]
    fold = Fold(rows, y, new, y_new)
    plain = K_new @ dual + svc.intercept_
    through = K_new @ inverse @ dual
    for name, values in (("Q_W plain kernel", plain), ("Q_W no intercept", through)):
        error = as_printed.letter_error(as_printed.LETTERS[name], "rbf", fold)(3.0)
        assert error == pytest.approx(np.mean((values > 0) != (y_new == 1)), abs=1e-12)


def test_the_printed_sign_of_the_lle_graph_makes_it_indefinite():
    """E25: with M of the library's own graph, D - (M + M' + M'M)."""
    rows = np.unique(first_fold("heart")[0], axis=0)
    F = np.asarray(literal.lle_weights(rows, 10))
    W = F + F.T + F.T @ F
    L = as_printed.printed_lle_laplacian(rows, 10)
    np.testing.assert_allclose(L, np.diag(W.sum(axis=1)) - W, atol=1e-9)
    assert np.linalg.eigvalsh(L)[0] < -0.1


def test_readings_to_the_letter_stand_beside_and_do_not_count(tmp_path):
    size = dataclasses.replace(STUDY_SIZES["standard"], n_seeds=1)
    with RecordStore(tmp_path) as store:
        for task in of(gesvm.study_tasks(size, "5"), dataset="heart"):
            store.write(task, [Result("error", 0.25)], seconds=0.0)
        made = {t.number: t for t in gesvm.tables(store, size)}
    cell = made["5"].cell("heart", "Q_L printed graph")
    assert (cell.printed, cell.counted) == (67.41, False)
    assert sum(made["5"].counts().values()) == 6
    assert not any("printed graph" in c.column for c in made["5, differences"].cells)


def test_the_weight_is_chosen_by_inner_folds_alone():
    fold = Fold(*first_fold("hepatitis"))
    rows, y = fold.X, fold.y
    options = {"folds": 5, "weights": WEIGHTS, "inner_folds": 3}
    task = Task("gesvm", "hepatitis", "Q_E", "linear", 0, 0, options, work=gesvm.evaluate)
    errors = np.zeros(3)
    for train, test in folds(y, 3, 0):
        for k, weight in enumerate(WEIGHTS):
            model = gesvm.graph_svm("linear", gesvm.GRAPHS["Q_E"], weight)
            errors[k] += np.mean(model.fit(rows[train], y[train]).predict(rows[test]) != y[test])
    chosen = gesvm.chosen_weight(fold, gesvm.GRAPHS["Q_E"], task)
    assert errors[WEIGHTS.index(chosen)] == pytest.approx(errors.min())
    (result,) = gesvm.evaluate(task)
    assert result.params == {"graph_weight": chosen}


def test_permuted_graphs_differ_between_folds_and_are_repeatable():
    def graph(fold):
        options = {"folds": 5, "weights": WEIGHTS, "inner_folds": 3}
        return gesvm.graph_of(
            Task("gesvm", "heart", "Q_E permuted", "linear", 1, fold, options, work=gesvm.evaluate)
        )

    rows = first_fold("heart")[0]
    same, other = graph(0).build(rows).scatter(rows), graph(1).build(rows).scatter(rows)
    np.testing.assert_array_equal(same, graph(0).build(rows).scatter(rows))
    assert np.abs(same - other).max() > 1e-3
    own = gesvm.GRAPHS["Q_E"].build(rows).scatter(rows)
    assert np.trace(same) > 1.1 * np.trace(own)


def test_a_cell_is_the_mean_over_folds(store):
    table = next(t for t in gesvm.tables(store, SMALL) if t.number == "4")
    X, y = rows_and_labels("hepatitis")
    errors = []
    for train, test in folds(y, 5, 0):
        rows, new = split_scaled(X, train, test, "whole")
        svc = SVC(C=100.0, kernel="linear", tol=1e-6).fit(rows, y[train])
        errors.append(np.mean(svc.predict(new) != y[test]))
    cell = table.cell("hepatitis", "SVM")
    assert cell.value == pytest.approx(100 - 100 * np.mean(errors))
    assert cell.printed == printed("gesvm", "4")["hepatitis", "SVM"].value
    assert cell.source["dataset"] == "hepatitis"
    assert cell.mark in ("agrees", "near", "differs")


def test_what_was_not_computed_says_so(store):
    tables = {t.number: t for t in gesvm.tables(store, SMALL)}
    assert set(tables) == {"4", "4, differences", "5", "5, differences"}
    for number in ("4", "5"):
        cell = tables[number].cell("german", "Q_W")
        assert (cell.value, cell.note, cell.mark) == (None, NOT_COMPUTED, "")
        assert cell.printed is not None
    assert "at most 400 rows" in tables["5"].protocol
    assert "C = 50" in tables["5"].protocol


@pytest.mark.parametrize(
    ("number", "kernel", "plain"), [("4", "linear", "SVM"), ("5", "rbf", "SVM, C = 50")]
)
def test_differences_are_paired_by_fold(store, number, kernel, plain):
    table = next(t for t in gesvm.tables(store, SMALL) if t.number == f"{number}, differences")
    value = {
        method: np.array([r.value for r in store.read(method=method, protocol=kernel)])
        for method in (plain, "Q_W")
    }
    interval = paired_interval(100 * (value[plain] - value["Q_W"]), 155 * 0.8, 155 * 0.2)
    cell = table.cell("hepatitis", f"Q_W - {plain}")
    assert cell.value == pytest.approx(interval.mean)
    assert cell.note.startswith(f"95 % interval {interval.low:+.2f} to {interval.high:+.2f}")
    assert table.cell("hepatitis", f"Q_B - {plain}").note == NOT_COMPUTED
    apart = sum(c.note.endswith("apart") for c in table.cells)
    assert f"{apart} of 2 cells" in table.remark
    assert not any(c.column.startswith("SVM") for c in table.cells)


def test_the_svm_at_half_the_cost_has_no_printed_number(store):
    tables = {t.number: t for t in gesvm.tables(store, SMALL)}
    cell = tables["5"].cell("hepatitis", "SVM, C = 50")
    assert (cell.printed, cell.mark) == (None, "")
    assert cell.value is not None
    assert "SVM, C = 50" not in {c.column for c in tables["4"].cells}
    assert "C = 50" in tables["5, differences"].protocol


def test_remarks_quote_the_paper_and_the_catalogue(store):
    remarks = {t.number: t.remark for t in gesvm.tables(store, SMALL)}
    for number, dataset in (("4", "hepatitis"), ("5", "german")):
        values = [p.value for (row, _), p in printed("gesvm", number).items() if row == dataset]
        _, y = rows_and_labels(dataset)
        share = 100 * np.bincount(y).max() / len(y)
        assert min(values) < share
        assert f"{min(values):.2f}" in remarks[number]
        assert f"({share:.2f})" in remarks[number]


def test_remarks_tell_own_graphs_from_permuted_ones(tmp_path):
    """Q_E gains on every fold, its permutation on none."""
    size = StudySize("standard", 2, 2, 2, 1, controls=True)
    tasks = of(gesvm.study_tasks(size, "4"), dataset="heart")
    errors = {"SVM": 0.3, "Q_E": 0.2, "Q_E permuted": 0.3}
    with RecordStore(tmp_path) as store:
        for task in tasks:
            if task.method in errors:
                noise = 0.001 * (task.fold - 2) * (task.method != "SVM")
                result = Result("error", errors[task.method] + noise)
                store.write(task, [result], seconds=0.0)
        remarks = {t.number: t.remark for t in gesvm.tables(store, size)}
    expected = "1 of 1 cells, one with its nodes permuted in 0 of 1."
    assert remarks["4, differences"].endswith(expected)


def test_nothing_computed_gives_no_table(tmp_path):
    with RecordStore(tmp_path) as store:
        assert gesvm.tables(store, SMALL) == []
        assert gesvm.figures(store, SMALL) == []


def test_a_seed_with_a_failed_fold_is_left_out_of_the_differences(tmp_path):
    tasks = of(gesvm.study_tasks(STUDY_SIZES["quick"], "4"), dataset="heart")
    with RecordStore(tmp_path) as store:
        for task in of(tasks, method="SVM") + of(tasks, method="Q_L"):
            store.write(task, [Result("error", 0.2 + 0.01 * task.fold)], seconds=0.0)
        lost = of(tasks, method="Q_L", seed=1, fold=3)[0]
        store.write(lost, [Result("none", None, reason="why")], seconds=0.0, status="failed")
        tables = {t.number: t for t in gesvm.tables(store, STUDY_SIZES["quick"])}
    assert tables["4, differences"].cell("heart", "Q_L - SVM").n_seeds == 1
    assert tables["4"].cell("heart", "Q_L").note == "why"


def test_a_data_set_that_is_absent_is_skipped_with_the_loaders_reason(tmp_path, monkeypatch):
    from marginfold.papers import paper_data as data

    monkeypatch.setenv("MARGINFOLD_DATA", str(tmp_path))
    data._load.cache_clear()
    task = of(gesvm.study_tasks(SMALL, "4"), dataset="australian")[0]
    outcome = compute(task)
    data._load.cache_clear()
    assert outcome.status == "skipped"
    assert "australian" in outcome.results[0].reason
