"""The test of a graph finds help and harm where they are, and nothing where nothing is."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginfold import (
    GESVC,
    LPP,
    LSVA,
    MRGEPSVC,
    ExactKernel,
    LapSVC,
    NeighborGraph,
    PrecomputedGraph,
)
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.graphs import GraphRule, PermutedGraph, TotalGraph, resolve_graph
from marginfold.graphs.laplacian import EdgeLaplacian
from marginfold.protocols.hidden_labels import HideLabels
from marginfold.protocols.permutation import PermutationResult, graph_permutation_test
from marginfold.protocols.statistics import paired_interval

FEW = StratifiedShuffleSplit(3, train_size=6, test_size=34, random_state=0)
iris, species = load_iris(return_X_y=True)


class Smoothest(TransformerMixin, BaseEstimator):
    """The direction along which neighbors differ least: cheap, and nothing but its graph."""

    def __init__(self, graph="knn"):
        self.graph = graph

    def fit(self, X, y):
        self.direction_ = np.linalg.eigh(resolve_graph(self.graph).build(X, y).scatter(X))[1][:, :1]
        return self

    def transform(self, X):
        return X @ self.direction_


class Chain(GraphRule):
    """Joins the rows that follow each other in the first column: a graph that costs nothing."""

    def build(self, X, y=None, *, unlabeled=None, sample_weight=None):
        order = np.argsort(X[:, 0])
        edges = sp.coo_array((np.ones(len(X) - 1), (order[1:], order[:-1])), shape=(len(X),) * 2)
        return EdgeLaplacian(len(X), sp.csr_array(edges + edges.T), np.arange(len(X)))


def moons(seed):
    X, y = make_moons(80, noise=0.05, random_state=seed)
    y[40:] = -1
    return X, y


@pytest.mark.parametrize("seed", [0, 1])
def test_neighbors_help_where_labels_spread_along_them_only(seed):
    X, y = make_moons(60, noise=0.05, random_state=seed)
    narrow = ExactKernel("rbf", gamma=1000)  # no row is like another
    model = LapSVC(kernel=narrow, C=10, graph=NeighborGraph(4), graph_weight=10)
    result = graph_permutation_test(
        model, X, y, cv=HideLabels(3), n_permutations=19, random_state=seed
    )
    assert result.p_value == 1 / 20
    assert result.difference_without.low > 0
    assert result.verdict.startswith("The graph helps: ")


@pytest.mark.parametrize("seed", [0, 2])
def test_neighbors_on_few_labels_may_help_or_not(seed):
    """Six labels: better than any permuted graph, but folds differ too much to rule out none."""
    X, y = moons(seed)
    model = LapSVC(kernel="rbf", C=10, graph=NeighborGraph(4), graph_weight=10)
    result = graph_permutation_test(model, X, y, cv=FEW, n_permutations=19, random_state=seed)
    assert result.p_value == 1 / 20
    assert result.score > result.without_graph
    assert result.difference_without.low < 0
    assert "better than no graph, these rows cannot say: " in result.verdict


@pytest.mark.parametrize("seed", [0, 1])
def test_neighbors_hurt_on_long_strips(seed):
    """Along the strips neighbors are far, across they are near: the graph favours the length."""
    rng = np.random.default_rng(seed)
    y = np.arange(100) % 2
    X = np.column_stack([rng.uniform(0, 20, 100), y + 0.1 * rng.standard_normal(100)])
    y[40:] = -1
    result = graph_permutation_test(LapSVC(graph_weight=10), X, y, cv=FEW, n_permutations=19)
    assert result.p_value_hurts == 1 / 20
    assert result.difference_without.mean < 0
    assert result.verdict.startswith("The graph hurts: ")


def test_nothing_is_found_where_nothing_is():
    """Round clouds with labels by lot: small p-values are not more frequent than they may be."""
    p_values = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((30, 3)), rng.permutation(np.arange(30) % 2)
        result = graph_permutation_test(Smoothest(Chain()), X, y, cv=2, n_permutations=9)
        assert result.p_value + result.p_value_hurts >= 1 + 1 / 10
        p_values.append((result.p_value, result.p_value_hurts))
    for level in (0.1, 0.3, 0.5):
        shares = np.mean(np.array(p_values) <= level + 1e-9, axis=0)
        assert (shares <= level + 3 * np.sqrt(level * (1 - level) / 30)).all()
    assert np.median(p_values) < 0.8  # neither are they all large


def test_a_permuted_graph_is_no_better_than_others():
    X, y = moons(0)
    graph = PermutedGraph(NeighborGraph(4), 123)
    model = LapSVC(kernel="rbf", C=10, graph=graph, graph_weight=10)
    result = graph_permutation_test(model, X, y, cv=FEW, n_permutations=19)
    assert result.p_value > 0.05
    assert "No evidence that this graph does better" in result.verdict


def test_the_result_is_that_of_loops():
    X, y = iris[::3], species[::3]
    cv = StratifiedKFold(2, shuffle=True, random_state=1)
    result = graph_permutation_test(LSVA(1), X, y, cv=cv, n_permutations=5, random_state=4)
    seeds = np.random.SeedSequence(4).generate_state(5)
    graphs = [NeighborGraph(), *(PermutedGraph(NeighborGraph(), int(seed)) for seed in seeds)]
    models = [LSVA(1, graph=graph) for graph in graphs] + [LSVA(1, graph_weight=0)]
    scores = np.empty((7, 2))
    for k, (train, test) in enumerate(cv.split(X, y)):
        for m, model in enumerate(models):
            Z = model.fit(X[train], y[train]).transform(X)
            head = KNeighborsClassifier(1).fit(Z[train], y[train])
            scores[m, k] = head.score(Z[test], y[test])
    means = scores.mean(axis=1)
    assert_allclose(result.score, means[0])
    assert_allclose(result.permuted_scores, means[1:6])
    assert_allclose(result.without_graph, means[6])
    assert result.p_value == (1 + sum(m >= means[0] - 1e-12 for m in means[1:6])) / 6
    sizes = [(len(train), len(test)) for train, test in cv.split(X, y)]
    n_train, n_test = np.mean(sizes, axis=0)
    assert result.difference == paired_interval(
        scores[0] - scores[1:6].mean(axis=0), n_train, n_test
    )
    assert result.difference_without == paired_interval(scores[0] - scores[6], n_train, n_test)


def test_it_is_deterministic_for_any_number_of_jobs_and_leaves_the_estimator():
    model = Smoothest()
    first = graph_permutation_test(model, iris, species, cv=3, n_permutations=4)
    with parallel_config(backend="multiprocessing"):
        again = graph_permutation_test(model, iris, species, cv=3, n_permutations=4, n_jobs=2)
    other = graph_permutation_test(model, iris, species, cv=3, n_permutations=4, random_state=1)
    assert_array_equal(first.permuted_scores, again.permuted_scores)
    assert first.score == again.score
    assert not np.array_equal(first.permuted_scores, other.permuted_scores)
    assert model.graph == "knn"
    assert not hasattr(model, "direction_")
    assert first.without_graph is None
    assert first.difference_without is None


def test_pipelines_frames_and_other_heads():
    pipeline = make_pipeline(StandardScaler(), LSVA(2, graph=0.5 * NeighborGraph(5) + TotalGraph()))
    arguments = {"cv": 2, "n_permutations": 2, "scoring": "centroid"}
    plain = graph_permutation_test(pipeline, iris[::2], species[::2], **arguments)
    frame = pd.DataFrame(iris[::2], columns=list("abcd"))
    names = np.array(["x", "y", "z"])[species[::2]]
    framed = graph_permutation_test(pipeline, frame, pd.Series(names), **arguments)
    assert_array_equal(plain.permuted_scores, framed.permuted_scores)
    assert plain.without_graph is not None
    assert plain.score > 0.8


def test_a_scorer_and_a_named_parameter():
    twice = make_pipeline(LPP(3), GESVC(graph="within"))
    with pytest.raises(InvalidParameterError, match=r"several graphs: gesvc__graph, lpp__graph"):
        graph_permutation_test(twice, iris, species)
    result = graph_permutation_test(
        twice,
        iris[::3],
        species[::3],
        cv=2,
        n_permutations=2,
        parameter="gesvc__graph",
        scoring="balanced_accuracy",
    )
    assert result.without_graph is not None
    with pytest.raises(InvalidParameterError, match="has no parameter 'svc__graph'"):
        graph_permutation_test(twice, iris, species, parameter="svc__graph")


def test_hidden_labels_keep_all_rows_in_the_graph():
    X, y = moons(0)
    W = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 0.02)
    model = LapSVC(kernel="rbf", C=10, graph=PrecomputedGraph(W), graph_weight=10, unlabeled=None)
    result = graph_permutation_test(model, X, y, cv=HideLabels(3), n_permutations=2)
    assert_allclose(result.score, HideLabels(3).scores(model, X, y).mean())


def test_warnings_of_permuted_graphs_are_not_shown():
    """A class that nothing separates warns: once for each fold, not for each permutation."""
    X, y = np.random.default_rng(0).standard_normal((40, 2)), np.arange(40) % 10 == 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph_permutation_test(GESVC(), X, y, cv=2, n_permutations=3)
    assert 0 < len(caught) <= 2


def result_of(score, permuted, without, noise=0.0, noise_without=0.0):
    permuted = np.array(permuted)
    interval = paired_interval(score - permuted.mean() + noise * np.array([-1, 0, 1]), 4, 1)
    plain = None
    if without is not None:
        plain = paired_interval(score - without + noise_without * np.array([-1, 0, 1]), 4, 1)
    up, down = ((1 + np.count_nonzero(m)) for m in (permuted >= score, permuted <= score))
    n = 1 + len(permuted)
    return PermutationResult(score, permuted, without, up / n, down / n, interval, plain)


@pytest.mark.parametrize(
    ("score", "permuted", "without", "words"),
    [
        (0.9, [0.8] * 19, 0.7, "The graph helps: 0.900 with it, 0.800 with permuted nodes, 0.700"),
        (0.9, [0.8] * 19, None, "The graph helps: "),
        (0.9, [0.8] * 19, 0.9, "better than a permuted one, but not better than none"),
        (0.7, [0.8] * 19, 0.6, "The graph hurts: "),
        (0.8, [0.8] * 19, 0.8, "No evidence that this graph does better than a permuted one"),
        (0.9, [0.8] * 10, 0.7, "Too few permutations to tell: .* at least 19 instead of 10"),
    ],
)
def test_the_verdict_says_what_was_found(score, permuted, without, words):
    result = result_of(score, permuted, without)
    assert re.search(words, result.verdict)
    assert str(result).startswith(result.verdict)
    assert ("Difference to no graph" in str(result)) == (without is not None)


def test_help_needs_to_be_told_apart_from_no_graph():
    for noise, words in (
        (0.01, "The graph helps: "),
        (0.5, "better than no graph, these rows cannot say: "),
    ):
        result = result_of(0.9, [0.8] * 19, 0.7, noise_without=noise)
        assert (result.difference_without.low > 0) == (noise == 0.01)
        assert words in result.verdict
    assert "hurts" in result_of(0.7, [0.8] * 19, 0.75, noise_without=0.5).verdict


def test_a_verdict_on_few_rows_says_so():
    words = "the interval over folds contains 0, so other rows may say otherwise."
    for score in (0.9, 0.7):
        assert result_of(score, [0.8] * 19, 0.8, noise=0.5).verdict.endswith(words)
        assert words not in result_of(score, [0.8] * 19, 0.8, noise=0.01).verdict


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (SVC(), {}, r"SVC\(\) has no parameter graph; it needs a method with one, such as LSVA"),
        (MRGEPSVC(), {}, r"has graph=None.*Pass a rule"),
        (LapSVC(graph_weight=0), {}, "graph_weight=0, so that no graph has any effect"),
        (LapSVC(graph="heat"), {}, "got graph='heat'"),
        (LSVA(), {"cv": 1}, "cv must be a whole number >= 2"),
        (LSVA(), {"cv": "five"}, r"HideLabels\(5\); got 'five'"),
        (LSVA(), {"n_permutations": 0}, "n_permutations must be a whole number >= 1"),
        (LSVA(), {"random_state": None}, "random_state must be a whole number >= 0"),
        (LSVA(), {"scoring": "nearest"}, "number of neighbors such as '1-nn'"),
        (BaseEstimator(), {}, "a classifier, or a transformer"),
    ],
)
def test_what_cannot_be_tested_is_refused(estimator, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        graph_permutation_test(estimator, iris, species, **options)


def test_data_that_cannot_be_tested_is_refused():
    with pytest.raises(InvalidInputError, match=r"y of shape \(3,\) for 150 rows"):
        graph_permutation_test(LSVA(), iris, species[:3])
    with pytest.raises(InvalidInputError, match="1 classes among the 150 labelled rows"):
        graph_permutation_test(LSVA(), iris, np.zeros(150))
