"""GESVC and LapSVC, one against one: every pair by itself, and what the pairs say together."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_wine, make_blobs, make_classification
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsOneClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from marginfold import (
    GESVC,
    ExactKernel,
    InteriorPoint,
    LapSVC,
    LibSVM,
    LowRankKernel,
    NeighborGraph,
    PrecomputedGraph,
)
from marginfold.data.models import load_model, save_model
from marginfold.errors import CancelledError, ExhaustedWarning, InvalidParameterError
from marginfold.estimators.multiclass import class_pairs, one_vs_one_values
from marginfold.estimators.paths import path
from marginfold.runtime.progress import watch

X, Y = load_wine(return_X_y=True)
X = scale(X)
FEW = np.where(np.arange(len(Y)) % 3 == 0, Y, -1)

KERNELS = {
    "linear": "linear",
    "rbf": ExactKernel("rbf", gamma=0.1),
    "laplacian": "laplacian",
    "low rank": LowRankKernel("rbf", gamma=0.1, rank=150),
}


def alone(model, rows, labels, code_of, pair):
    """Fit the two-class machine of one pair on its rows, with the metric of the graph on all."""
    L = model.graph.build(rows).scatter(np.eye(len(rows)))
    known = np.isin(labels, pair)
    two = GESVC(**{**model.get_params(deep=False), "unlabeled": "none"})
    two.set_params(graph=PrecomputedGraph(np.diag(np.diag(L)) - L))
    return two.fit(rows, np.where(known, np.asarray(labels).astype(str), "none"))


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("labels", [Y, FEW], ids=["labelled", "partly"])
def test_each_pair_is_the_machine_of_its_two_classes_with_the_graph_of_all_rows(kernel, labels):
    model = GESVC(C=3.0, kernel=kernel, graph=NeighborGraph(5), graph_weight=2.0, unlabeled=-1)
    model.fit(X, labels)
    margins = model.feature_map_.transform(X) @ model.directions_ + model.intercepts_
    for column, pair in enumerate(combinations(range(3), 2)):
        two = alone(model, X, labels, Y, pair)
        assert_allclose(margins[:, column], two.decision_function(X), atol=1e-6)
        assert_array_equal(model.pairs_[column], pair)
    assert_allclose(model.decision_function(X), voted(margins, 3), atol=1e-9)


def voted(margins, n_classes):
    """Votes of the pairs, and a third of the squashed sum of margins, each cut at 1."""
    values = np.zeros((len(margins), n_classes))
    for row, own in enumerate(margins):
        votes, sums = np.zeros(n_classes), np.zeros(n_classes)
        for (first, second), margin in zip(combinations(range(n_classes), 2), own, strict=True):
            votes[second if margin > 0 else first] += 1.0
            sums[second] += min(max(margin, -1.0), 1.0)
            sums[first] -= min(max(margin, -1.0), 1.0)
        values[row] = votes + sums / (3.0 * (np.abs(sums) + 1.0))
    return values


@pytest.mark.parametrize("balanced", [None, "balanced"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine", "precomputed"])
def test_without_a_graph_it_predicts_as_pairs_of_two_class_machines(kernel, balanced):
    rows = X @ X.T if kernel == "precomputed" else X
    gamma = 1.0 / (X.shape[1] * X.var())
    own = kernel if kernel in ("linear", "precomputed") else ExactKernel(kernel, gamma=gamma)
    model = GESVC(kernel=own, graph_weight=0.0, class_weight=balanced)
    ours = model.fit(rows, Y)
    theirs = OneVsOneClassifier(model).fit(rows, Y)
    columns = theirs.pairwise_indices_ or [slice(None)] * 3
    pairs = zip(theirs.estimators_, columns, strict=True)
    margins = np.column_stack([two.decision_function(rows[:, own]) for two, own in pairs])
    assert_allclose(ours.decision_function(rows), voted(margins, 3), atol=1e-6)


def test_a_pair_that_knows_neither_class_does_not_decide_a_tie():
    """Margins of far rows grow without bound where they mean nothing: SVC's sums follow them."""
    X, y = make_classification(
        3000,
        16,
        n_informative=12,
        n_classes=20,
        n_clusters_per_class=3,
        class_sep=2.5,
        random_state=0,
    )
    model = GESVC(graph_weight=0.0).fit(X[:2000], y[:2000])
    margins = X[2000:] @ model.coef_.T + model.intercept_
    by_sums = one_vs_one_values(margins, 20).argmax(axis=1)
    assert model.score(X[2000:], y[2000:]) > np.mean(by_sums == y[2000:])


def test_the_machines_are_those_of_svc_and_vote():
    digits, y = load_digits(return_X_y=True)
    digits = digits[:600] / 16
    exact = {"C": 10.0, "gamma": 0.1, "tol": 1e-9}
    svc = SVC(**exact, decision_function_shape="ovo").fit(digits[:400], y[:400])
    ours = GESVC(C=10.0, kernel=ExactKernel(gamma=0.1), graph_weight=0.0)
    ours.fit(digits[:400], y[:400])
    values = voted(-svc.decision_function(digits), 10)  # its margins are positive for the first
    assert_allclose(ours.decision_function(digits), values, rtol=0, atol=1e-5)
    assert ours.gap_.shape == (45,)
    assert (ours.gap_ <= 1e-8).all()


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_names_and_order_of_classes_and_rows_do_not_matter(kernel):
    model = GESVC(kernel=kernel, C=2.0)
    values = model.fit(X, Y).decision_function(X)
    names = np.array(["b", "c", "a"])  # sorted, the last class comes first
    order = np.random.default_rng(0).permutation(len(X))
    renamed = model.fit(X[order], names[Y][order])
    assert_array_equal(renamed.classes_, ["a", "b", "c"])
    assert_allclose(renamed.decision_function(X)[:, [1, 2, 0]], values, atol=1e-6)


@pytest.mark.parametrize("weighting", [None, "balanced", {0: 3.0, 2: 0.5}])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_weights_are_copies(kernel, weighting):
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    model = LapSVC(kernel=kernel, class_weight=weighting)
    if kernel == "laplacian":
        model.set_params(kernel=ExactKernel("laplacian", gamma=0.1))
    weighted = model.fit(X, FEW, sample_weight=weights).decision_function(X)
    copied = model.fit(np.repeat(X, weights, axis=0), np.repeat(FEW, weights))
    assert_allclose(weighted, copied.decision_function(X), atol=1e-6)


def test_unlabelled_rows_change_every_pair():
    rows, y = make_blobs([30, 30, 200], random_state=0, cluster_std=3.0)
    y[60:] = -1  # the third blob has no class: the graph alone knows it
    rows, y = np.vstack([rows, rows[:30] + 9.0]), np.append(y, np.full(30, 2))
    every = LapSVC(kernel="rbf").fit(rows, y).decision_function(rows)
    known = LapSVC(kernel="rbf").fit(rows[y != -1], y[y != -1]).decision_function(rows)
    assert np.abs(every - known).max(axis=0).min() > 1e-3


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_path_is_separate_fits(kernel):
    model = GESVC(kernel=kernel)
    for member in path(model, X, Y, C=[1, 10], graph_weight=[0.0, 0.3, 3.0]):
        separate = GESVC(**member.get_params(deep=False)).fit(X, Y)
        assert_allclose(member.decision_function(X), separate.decision_function(X), atol=1e-7)
        assert (member.gap_ <= member.tol).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("solver", ["interior_point", "libsvm", InteriorPoint(), LibSVM()])
def test_every_solver_finds_the_same_machines(kernel, solver):
    expected = GESVC(kernel=kernel).fit(X, Y).decision_function(X)
    found = GESVC(kernel=kernel, solver=solver).fit(X, Y)
    assert_allclose(found.decision_function(X), expected, atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_sparse_rows_are_the_same_rows(kernel, weight):
    rows = np.where(np.abs(X) > 0.5, X, 0.0)
    model = GESVC(kernel=kernel, graph_weight=weight)
    expected = model.fit(rows, Y).decision_function(rows)
    sparse = model.fit(sp.csr_array(rows), Y).decision_function(sp.csr_array(rows))
    assert_allclose(sparse, expected, atol=1e-7)


@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_copies_and_files_are_the_model(tmp_path, kernel, weight):
    model = GESVC(kernel=kernel, graph_weight=weight).fit(X, Y)
    expected = model.decision_function(X)
    assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), expected)
    save_model(model, tmp_path / "model.skops")
    assert_array_equal(load_model(tmp_path / "model.skops").decision_function(X), expected)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_class_with_one_row_is_found_at_its_place(kernel):
    rows = np.vstack([X, np.full(13, 8.0)])
    y = np.append(Y, 3)
    model = GESVC(kernel=kernel, C=10.0).fit(rows, y)
    assert model.predict(rows[-1:])[0] == 3
    assert model.score(rows, y) > 0.98


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_classes_of_equal_rows_have_half_a_vote_each_and_the_others_are_told_apart(kernel):
    rows, y = np.vstack([X, X[Y == 2]]), np.append(Y, np.full(np.count_nonzero(Y == 2), 3))
    with pytest.warns(ExhaustedWarning, match="pairs of classes .*: 2 and 3"):
        model = GESVC(kernel=kernel, C=10.0).fit(rows, y)
    same = [i for i, pair in enumerate(class_pairs(4)) if pair == (2, 3)]
    assert not model.directions_[:, same].any()
    assert not model.intercepts_[same].any()
    values = model.decision_function(rows)
    assert_allclose(values[:, 2], values[:, 3], atol=1e-6)
    merged = np.minimum(model.predict(rows), 2)
    assert np.mean(merged == np.minimum(y, 2)) > 0.98


@pytest.mark.parametrize("kernel", [pytest.param("linear", marks=pytest.mark.torture), "rbf"])
def test_two_hundred_classes(kernel):
    rows, y = make_blobs(1000, 20, centers=200, cluster_std=0.5, random_state=0)
    model = GESVC(kernel=kernel, C=10.0).fit(rows, y)
    assert model.gap_.shape == (19_900,)
    assert (model.gap_ <= model.tol).all()
    values = model.decision_function(rows)
    assert values.shape == (1000, 200)
    assert_array_equal(values.argmax(axis=1), y)


def test_columns_rank_rows_by_class():
    values = GESVC().fit(X, Y).decision_function(X)
    for code in range(3):
        assert roc_auc_score(Y == code, values[:, code]) > 0.99


def test_many_rows_of_a_named_kernel_have_a_low_rank_that_says_its_error():
    rows, y = make_classification(5200, 6, n_informative=4, n_classes=3, random_state=0)
    rows = scale(rows)
    few = GESVC(kernel="rbf").fit(rows, y)
    assert isinstance(few.feature_map_, LowRankKernel)
    assert few.kernel_error_ == few.feature_map_.relative_error_ > 0
    assert few.kernel_error_ <= 0.05
    plain = GESVC(kernel="rbf", graph_weight=0.0).fit(rows, y)
    assert plain.kernel_error_ == 0
    assert few.score(rows, y) > plain.score(rows, y) - 0.01
    assert GESVC(kernel="rbf").fit(X, Y).kernel_error_ == 0


def test_another_word_is_refused():
    with pytest.raises(InvalidParameterError, match=r"multiclass must be .*one_vs_one"):
        GESVC(multiclass="ovo").fit(X, Y)


@pytest.mark.parametrize("stage", ["form of the graph", "whitening", "machines"])
def test_a_fit_can_be_cancelled_between_the_blocks_of_its_factorisations(stage):
    def cancel(event):
        if event.stage == stage:
            event.cancel()

    model = GESVC(kernel="rbf")
    with pytest.raises(CancelledError), watch(cancel):
        model.fit(X, Y)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([20, 20, 20], "Both classes have half a vote[.]"),
        ([2, 60, 20], "The vote goes to the class whose costs are more than 19 times"),
    ],
)
def test_the_warning_says_who_has_the_vote_of_a_pair_without_a_machine(sizes, said):
    """The first two classes are copies of one row, the third lies apart."""
    labels = np.repeat([0, 1, 2], sizes)
    rows = np.where(labels[:, None] == 2, [[5.0, 1.0]], [[0.0, 1.0]])
    with pytest.warns(ExhaustedWarning, match=f"0 and 1[.] {said}"):
        model = GESVC().fit(rows, labels)
    votes = np.round(model.decision_function([[0.0, 1.0]])[0])
    if sizes[0] == sizes[1]:
        assert votes[0] == votes[1]
    else:
        assert votes[1] == votes[0] + 1


@pytest.mark.parametrize("graph_weight", [0.0, 0.5])
@pytest.mark.parametrize("multiclass", ["one_vs_one", "one_vs_rest"])
def test_a_given_kernel_of_rows_far_from_the_origin_is_as_certain_as_one_of_centred_rows(
    graph_weight, multiclass
):
    far = X + 1e4
    options = {"C": 10.0, "graph": "within", "graph_weight": graph_weight, "multiclass": multiclass}
    given = GESVC(kernel="precomputed", **options).fit(far @ far.T, Y)
    linear = GESVC(**options).fit(X, Y)
    assert given.gap_.max() < 1e-8
    assert_allclose(given.gain_, linear.gain_, atol=1e-6)
    found = given.feature_map_.images(far @ far.T, given.directions_) + given.intercepts_
    assert_allclose(found, X @ linear.coef_.T + linear.intercept_, atol=1e-3)


@pytest.mark.parametrize("C", [1.0, 400.0])
def test_the_gap_of_a_kernel_with_a_graph_is_that_of_the_kernel_itself(C):
    """Not of one with a larger diagonal: the bound is that of another solver, without factors."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((150, 4))
    labels = np.where(rows[:, 0] + rng.standard_normal(150) > 0, 1.0, -1.0)
    graph, lam = NeighborGraph(), 0.3
    model = GESVC(
        kernel=ExactKernel("rbf", gamma=0.2),
        C=C,
        graph=graph,
        graph_weight=lam,
        normalize_graph=False,
    ).fit(rows, labels)
    K, L = rbf_kernel(rows, gamma=0.2), graph.build(rows).scatter(np.eye(150))
    alpha, b = model.directions_[:, 0], model.intercepts_[0]
    f = K @ alpha
    assert_allclose(f + b, model.decision_function(rows), atol=1e-8)
    hinge = np.maximum(1.0 - labels * (f + b), 0.0)
    objective = 0.5 * (f @ alpha + lam * f @ L @ f) + C * hinge.sum()

    G = np.linalg.solve(np.eye(150) + lam * K @ L, K)
    oracle = SVC(C=C, kernel="precomputed", tol=1e-10).fit((G + G.T) / 2, labels)
    signed = np.zeros(150)
    signed[oracle.support_] = oracle.dual_coef_[0]
    bound = np.abs(signed).sum() - 0.5 * signed @ G @ signed
    true_gap = (objective - bound) / objective
    assert true_gap <= model.gap_[0] + 1e-10
    assert model.gap_[0] <= 1e-8


@pytest.mark.parametrize("n_columns", [6, 130])
def test_many_pairs_are_the_same_by_columns_of_the_kernel_and_by_the_whole_of_it(n_columns):
    rng = np.random.default_rng(n_columns)
    labels = np.arange(800) % 20
    rows = rng.standard_normal((800, n_columns)) + rng.standard_normal((20, n_columns))[labels]
    found = GESVC(kernel=ExactKernel("rbf", gamma=0.1), C=3.0, graph_weight=0).fit(rows, labels)
    K = rbf_kernel(rows, gamma=0.1)
    whole = GESVC(kernel="precomputed", C=3.0, graph_weight=0).fit(K, labels)
    assert found.gap_.max() <= 1e-8
    assert_allclose(found.gain_, whole.gain_, atol=1e-7)
    assert_allclose(found.decision_function(rows), whole.decision_function(K), atol=1e-4)


def test_many_pairs_of_rows_far_from_the_origin_keep_their_certificate():
    rng = np.random.default_rng(0)
    labels = np.arange(800) % 20
    rows = rng.standard_normal((800, 6)) + 2.0 * rng.standard_normal((20, 6))[labels]
    kernel = ExactKernel("linear")
    near, far = (GESVC(kernel=kernel, graph_weight=0).fit(X, labels) for X in (rows, rows + 300.0))
    assert far.gap_.max() <= 1e-10
    assert_allclose(far.gain_, near.gain_, atol=1e-9)
