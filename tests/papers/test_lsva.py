"""Paper 000: a printed cell by plain loops, the plan, and tables made of records alone."""

from __future__ import annotations

import dataclasses

import literal_embeddings
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from marginfold import LSVA
from marginfold.data import load
from marginfold.errors import InvalidParameterError
from marginfold.graphs import NeighborGraph
from marginfold.papers import lsva
from marginfold.papers.lsva import BINARY, FIGURES, MULTICLASS, TABLES
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.run import run_tasks
from marginfold.protocols.studies import STUDY_SIZES

SMALL = dataclasses.replace(STUDY_SIZES["quick"], n_seeds=1)
"""One partition with the grids of the quick scale."""


@pytest.fixture
def store(tmp_path):
    with RecordStore(tmp_path) as opened:
        yield opened


def chosen(tasks, **columns):
    return [t for t in tasks if all(getattr(t, name) == v for name, v in columns.items())]


def literal_llsva(X, y, weights):
    """Table I by the words of 000 section IV: the least error over weights and dimensions."""
    X = MinMaxScaler((-1, 1)).fit_transform(X)
    errors = np.zeros((len(weights), X.shape[1]))
    splits = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    for i, weight in enumerate(weights):
        for train, test in splits:
            model = LSVA(
                X.shape[1],
                C=100.0,
                graph=NeighborGraph(10, width=2.0),
                graph_weight=weight,
                normalize_graph=False,
                class_weight=None,
                deflation="orthogonal",
                on_exhausted="pca",
            ).fit(X[train], y[train])
            rows, new = model.transform(X[train]), model.transform(X[test])
            errors[i, rows.shape[1] :] = np.inf
            for k in range(rows.shape[1]):
                head = KNeighborsClassifier(1).fit(rows[:, : k + 1], y[train])
                errors[i, k] += np.mean(head.predict(new[:, : k + 1]) != y[test]) / 5
    return 100 * errors.min(), errors.min(axis=0).argmin() + 1


@pytest.mark.filterwarnings("ignore::marginfold.errors.ExhaustedWarning")
def test_a_cell_of_table_one_is_that_of_plain_loops(store):
    tasks = chosen(lsva.study_tasks(SMALL, "I"), dataset="heart", method="LLSVA", protocol="paper")
    assert len(tasks) == 5
    run_tasks(tasks, store)
    (table,) = lsva.tables(store, SMALL)
    cell = table.cell("heart", "LLSVA")
    heart = load("heart")
    value, dimension = literal_llsva(heart.X, heart.y, np.geomspace(0.1, 100, 5))
    assert cell.value == pytest.approx(value, abs=1e-9)
    assert cell.dimension == dimension > 1
    beside = printed("lsva", "I")["heart", "LLSVA"]
    assert (cell.printed, cell.printed_dimension) == (beside.value, beside.dimension)


def test_the_plan_holds_every_cell_once_and_a_table_holds_its_share():
    for size in STUDY_SIZES.values():
        tasks = lsva.study_tasks(size)
        assert len({task.key for task in tasks}) == len(tasks)
        parts = [lsva.study_tasks(size, name) for name in (*TABLES, *FIGURES)]
        assert {t.key for t in tasks} == {t.key for part in parts for t in part}
    quick = lsva.study_tasks(STUDY_SIZES["quick"], "I")
    assert {t.dataset for t in quick} == set(BINARY)
    assert len(quick) == len(BINARY) * len(TABLES["I"][1]) * 5 * STUDY_SIZES["quick"].n_seeds
    assert {t.protocol for t in quick} == {"paper"}
    controls = lsva.study_tasks(STUDY_SIZES["standard"], "III")
    assert {t.dataset for t in controls} == set(MULTICLASS)
    assert "LLSVA permuted graph" in {t.method for t in controls}
    assert {t.protocol for t in controls} == {"paper", "nested"}


def test_identities_of_tasks_stay_as_they_are():
    """Records of earlier runs are found again: a change here orphans them."""
    (task,) = chosen(
        lsva.study_tasks(STUDY_SIZES["full"], "I"),
        dataset="heart",
        method="LLSVA",
        protocol="nested",
        seed=0,
        fold=0,
    )
    plain = {"scale": "full", "folds": 5, "head": "1-nn", "inner_folds": 3}
    assert task.options == plain | {"on_exhausted": "pca"}
    assert task.key == "39bed987751007baa13a6fa2"


@pytest.mark.parametrize("table", ["V", "i", "figure 3", "1"])
def test_a_table_that_the_paper_does_not_have_is_refused(table):
    with pytest.raises(InvalidParameterError, match="choose from 'I', 'II'"):
        lsva.study_tasks(STUDY_SIZES["quick"], table)


def test_every_printed_number_has_a_place():
    """Rows and columns of the tables are those of the printed ones."""
    for number, (rows, columns) in TABLES.items():
        places = {(row, column) for row in rows for column in columns}
        assert printed("lsva", number).keys() <= places


def first_fold(name):
    """Rows scaled on all of them, as 000 section IV has it, of the first fold of seed 0."""
    data = load(name)
    X, y = MinMaxScaler((-1, 1)).fit_transform(data.X), np.unique(data.y, return_inverse=True)[1]
    train, test = next(iter(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)))
    return X[train], y[train], X[test], y[test]


def first_task(dataset, method):
    tasks = lsva.study_tasks(SMALL, "II" if dataset in BINARY else "IV")
    return chosen(tasks, dataset=dataset, method=method, fold=0)[0]


@pytest.mark.parametrize("method", ["KLSVA sign", "KMMDA sign"])
def test_the_sign_is_that_of_an_svm_with_the_kernel_of_eq_20(method):
    """K B^-1 K of eq. (20) at the first component is K (I + lam L K)^-1, written out."""
    rows, y, new, y_new = first_fold("heart")
    gamma = 1 / rows.shape[1]
    K, K_new = rbf_kernel(rows, gamma=gamma), rbf_kernel(new, rows, gamma=gamma)
    L = literal_embeddings.knn(rows, 10, width=2.0)
    for result in lsva.runs.evaluate_sign(first_task("heart", method)):
        weight = result.params.get("graph_weight", 0.0)
        inverse = np.linalg.inv(np.eye(len(y)) + weight * L @ K)
        Q = K @ inverse
        svc = SVC(C=100.0, kernel="precomputed", tol=1e-8).fit((Q + Q.T) / 2, y)
        error = np.mean(svc.predict(K_new @ inverse) != y_new)
        assert result.value == pytest.approx(error, abs=1 / len(y_new) + 1e-12)
        assert result.dimension == 1
    assert ("graph_weight" in result.params) == (method == "KLSVA sign")


@pytest.mark.parametrize(("method", "within"), [("LE", True), ("LE all neighbors", False)])
def test_le_is_kernel_lpp_written_out(method, within):
    """Its graph joins the ten nearest rows of the same class, or of any; gamma = 1/2."""
    rows, y, new, y_new = first_fold("iris")
    K, K_new = rbf_kernel(rows, gamma=0.5), rbf_kernel(new, rows, gamma=0.5)
    L = np.zeros((len(y), len(y)))
    for part in [y == c for c in np.unique(y)] if within else [y >= 0]:
        L[np.ix_(part, part)] = literal_embeddings.knn(rows[part], 10, width=2.0)
    task = first_task("iris", method)
    model = lsva.runs.embedding(task, SMALL, rows.shape[1]).estimator
    found = literal_embeddings.kernel_embedding(
        *(K, L, literal_embeddings.degrees(L), rows.shape[1], K_new),
        ridge=model.ridge,
        scaling=model.scaling,
    )
    errors = [r.value for r in lsva.runs.evaluate(task)]
    for k, error in enumerate(errors, start=1):
        head = KNeighborsClassifier(1).fit(found.projections[:, :k], y)
        wrong = np.mean(head.predict(found.projections_new[:, :k]) != y_new)
        assert error == pytest.approx(wrong, abs=1 / len(y_new) + 1e-12)


def test_the_reading_of_a_method_is_in_the_identity_of_its_tasks():
    readings = {
        "LLSVA": {"on_exhausted": "pca"},
        "LLSVA margin": {},
        "KPCA": {"gamma": 0.5},
        "KPCA 1/d": {"gamma": "auto"},
        "KDA": {"gamma": 0.5, "shrinkage": 0.1},
        "LE eigenmaps": {},
        "KLSVA": {"gamma": "auto", "weights": 3, "components": 5, "on_exhausted": "pca"},
        "KLSVA sign": {"gamma": "auto", "weights": 3, "components": 1, "on_exhausted": "pca"},
    }
    tasks = lsva.study_tasks(SMALL)
    for method, reading in readings.items():
        (task,) = chosen(tasks, dataset="heart", method=method, protocol="paper", fold=0)
        assert task.options == {"scale": "quick", "folds": 5, "head": "1-nn"} | reading


def test_the_remark_counts_what_the_sign_explains(store):
    errors = {"KLSVA": 0.5, "KLSVA sign": 0.19, "KMMDA": 0.19, "KMMDA sign": 0.19}
    for task in lsva.study_tasks(SMALL, "II"):
        if task.dataset == "heart" and task.method in errors:
            result = Result("error", errors[task.method], {}, 1)
            store.write(task, [result], seconds=0.0)
    (table,) = lsva.tables(store, SMALL)
    assert "agrees with or is near to 2 of 2 printed" in table.remark
    assert "on all their components to 1." in table.remark
    assert table.explained() == 1


def test_a_printed_number_counts_once_and_variants_do_not(store):
    """1-NN is printed in the tables of linear and of kernel methods."""
    for number in TABLES:
        for task in lsva.study_tasks(SMALL, number):
            store.write(task, [Result("error", 0.2, {"head": "1-nn"}, 1)], seconds=0.0)
    made = [t for t in lsva.tables(store, SMALL) if t.number in TABLES]
    counted = [(c.row, c.column) for table in made for c in table.cells if c.counted and c.mark]
    assert len(counted) == len(set(counted)) == sum(sum(t.counts().values()) for t in made)
    places = {place for number in TABLES for place in printed("lsva", number)}
    assert set(counted) == places
    assert made[1].cell("heart", "1-NN").mark
    assert made[1].cell("heart", "KLSVA sign").printed == 18.89


def fill(store, size, error, skipped=()):
    """Write one error for each planned fold of Tables I and III."""
    for number in ("I", "III"):
        for task in lsva.study_tasks(size, number):
            if task.dataset in skipped:
                results, status = (
                    [Result("none", None, reason=f"{task.dataset}: absent")],
                    "skipped",
                )
            else:
                results, status = [Result("error", error(task), {"head": "1-nn"}, 1)], "done"
            store.write(task, results, seconds=0.0, status=status)


def test_tables_are_made_of_records_and_a_skipped_cell_says_why(store):
    size = dataclasses.replace(STUDY_SIZES["quick"], n_seeds=2, controls=True)
    gains = dict(zip((*BINARY, *MULTICLASS), np.linspace(0.01, 0.1, 19), strict=True))

    def error(task):
        gain = gains[task.dataset] if task.method == "LLSVA" else 0.0
        return 0.3 + 0.01 * task.seed - gain * (task.protocol == "paper")

    fill(store, size, error, skipped=["australian"])
    made = {table.number: table for table in lsva.tables(store, size)}
    assert list(made) == ["I", "III", "differences"]
    cell = made["I"].cell("australian", "LLSVA")
    assert (cell.value, cell.mark, cell.note) == (None, "", "australian: absent")
    assert cell.printed == printed("lsva", "I")["australian", "LLSVA"].value
    heart = made["I"].cell("heart", "LLSVA")
    assert heart.value == pytest.approx(100 * (0.305 - gains["heart"]))
    assert heart.spread == pytest.approx(np.sqrt(0.5))
    assert made["I"].cell("heart", "MMDA (nested)").printed is None
    row = "LLSVA (paper) - MMDA (paper)"
    kept = np.array([gain for name, gain in gains.items() if name != "australian"])
    assert made["differences"].cell(row, "mean").value == pytest.approx(-100 * kept.mean())
    assert made["differences"].cell(row, "better").value == 18
    assert made["differences"].cell(row, "p (sign test)").value == pytest.approx(2 * 0.5**18)
    nested = "LLSVA (nested) - MMDA (nested)"
    assert made["differences"].cell(nested, "equal").value == 18
    for table in made.values():
        assert table.protocol
        assert table.remark


def test_a_figure_draws_its_records(store):
    (task,) = chosen(lsva.study_tasks(STUDY_SIZES["quick"], "figure 1"), method="LDA")
    results = [
        Result("coordinate", 10.0 * row + k, {"row": row, "label": row % 3}, dimension=k + 1)
        for row in range(6)
        for k in range(2)
    ]
    store.write(task, results, seconds=0.0)
    (figure,) = lsva.figures(store, STUDY_SIZES["quick"])
    (panel,) = figure.panels
    assert [series.name for series in panel.series] == ["class 1", "class 2", "class 3"]
    assert panel.series[1].x.tolist() == [10.0, 40.0]
    assert panel.series[1].y.tolist() == [11.0, 41.0]
    assert lsva.tables(store, STUDY_SIZES["quick"]) == []
