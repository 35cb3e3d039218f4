"""Embeddings: one fit answers as separate fits do, and nothing is chosen on test rows unsaid."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from marginfold import LSVA, MMDA
from marginfold.papers.paper_data import split_scaled
from marginfold.protocols.embeddings import (
    EmbeddingMethod,
    Selection,
    best_selection,
    measure,
    measure_nested,
)
from marginfold.protocols.splits import Fold, folds

WEIGHTS = (0.01, 1.0, 100.0)
N_COMPONENTS = 4
HEADS = {
    "1-nn": KNeighborsClassifier(1),
    "5-nn": KNeighborsClassifier(5),
    "centroid": NearestCentroid(),
}


@pytest.fixture(scope="module")
def wine():
    """A fifth of wine to train on, so that the errors differ."""
    X, y = load_wine(return_X_y=True)
    train, test = folds(y, 4, 0, inverted=True)[0]
    rows, new = split_scaled(X, train, test)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    return Fold(rows, names[train], new, names[test])


def error_of(classifier, estimator, k, X, y, X_test, y_test):
    """The error with k components, by a fit of its own."""
    fitted = estimator.set_params(n_components=k).fit(X, y)
    rows, new = fitted.transform(X), fitted.transform(X_test)
    return float(np.mean(classifier.fit(rows, y).predict(new) != y_test))


def test_all_weights_and_dimensions_are_those_of_separate_fits(wine):
    lsva = LSVA(n_components=N_COMPONENTS, tasks="one_vs_rest")
    results = measure(EmbeddingMethod(lsva, WEIGHTS), wine, list(HEADS))
    found = {(r.params["head"], r.params["graph_weight"], r.dimension): r.value for r in results}
    assert len(found) == len(results)
    wanted = {
        (head, weight, k): error_of(
            HEADS[head], LSVA(graph_weight=weight, tasks="one_vs_rest"), k, *wine
        )
        for head, weight, k in product(HEADS, WEIGHTS, range(1, N_COMPONENTS + 1))
    }
    assert found == wanted
    assert len(set(found.values())) > 5
    assert {r.metric for r in results} == {"error"}


def test_a_method_without_weights_is_fitted_once(wine):
    given = PCA(3)
    results = measure(EmbeddingMethod(given), wine, ["1-nn"])
    assert not hasattr(given, "components_")
    assert [r.params for r in results] == [{"head": "1-nn"}] * 3
    wanted = [error_of(HEADS["1-nn"], PCA(), k, *wine) for k in (1, 2, 3)]
    assert [r.value for r in results] == wanted


def test_the_rows_themselves_have_one_answer(wine):
    X, y, X_test, y_test = wine
    (result,) = measure(EmbeddingMethod(None, nested=False), wine, ["5-nn"])
    classifier = KNeighborsClassifier(5).fit(X, y)
    assert result.value == np.mean(classifier.predict(X_test) != y_test)
    assert (result.params, result.dimension) == ({"head": "5-nn"}, None)


def nested_by_hand(make, weights, depth, head, wine, *, n_folds, seed):
    """Literal double loop: mean error of inner folds, least first, then dimension, then weight."""
    X, y = wine[:2]
    candidates = []
    for weight, k in product(weights, range(1, depth + 1)):
        inner = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y)
        errors = [error_of(HEADS[head], make(weight), k, X[a], y[a], X[b], y[b]) for a, b in inner]
        candidates.append((round(math.fsum(errors) / n_folds, 12), k, weight))
    _, k, weight = min(candidates)
    return weight, k, error_of(HEADS[head], make(weight), k, *wine)


def test_nested_choice_is_the_literal_double_loop(wine):
    embedding = EmbeddingMethod(LSVA(n_components=3), WEIGHTS[:2])
    heads = ["1-nn", "centroid"]
    results = measure_nested(embedding, wine, heads, n_folds=3, seed=1)
    for head, result in zip(heads, results, strict=True):
        weight, k, error = nested_by_hand(
            lambda w: LSVA(graph_weight=w), WEIGHTS[:2], 3, head, wine, n_folds=3, seed=1
        )
        assert result.params == {"head": head, "graph_weight": weight}
        assert (result.dimension, result.value) == (k, error)


def test_nested_choice_without_weights_is_of_the_dimension_alone(wine):
    (result,) = measure_nested(EmbeddingMethod(PCA(5)), wine, ["1-nn"], n_folds=4, seed=2)
    _, k, error = nested_by_hand(lambda _: PCA(), [0], 5, "1-nn", wine, n_folds=4, seed=2)
    assert (result.params, result.dimension, result.value) == ({"head": "1-nn"}, k, error)


def test_the_rows_themselves_leave_nothing_to_choose(wine):
    embedding = EmbeddingMethod(None, nested=False)
    (plain,) = measure(embedding, wine, ["1-nn"])
    assert measure_nested(embedding, wine, ["1-nn"], n_folds=3, seed=0) == [plain]


def test_test_labels_have_no_say_in_the_nested_choice(wine):
    X, y, X_test, y_test = wine
    embedding = EmbeddingMethod(LSVA(n_components=3), WEIGHTS)
    one, other = (
        measure_nested(embedding, Fold(X, y, X_test, labels), ["1-nn"], n_folds=3, seed=0)[0]
        for labels in (y_test, y_test[::-1])
    )
    assert (one.params, one.dimension) == (other.params, other.dimension)
    assert one.value != other.value


@pytest.mark.parametrize(
    "embedding", [EmbeddingMethod(LSVA(), (0.1, 1.0)), EmbeddingMethod(MMDA())]
)
def test_without_any_direction_there_is_a_reason(embedding):
    X, y = np.ones((12, 3)), np.repeat(["a", "b"], 6)
    (result,) = measure(embedding, Fold(X, y, X, y), ["1-nn"])
    assert result.value is None
    assert "no direction" in result.reason
    nested = measure_nested(embedding, Fold(X, y, X, y), ["1-nn", "3-nn"], n_folds=3, seed=0)
    assert [r.value for r in nested] == [None, None]
    assert [r.params for r in nested] == [{"head": "1-nn"}, {"head": "3-nn"}]
    assert all("no direction" in r.reason for r in nested)


def test_an_inner_fold_without_a_direction_leaves_no_choice():
    X, y = np.ones((12, 3)), np.repeat(["a", "b"], 6)
    X[0] = 5.0  # the one row that differs is missing from one inner training part
    embedding = EmbeddingMethod(LSVA(n_components=1), (1.0,))
    assert measure(embedding, Fold(X, y, X, y), ["1-nn"])[0].value is not None
    (result,) = measure_nested(embedding, Fold(X, y, X, y), ["1-nn"], n_folds=3, seed=0)
    assert result.value is None
    assert "some fold" in result.reason


def curve(**by_weight):
    return {("1-nn", float(w.strip("w"))): np.array(errors) for w, errors in by_weight.items()}


def test_the_least_mean_over_folds_is_chosen():
    first = curve(w1=[0.5, 0.25, 0.0], w2=[0.5, 0.5, 0.5])
    second = curve(w1=[0.5, 0.25, 1.0], w2=[0.5, 0.0, 0.5])
    assert best_selection([first], "1-nn") == Selection(1.0, 3, 0.0)
    assert best_selection([first, second], "1-nn") in (
        Selection(1.0, 2, 0.25),
        Selection(2.0, 2, 0.25),
    )


def test_of_equal_errors_fewer_dimensions_win_then_the_smaller_weight():
    tied = curve(w8=[0.5, 0.25, 0.25], w4=[0.5, 0.25, 0.25], w2=[0.5, 0.5, 0.25])
    assert best_selection([tied], "1-nn") == Selection(4.0, 2, 0.25)
    assert best_selection([tied, tied], "1-nn") == Selection(4.0, 2, 0.25)


def test_errors_are_equal_in_whatever_order_the_folds_have_them():
    parts = [curve(w1=pair) for pair in ([0.1, 0.3], [0.2, 0.2], [0.3, 0.1])]
    choice = best_selection(parts, "1-nn")
    assert (choice.dimension, choice.error) == (1, pytest.approx(0.2))


def test_dimensions_and_weights_that_some_fold_lacks_do_not_count():
    first = curve(w1=[0.5, 0.25, 0.0], w2=[0.0])
    second = curve(w1=[0.5, 0.25])
    assert best_selection([first, second], "1-nn") == Selection(1.0, 2, 0.25)
    assert best_selection([second, first], "1-nn") == Selection(1.0, 2, 0.25)
    assert best_selection([first, {}], "1-nn") is None
    assert best_selection([{}, first], "1-nn") is None
    assert best_selection([], "1-nn") is None
    assert best_selection([first], "5-nn") is None
