"""What is kept is what was measured: model, command and Python lines of one procedure."""

from __future__ import annotations

import dataclasses
from functools import cache, partial
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss, roc_auc_score

from marginfold.compare.comparison import conclude, how_to_keep, keep
from marginfold.compare.methods import (
    COMPLEXITY,
    LARGEST_CLASS,
    METHODS,
    command_name,
    method_named,
    plainness,
    procedure,
)
from marginfold.compare.mistakes import held_out_answers
from marginfold.compare.runs import Comparison
from marginfold.compare.table import Size, Source
from marginfold.data import TableModel
from marginfold.errors import InvalidParameterError
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.run import run_tasks
from marginfold.protocols.splits import folds

pd = pytest.importorskip("pandas", reason="tables need the extra cli")

KEPT = [
    name
    for name, method in METHODS.items()
    if not method.control and (not method.needs or find_spec(method.needs))
]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three classes that overlap, with a column of words, gaps, and a column to leave out."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.arange(90) % 3)
    X = rng.standard_normal((90, 4)) + 1.2 * rng.standard_normal((3, 4))[codes]
    X[rng.random(X.shape) < 0.03] = np.nan
    frame = pd.DataFrame(X, columns=["a b", "c", "d", "e"])
    frame["hue"] = rng.choice(["red", "green"], 90)
    frame["note"] = "x" + pd.Series(range(90)).astype(str)
    frame["kind"] = np.array(["one", "two", "three"])[codes]
    path = tmp_path_factory.mktemp("a table") / "t.csv"
    frame.to_csv(path, index=False)
    return Source(str(path), "kind", drop=("note",))


@pytest.fixture(scope="module")
def comparison(source):
    return Comparison.of(source, KEPT, n_folds=2, n_repeats=2)


@pytest.fixture(scope="module")
def kept(comparison):
    """A function from a method to its model of all rows."""
    return cache(partial(keep, comparison=comparison))


@pytest.fixture(scope="module")
def store(comparison, tmp_path_factory):
    with RecordStore(tmp_path_factory.mktemp("run")) as opened:
        assert run_tasks(comparison.fold_tasks(), opened).failed == 0
        yield opened


def cross_validated(made, comparison, seed):
    """The error of a procedure on tables, fold by fold."""
    rows = comparison.source.read()
    for train, test in folds(rows.labels, comparison.n_folds, seed):
        model = TableModel.fit(
            made, rows.frame.iloc[train], rows.labels[train], "kind", rows.columns
        )
        yield float(np.mean(model.predict(rows.frame.iloc[test]) != rows.labels[test]))


@pytest.mark.parametrize("method", KEPT)
def test_the_cross_validated_error_of_what_is_kept_is_that_of_the_table(
    method, comparison, kept, store
):
    measured = [r.value for r in store.read(method=method, metric="error")]
    again = [
        error
        for seed in range(2)
        for error in cross_validated(kept(method).method, comparison, seed)
    ]
    assert again == measured
    row = next(r for r in conclude(comparison, store).rows if r.method == method)
    assert row.error == pytest.approx(100 * np.mean(again), rel=1e-12)


@pytest.mark.parametrize("method", KEPT)
def test_the_python_lines_fit_the_same_model(method, comparison, kept):
    names: dict[str, object] = {}
    exec(how_to_keep(method, comparison).snippet, names)
    expected = kept(method)
    np.testing.assert_array_equal(
        names["answers"], expected.predict(comparison.source.read().frame)
    )
    assert repr(names["model"].method) == repr(expected.method)


@pytest.mark.parametrize("method", KEPT)
def test_a_saved_model_predicts_as_the_kept_one(method, comparison, kept, tmp_path):
    pytest.importorskip("skops", reason="model files need the extra cli")
    from marginfold.data.models import load_model, save_model

    if method == "LightGBM":
        pytest.skip("model files hold no models of LightGBM")
    save_model(kept(method), tmp_path / "m.skops")
    frame = comparison.source.read().frame
    loaded = load_model(tmp_path / "m.skops")
    np.testing.assert_array_equal(loaded.predict(frame), kept(method).predict(frame))


@pytest.mark.parametrize("method", KEPT)
def test_every_kept_model_has_probabilities_and_answers_as_it_was_measured(
    method, comparison, kept
):
    rows = comparison.source.read()
    made = comparison.procedure(method)
    plain = TableModel.fit(made, rows.frame, rows.labels, "kind", rows.columns)
    np.testing.assert_array_equal(kept(method).predict(rows.frame), plain.predict(rows.frame))
    shares = kept(method).probabilities(rows.frame)
    assert shares.shape == (90, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.min() >= 0


def test_a_sample_is_compared_on_and_all_rows_are_kept(source):
    whole = Comparison.of(source, ["lda"], n_folds=3)
    sample = dataclasses.replace(whole, source=dataclasses.replace(source, n_taken=45))
    assert len(sample.source.read().labels) < 90
    rows = source.read()
    kept = keep("LDA", sample)
    expected = TableModel.fit(
        sample.procedure("LDA"), rows.frame, rows.labels, "kind", rows.columns
    )
    np.testing.assert_array_equal(kept.predict(rows.frame), expected.predict(rows.frame))


def test_the_command_names_file_target_columns_and_method(comparison, store):
    verdict = conclude(comparison, store)
    assert verdict.command == how_to_keep(verdict.best, comparison).command
    words = verdict.command.split()
    assert words[:2] == ["marginfold", "fit"]
    assert "'" in words[2]  # the folder has a blank in its name
    ending = f"--target kind --drop note --method {command_name(verdict.best)} --save model.skops"
    assert verdict.command.endswith(ending)


def test_every_method_has_a_command_and_its_name_is_read_again(comparison):
    for method in KEPT:
        command = how_to_keep(method, comparison).command
        if METHODS[method].needs:
            assert command == ""  # no file holds models of other packages
            continue
        spelled = command.split("--method ")[1].split()[0]
        assert method_named(spelled) == method_named(method.upper()) == method


def test_a_bundled_set_is_named_in_the_command_and_loaded_by_the_lines(tmp_path):
    from marginfold.data import load

    path = tmp_path / "wine.csv"
    load("wine").frame.to_csv(path, index=False)
    bundled = Comparison.of(Source(str(path), "label", bundled=True), ["lda"], n_folds=3)
    keeping = how_to_keep("LDA", bundled)
    assert keeping.command == "marginfold fit wine --method lda --save model.skops"
    names: dict[str, object] = {}
    exec(keeping.snippet, names)
    kept = keep("LDA", bundled).predict(bundled.source.read().frame)
    np.testing.assert_array_equal(names["answers"], kept)


def test_where_nothing_was_learnt_nothing_is_kept(source, tmp_path):
    comparison = Comparison.of(source, ["lda", "pca"], n_folds=5)
    with RecordStore(tmp_path) as store:
        for task in comparison.fold_tasks():
            guess = 0.6 + 0.01 * (task.fold - 2)
            value = guess if task.method == LARGEST_CLASS else guess + 0.001 * task.seed
            store.write(task, [Result("error", value)], seconds=0.1)
        verdict = conclude(comparison, store)
    assert verdict.best
    assert (verdict.command, verdict.snippet, verdict.procedure) == ("", "", None)


def test_the_answers_of_every_held_out_row_are_in_the_records(comparison, store):
    rows = comparison.source.read()
    for method in ("LDA", "SVC rbf"):
        kept = comparison.procedure(method)
        answers = held_out_answers(comparison, store, method)
        expected = []
        for seed in range(2):
            for train, test in folds(rows.labels, 2, seed):
                X, X_test = rows.encoded(train, test)
                expected += kept.fit(X, rows.labels[train]).predict(X_test).tolist()
        assert answers.said.tolist() == expected
        assert sorted(answers.rows.tolist()) == sorted([*range(90), *range(90)])
        counts = confusion_matrix(answers.labels, answers.said)
        error = np.mean([r.value for r in store.read(method=method, metric="error")])
        assert 1.0 - np.trace(counts) / counts.sum() == pytest.approx(error)


def test_the_other_scores_are_those_of_scikit_learn(comparison, store):
    rows = comparison.source.read()
    train, test = folds(rows.labels, 2, 1)[1]
    X, X_test = rows.encoded(train, test)
    y, y_test = rows.labels[train], rows.labels[test]
    for method in ("logistic regression", "SVC rbf", "all features"):
        made = comparison.procedure(method).fit(X, y)
        found = {r.metric: r.value for r in store.read(method=method, seed=1, fold=1)}
        balanced = balanced_accuracy_score(y_test, made.predict(X_test))
        assert found["balanced accuracy"] == pytest.approx(balanced)
        has_chances = hasattr(made, "predict_proba")
        scores = (made.predict_proba if has_chances else made.decision_function)(X_test)
        areas = [
            roc_auc_score(y_test == c, s) for c, s in zip(made.classes_, scores.T, strict=True)
        ]
        assert found["AUC"] == pytest.approx(np.mean(areas))
        assert ("log loss" in found) is has_chances
        if has_chances:
            assert found["log loss"] == pytest.approx(log_loss(y_test, scores))


def test_records_of_an_earlier_layout_are_left_alone_and_not_counted(source, tmp_path):
    """Their tasks had other options, and neither scores nor answers."""
    comparison = Comparison.of(source, ["lda"], n_folds=2, n_repeats=1)
    with RecordStore(tmp_path) as opened:
        for task in comparison.fold_tasks():
            options = {**task.options, "heads": ["1-nn"], "inner_folds": 3}
            del options["procedure"]
            old = dataclasses.replace(task, options=options)
            opened.write(old, [Result("error", 0.0, {"head": "1-nn"}, 1)], seconds=0.1)
        assert conclude(comparison, opened).best == ""
        assert len(held_out_answers(comparison, opened, "LDA").rows) == 0
        run_tasks(comparison.fold_tasks(), opened)
        verdict = conclude(comparison, opened)
        assert verdict.rows[0].error > 0
        assert len(held_out_answers(comparison, opened, "LDA").rows) == 90
        assert len(opened.read(metric="error", method="LDA")) == 4


def test_given_parameters_are_not_chosen(comparison):
    size = comparison.source.read().size
    rows = comparison.source.read()
    X, _ = rows.encoded(np.arange(90), np.arange(1))
    fixed = {"graph_weight": 2.5, "n_components": 2, "n_neighbors": 7, "C": 3.0}
    lsva = procedure("lsva", size, fixed).fit(X, rows.labels)
    head = lsva.best_estimator_.named_steps["classifier"]
    subspace = lsva.best_estimator_.named_steps["subspace"]
    given = (subspace.graph_weight, subspace.n_components, head.n_neighbors, subspace.C)
    assert given == (2.5, 2, 7, 3.0)
    gesvc = procedure("gesvc", size, {"C": 3.0}).fit(X, rows.labels)
    assert gesvc.best_estimator_.C == 3.0
    assert set(gesvc.best_params_) == {"graph_weight"}
    alone = procedure("gesvc", size, {"C": 3.0, "graph_weight": 1.0})
    assert (alone.C, alone.graph_weight) == (3.0, 1.0)
    with pytest.raises(InvalidParameterError, match="LDA has no parameter graph_weight"):
        procedure("lda", size, {"graph_weight": 1.0})


def test_every_procedure_is_a_classifier_and_has_a_stated_complexity():
    size = Size(100, 5, 3)
    for method in KEPT:
        assert is_classifier(procedure(method, size))
        assert METHODS[method].complexity in COMPLEXITY
    order = ["logistic regression", "all features", "LDA", "LSVA", "SVC rbf"]
    assert sorted(sorted(order), key=plainness) == order
