"""A comparison's errors against plain loops, and its words against records made for the purpose."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from marginfold import LDA
from marginfold.compare.comparison import conclude
from marginfold.compare.methods import (
    LARGEST_CLASS,
    METHODS,
    NEIGHBORS,
    PERMUTED_GRAPH,
    procedure,
)
from marginfold.compare.pictures import error_curves, row_maps
from marginfold.compare.plan import SLOW_ROWS, suitable
from marginfold.compare.runs import Comparison, draw
from marginfold.compare.table import Size, Source
from marginfold.data import load
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.protocols.records import RecordStore
from marginfold.protocols.results import coordinate_results
from marginfold.protocols.run import run_tasks

pytest.importorskip("pandas", reason="tables need the extra cli")

import pandas as pd
from compare.verdicts import around, blobs, saved, verdict_of

CHEAP = ["all features", "lda", "pca", "nca", "svc rbf", "gepsvc", "logistic-regression"]


@pytest.fixture
def two_classes(tmp_path):
    return saved(blobs(40, 3, np.repeat(["a", "b"], 20)), tmp_path)


@pytest.fixture
def store(tmp_path):
    with RecordStore(tmp_path / "run") as opened:
        yield opened


def wrong(n_neighbors, train, y, test, y_test):
    return np.mean(KNeighborsClassifier(n_neighbors).fit(train, y).predict(test) != y_test)


def literal_nested_lda(X, y, n_folds, seed):
    """The error of LDA and nearest neighbors; dimension and neighbors by three inner folds."""
    errors = []
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y):
        scaler = StandardScaler().fit(X[train])
        rows, new = scaler.transform(X[train]), scaler.transform(X[test])
        inner = np.zeros((2, 3))  # of equal errors fewer dimensions win, then fewer neighbors
        splits = StratifiedKFold(3, shuffle=True, random_state=0).split(rows, y[train])
        for a, b in splits:
            lda = LDA().fit(rows[a], y[train][a])
            for k, h in product(range(2), range(3)):
                inner[k, h] += wrong(
                    NEIGHBORS[h],
                    lda.transform(rows[a])[:, : k + 1],
                    y[train][a],
                    lda.transform(rows[b])[:, : k + 1],
                    y[train][b],
                )
        k, h = np.unravel_index(inner.round(9).argmin(), inner.shape)
        lda = LDA().fit(rows, y[train])
        pair = lda.transform(rows)[:, : k + 1], y[train], lda.transform(new)[:, : k + 1], y[test]
        errors.append(wrong(NEIGHBORS[h], *pair))
    return errors


def test_the_nested_error_is_that_of_plain_loops(tmp_path, store):
    wine = load("wine")
    wine.frame.rename(columns={"label": "kind"}).to_csv(tmp_path / "wine.csv", index=False)
    source = Source(str(tmp_path / "wine.csv"), "kind")
    comparison = Comparison.of(source, ["lda"], n_folds=4, n_repeats=2)
    run_tasks(comparison.tasks(), store)
    expected = [literal_nested_lda(wine.X, wine.y, 4, seed) for seed in range(2)]
    found = [r.value for r in store.read(metric="error", method="LDA")]
    assert found == pytest.approx(np.ravel(expected), abs=1e-12)
    row = conclude(comparison, store).rows[0]
    assert row.error == pytest.approx(100 * np.mean(expected))
    assert row.spread == pytest.approx(100 * np.std(expected, ddof=1))


def test_the_papers_choice_is_the_least_mean_over_folds(two_classes, store):
    comparison = Comparison.of(two_classes, ["pca"], protocol="paper", n_folds=3, n_repeats=2)
    run_tasks(comparison.tasks(), store)
    least = []
    for seed in range(2):
        errors = np.zeros((3, 3, 3))
        for r in store.read(metric="error", seed=seed, method="PCA"):
            errors[r.fold, r.dimension - 1, NEIGHBORS.index(r.params["n_neighbors"])] = r.value
        least.append(errors.mean(axis=0))
    verdict = conclude(comparison, store)
    assert verdict.rows[0].error == pytest.approx(100 * np.min(least, axis=(1, 2)).mean())
    chosen = [int(np.flatnonzero(np.isclose(m.min(axis=1), m.min()))[0]) + 1 for m in least]
    assert verdict.rows[0].dimension == np.median(chosen)
    assert any("too low" in sentence for sentence in verdict.sentences)


def test_every_fold_has_one_error(tmp_path, store):
    """On classes that overlap the heads differ, so that a second error would be another one."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 3))).assign(kind=rng.permutation(["a", "b"] * 30))
    source = saved(frame, tmp_path, categorical=("0",), drop_missing=True)
    comparison = Comparison.of(source, ["all features", "pca"], n_folds=3, n_repeats=2)
    run_tasks(comparison.tasks(), store)
    for method in comparison.methods:
        found = store.read(method=method, metric="error", protocol="nested")
        assert len({(r.seed, r.fold) for r in found}) == len(found) == 6
    command = conclude(comparison, store).command
    assert "--categorical 0 --drop-missing-target" in command or not command


def test_controls_alone_are_no_comparison(two_classes):
    with pytest.raises(InvalidParameterError, match="only controls"):
        Comparison.of(two_classes, [PERMUTED_GRAPH])


def test_a_clear_winner(two_classes, store):
    errors = {"PCA": around(0.4, seed=1), "LDA": around(0.1), "MMDA": around(0.35, seed=2)}
    verdict, _ = verdict_of(two_classes, store, errors)
    assert (verdict.best, list(verdict.as_good)) == ("LDA", [])
    assert [row.method for row in verdict.rows] == ["LDA", "MMDA", "PCA", LARGEST_CLASS]
    assert verdict.command.endswith("--target kind --method lda --save model.skops")
    assert verdict.rows[0].behind is None
    assert verdict.rows[2].behind.mean == pytest.approx(30.0)


def test_equal_differences_are_no_certainty(two_classes, store):
    errors = {"PCA": 0.125, "LDA": 0.1}  # the same in every fold
    verdict, _ = verdict_of(two_classes, store, errors)
    behind = next(row for row in verdict.rows if row.method == "PCA").behind
    assert behind.low < behind.mean < behind.high


def test_of_equal_errors_the_plainest_is_best(two_classes, store):
    same = np.array([0.1, 0.2, 0.3, 0.1, 0.2] * 2)
    errors = {"MMDA": same, "PCA": np.roll(same, 5), "LDA": same[::-1].copy()}
    verdict, words = verdict_of(two_classes, store, errors)
    assert verdict.best == "LDA"  # as simple as PCA, and faster
    assert set(verdict.as_good) == {"PCA", "MMDA"}
    assert "LDA is also the simplest of these." in words


def test_a_method_that_fails_on_one_fold_has_a_reason_and_no_error(two_classes, store):
    failing = [0.0] * 9 + ["SolverError: no convergence"]
    verdict, _ = verdict_of(two_classes, store, {"PCA": 0.3, "LDA": failing}, left=[("NCA", "big")])
    rows = {row.method: row for row in verdict.rows}
    assert verdict.best == "PCA"
    assert (rows["LDA"].error, rows["LDA"].reason) == (None, "SolverError: no convergence")
    assert rows["NCA"].reason == "big"


def test_when_all_fail_there_is_no_best(two_classes, store):
    errors = {"PCA": "it broke", "LDA": "it broke too", LARGEST_CLASS: 0.5}
    verdict, words = verdict_of(two_classes, store, errors, left=[("NCA", "big")])
    assert (verdict.best, words) == ("", "No method could be measured on all folds.")
    assert {row.reason for row in verdict.rows if row.reason} == {
        "it broke",
        "it broke too",
        "big",
        "a control, and no method to judge by it",
    }


def test_what_decides_a_result_is_in_the_key_and_nothing_else(tmp_path):
    frame = blobs(40, 3, np.repeat(["a", "b"], 20)).assign(code=np.arange(40) % 4)

    def keys(table, name="t.csv", n_repeats=1, **options):
        source = saved(table, tmp_path, name, **options)
        made = Comparison.of(source, ["lda"], n_folds=2, n_repeats=n_repeats)
        return {task.key for task in made.tasks()}

    plain = keys(frame)
    assert keys(frame, "moved/t.csv") == plain
    assert keys(frame, "moved/t.csv", n_repeats=2, drop_missing=True) > plain
    changed = {
        "kind of column": keys(frame, categorical=("code",)),
        "column": keys(frame, drop=("x2",)),
        "value": keys(frame.assign(x0=frame["x0"].where(frame.index != 7, 0.0)), "value/t.csv"),
        "label": keys(frame.assign(kind=["b", *frame["kind"][1:]]), "label/t.csv"),
        "order of rows": keys(frame[::-1], "order/t.csv"),
    }
    assert [name for name, found in changed.items() if found & plain] == []


ODD_TABLES = {
    "twelve rows": blobs(12, 3, np.repeat(["a", "b"], 6)),
    "one column": blobs(30, 1, np.repeat([3, 7], 15)),
    "thirty classes": blobs(120, 4, np.arange(120) % 30),
    "a class of two rows": blobs(60, 4, np.array(["a"] * 29 + ["b"] * 29 + ["c"] * 2)),
    "three rows against many": blobs(40, 3, np.array(["a"] * 37 + ["b"] * 3)),
    "wide": blobs(24, 200, np.repeat(["a", "b", "c"], 8)),
    "words only": pd.DataFrame(
        {"hue": list("rgbr") * 10, "wet": list("yn") * 20, "kind": list("uvvuuvuv") * 5}
    ),
    "gaps and constants": blobs(40, 3, np.repeat(["a", "b"], 20)).assign(
        one=1, none=np.nan, half=[np.nan, 1.0] * 20, x1=[np.nan] * 12 + [0.5, 2.0] * 14
    ),
    "copies": pd.DataFrame({"x": [0, 1] * 20, "z": [0, 0, 1, 1] * 10, "kind": list("uv") * 20}),
}


def guessing(y):
    """The error of the largest class of the training rows, over three folds."""
    parts = StratifiedKFold(3, shuffle=True, random_state=0).split(y, y)
    errors = []
    for train, test in parts:
        classes, counts = np.unique(y[train], return_counts=True)
        errors.append(np.mean(y[test] != classes[counts.argmax()]))
    return np.mean(errors)


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("name", ODD_TABLES)
def test_odd_tables_get_an_answer_from_every_method(name, tmp_path, store):
    source = saved(ODD_TABLES[name], tmp_path)
    comparison = Comparison.of(source, CHEAP, n_folds=3, n_repeats=1)
    summary = run_tasks(comparison.tasks(), store)
    assert summary.failed == 0
    verdict = conclude(comparison, store)
    assert [row.method for row in verdict.rows if row.error is None] == []
    largest = next(row for row in verdict.rows if row.method == LARGEST_CLASS)
    assert largest.error == pytest.approx(100 * guessing(ODD_TABLES[name]["kind"].to_numpy()))


def test_rare_classes_keep_the_folds_and_are_noted(tmp_path):
    source = saved(ODD_TABLES["a class of two rows"], tmp_path)
    made = Comparison.of(source, ["lda"])
    assert made.n_folds == 5
    assert "class c: fewer rows than folds" in made.notes[-1]
    few = saved(blobs(12, 2, np.repeat(list("abc"), 4)), tmp_path)
    made = Comparison.of(dataclasses.replace(few, drop=("x1",)), ["lda"], n_folds=7)
    assert made.n_folds == 4
    assert "4 folds instead of 7" in made.notes[0]


@pytest.mark.parametrize(("rows", "n_folds"), [(2, 5), (3, 2)])
def test_folds_inside_folds_need_rows_of_two_classes(rows, n_folds, tmp_path):
    source = saved(blobs(20, 2, np.array(["a"] * (20 - rows) + ["b"] * rows)), tmp_path)
    with pytest.raises(InvalidInputError, match=f"second largest class has {rows} rows") as refused:
        Comparison.of(source, ["lda"], n_folds=n_folds)
    more_help = rows > 2  # no number of folds leaves two of two rows for training
    assert ("use more folds" in str(refused.value)) is more_help
    if more_help:
        assert Comparison.of(source, ["lda"], n_folds=n_folds + 1).n_folds == n_folds + 1


def test_a_file_that_changes_under_way_stops_its_tasks(two_classes, store):
    made = Comparison.of(two_classes, ["lda"], n_folds=2, n_repeats=1)
    task = made.tasks()[0]
    changed = dataclasses.replace(task, options={**task.options, "data": "other"})
    run_tasks([changed], store)
    (record,) = store.read()
    assert (record.status, record.value) == ("failed", None)
    assert "has changed while it was compared" in record.reason


def test_methods_are_found_in_any_case_and_left_out_for_a_reason():
    small, large = Size(100, 5, 2), Size(SLOW_ROWS + 1, 5, 2)
    assert suitable(small, ["lsva", "PCA"]) == (["PCA", "LSVA", LARGEST_CLASS], {})
    assert suitable(small, ["svc-rbf", "all features"])[0][:2] == ["all features", "SVC rbf"]
    usual = [name for name, m in METHODS.items() if m.by_default and name != "LightGBM"]
    assert [name for name in suitable(small)[0] if name != "LightGBM"] == usual
    assert suitable(small, ["npe", "svmpca"])[0] == ["PCA", "NPE", LARGEST_CLASS]
    names, left_out = suitable(large)
    assert set(left_out) == {name for name in usual if METHODS[name].slow} != set()
    assert set(names).isdisjoint(left_out)
    many = suitable(Size(800, 5, 200))[1]
    assert set(many) == {"SVC linear", "GESVC", "GEPSVC", "MRGEPSVC", "TwinSVC"}
    assert "classes (200)" in many["GESVC"]
    with pytest.raises(InvalidParameterError, match="Unknown methods: 'lsav'"):
        suitable(small, ["lda", "lsav"])


def test_all_features_are_a_level_in_the_error_by_dimension(tmp_path, store):
    source = saved(blobs(45, 20, np.arange(45) % 3), tmp_path)
    comparison = Comparison.of(source, ["all features", "lda"], n_folds=3, n_repeats=1)
    run_tasks(comparison.tasks(), store)
    lda, whole = error_curves(comparison, store)
    assert (lda.name, list(lda.x)) == ("LDA", [1.0, 2.0])
    assert list(whole.x) == [1.0, 2.0]
    inside = [r.value for r in store.read(metric="error inside", method="all features")]
    assert whole.y == pytest.approx([100 * np.mean(inside)] * 2)
    (only,) = row_maps(comparison, store)
    assert (only.method, len(only.points), dict(only.anchors)) == ("LDA", 15, {})  # held-out rows


def test_a_picture_shows_rows_of_every_class_of_a_sorted_file(tmp_path, monkeypatch):
    monkeypatch.setattr("marginfold.compare.runs.DRAWN_ROWS", 20)
    source = saved(blobs(300, 3, np.repeat(["a", "b", "c"], 100)), tmp_path)
    task = Comparison.of(source, ["lda"], n_folds=3).tasks()[-1]
    drawn = draw(task, source=source)
    assert len(drawn) == 2 * 20
    assert {result.params["label"] for result in drawn} == {"a", "b", "c"}
    for result in drawn:
        assert result.params["label"] == "abc"[(result.params["row"] - 1) // 100]


def test_a_map_of_scores_that_are_nearly_the_same_is_turned_and_its_rows_keep_their_numbers(
    two_classes, store
):
    comparison = Comparison.of(two_classes, ["lsva"], n_folds=2, n_repeats=1)
    (task,) = comparison.picture_tasks()
    rng = np.random.default_rng(0)
    x = rng.standard_normal(30)
    Z = np.column_stack([x, x + 0.05 * rng.standard_normal(30)])
    numbers = rng.permutation(100)[:30] + 1
    labels = ["a", "b"] * 15
    store.write(task, coordinate_results(Z, labels, numbers.tolist()), seconds=0.1)
    (found,) = row_maps(comparison, store)
    assert "long axis" in found.xlabel
    order = np.argsort(numbers)
    assert [(p.row, p.label) for p in found.points] == [(numbers[k], labels[k]) for k in order]
    turned = np.array([(p.x, p.y) for p in found.points])
    assert pdist(turned) == pytest.approx(pdist(Z[order]))
    assert np.ptp(turned[:, 1]) < 0.2 * np.ptp(turned[:, 0])


def test_the_largest_class_is_as_sure_as_the_shares_of_the_classes_allow():
    labels = np.repeat(["a", "b", "c"], [2, 5, 3])
    guess = procedure(LARGEST_CLASS, Size.of(labels, 1)).fit(np.zeros((10, 1)), labels)
    assert set(guess.predict(np.zeros((3, 1)))) == {"b"}
    np.testing.assert_allclose(guess.predict_proba(np.zeros((1, 1))), [[0.2, 0.5, 0.3]])
