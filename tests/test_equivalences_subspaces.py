"""MMDA, LSVA and WSVDA against the papers' corrected equations, in and out of sample."""

from __future__ import annotations

import literal as lit
import numpy as np
import pytest
from test_equivalences import (
    DECISIONS,
    DIRECTIONS,
    GRAPHS,
    N_COMPONENTS,
    N_NEIGHBORS,
    ORTHOGONAL,
    PROBLEMS,
    assert_close,
    class_weight,
    expected_decisions,
    graph_weight_in_data_units,
    laplacian,
    problem,
)

from marginfold import LSVA, MMDA, WSVDA, NeighborGraph, PrecomputedGraph, WithinClassGraph

pytestmark = pytest.mark.attack("relations between fits")

KNN = NeighborGraph(N_NEIGHBORS)
KERNEL_COSTS = [10.0, 100.0]  # at C = 1 all rows are at their bound: the end after one component
PAPERS = "orthogonal"  # the deflation of the papers
PENALTIES = [(1.0, 0.05), (100.0, 20.0)]  # cost and raw graph weight


def assert_same_subspace(model, reference, p, C, balanced, labelled=None):
    """Directions, projections, norms, gains, biases and decisions of all components."""
    assert model.n_components_ == len(reference.norms)
    if reference.directions is None:
        assert_close(_distances_in_feature_space(model, reference, p), 0, DIRECTIONS, "directions")
    else:
        assert_close(model.components_.T, reference.directions, DIRECTIONS, "directions")
    assert_close(model.transform(p.X), reference.projections, DIRECTIONS, "projections")
    assert_close(model.transform(p.X_new), reference.projections_new, DIRECTIONS, "new projections")
    np.testing.assert_allclose(model.norms_, reference.norms, rtol=DECISIONS, err_msg="norms")
    assert_close(model.gain_, reference.gains, DECISIONS, "gains")
    decisions, decisions_new = expected_decisions(reference, p.y, C, balanced, labelled)
    biases = (decisions - reference.norms * reference.projections)[0]
    assert_close(model.intercepts_, biases, DECISIONS, "intercepts")
    assert_close(model.decision_function(p.X), decisions, DECISIONS, "decisions")
    assert_close(model.decision_function(p.X_new), decisions_new, DECISIONS, "new decisions")


def _distances_in_feature_space(model, reference, p):
    """||w - w'|| of the unit directions, from their coefficients on the training rows."""
    coefficients = model.feature_map_.dual_basis_ @ model.directions_
    coefficients = coefficients - coefficients.mean(axis=0)  # of phi(x_i), not of phi(x_i) - mean
    gap = coefficients - reference.coefficients
    return np.sqrt(np.maximum(0, np.einsum("ik,ij,jk->k", gap, p.K, gap)))


# --------------------------------------------------------------------------------------------
# MMDA and KMMDA
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("name", PROBLEMS)
def test_mmda(name, C, balanced):
    p = problem(name)
    model = MMDA(N_COMPONENTS, deflation=PAPERS, C=C, class_weight=class_weight(balanced)).fit(
        p.X, p.y
    )
    reference = lit.mmda(p.X, p.y, C, N_COMPONENTS, balanced=balanced, X_new=p.X_new)
    assert_same_subspace(model, reference, p, C, balanced)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("C", KERNEL_COSTS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_kmmda(name, C, balanced):
    p = problem(name)
    model = MMDA(
        N_COMPONENTS, deflation=PAPERS, C=C, kernel=p.kernel, class_weight=class_weight(balanced)
    )
    model.fit(p.X, p.y)
    reference = lit.kmmda(p.K, p.y, C, N_COMPONENTS, balanced=balanced, K_new=p.K_new)
    assert_same_subspace(model, reference, p, C, balanced)


# --------------------------------------------------------------------------------------------
# LLSVA and KLSVA
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize(("C", "lam"), PENALTIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_llsva(name, C, lam, balanced):
    p = problem(name)
    model = LSVA(
        N_COMPONENTS, deflation=PAPERS, C=C, graph=KNN, graph_weight=lam, normalize_graph=False
    )
    model.set_params(class_weight=class_weight(balanced)).fit(p.X, p.y)
    L = laplacian(name, "E")
    reference = lit.llsva(p.X, p.y, L, lam, C, N_COMPONENTS, balanced=balanced, X_new=p.X_new)
    assert_same_subspace(model, reference, p, C, balanced)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("lam", [0.05, 20.0])
@pytest.mark.parametrize("C", KERNEL_COSTS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_klsva(name, C, lam, balanced):
    p = problem(name)
    model = LSVA(N_COMPONENTS, deflation=PAPERS, C=C, kernel=p.kernel, graph=KNN, graph_weight=lam)
    model.set_params(normalize_graph=False, class_weight=class_weight(balanced)).fit(p.X, p.y)
    L = laplacian(name, "E")
    reference = lit.klsva(p.K, p.y, L, lam, C, N_COMPONENTS, balanced=balanced, K_new=p.K_new)
    assert_same_subspace(model, reference, p, C, balanced)


@pytest.mark.parametrize("graph", list(GRAPHS))
@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_lsva_with_a_graph_weight_in_units_of_the_data(name, graph):
    p, C, weight = problem(name), 10.0, 0.5
    L = laplacian(name, graph)
    model = LSVA(N_COMPONENTS, deflation=PAPERS, C=C, graph=GRAPHS[graph], graph_weight=weight)
    lam = graph_weight_in_data_units(p.X @ p.X.T, L, weight)
    reference = lit.llsva(p.X, p.y, L, lam, C, N_COMPONENTS, X_new=p.X_new)
    assert_same_subspace(model.fit(p.X, p.y), reference, p, C, True)

    model.set_params(kernel=p.kernel)
    lam = graph_weight_in_data_units(p.K, L, weight)
    reference = lit.klsva(p.K, p.y, L, lam, C, N_COMPONENTS, K_new=p.K_new)
    assert_same_subspace(model.fit(p.X, p.y), reference, p, C, True)


@pytest.mark.parametrize(
    ("graph", "literal"),
    [
        (NeighborGraph(N_NEIGHBORS, width=2.0), {"width": 2.0}),  # 000: t = 2 sigma^2, sigma = 1
        (NeighborGraph(N_NEIGHBORS, weights="binary"), {"width": None}),
        (NeighborGraph(N_NEIGHBORS, mode="mutual"), {"mutual": True}),
        (
            NeighborGraph(N_NEIGHBORS, mode="mutual", weights="binary"),
            {"mutual": True, "width": None},
        ),
    ],
)
@pytest.mark.parametrize("name", ["overlap", "wine"])
def test_llsva_with_other_neighbour_graphs(name, graph, literal):
    p, C, lam = problem(name), 10.0, 1.0
    model = LSVA(
        N_COMPONENTS, deflation=PAPERS, C=C, graph=graph, graph_weight=lam, normalize_graph=False
    )
    L = lit.knn_graph(p.X, N_NEIGHBORS, **literal)
    reference = lit.llsva(p.X, p.y, L, lam, C, N_COMPONENTS, X_new=p.X_new)
    assert_same_subspace(model.fit(p.X, p.y), reference, p, C, True)


@pytest.mark.parametrize("graph", list(GRAPHS))
@pytest.mark.parametrize("name", ["cancer", "four blobs"])
def test_llsva_with_the_adjacency_of_the_reference(name, graph):
    p, C, lam = problem(name), 10.0, 0.5
    L = laplacian(name, graph)
    model = LSVA(N_COMPONENTS, deflation=PAPERS, C=C, graph_weight=lam, normalize_graph=False)
    model.set_params(graph=PrecomputedGraph(np.diag(np.diag(L)) - L)).fit(p.X, p.y)
    reference = lit.llsva(p.X, p.y, L, lam, C, N_COMPONENTS, X_new=p.X_new)
    assert_same_subspace(model, reference, p, C, True)


def test_llsva_with_a_sum_of_graphs():
    p, C = problem("wine"), 10.0
    L = 0.3 * laplacian("wine", "E") + laplacian("wine", "W")
    model = LSVA(
        N_COMPONENTS,
        deflation=PAPERS,
        C=C,
        graph=0.3 * KNN + WithinClassGraph(),
        normalize_graph=False,
    )
    reference = lit.llsva(p.X, p.y, L, 1.0, C, N_COMPONENTS, X_new=p.X_new)
    assert_same_subspace(model.fit(p.X, p.y), reference, p, C, True)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("graph", ["E", "W"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_semi_supervised_lsva(name, graph, balanced):
    p, C, lam = problem(name), 10.0, 0.5
    labelled = np.arange(len(p.y)) % 5 < 3
    y = np.where(labelled, p.y, -1)
    L = lit.within_graph(y, labelled) if graph == "W" else laplacian(name, graph)
    model = LSVA(3, deflation=PAPERS, C=C, graph=GRAPHS[graph], graph_weight=lam, unlabeled=-1)
    model.set_params(
        normalize_graph=False, tasks="one_vs_rest", class_weight=class_weight(balanced)
    )
    model.fit(p.X, y)
    reference = lit.llsva(
        p.X, p.y, L, lam, C, 3, balanced=balanced, labelled=labelled, X_new=p.X_new
    )
    assert_same_subspace(model, reference, p, C, balanced, labelled)

    model.set_params(kernel=p.kernel).fit(p.X, y)
    reference = lit.klsva(
        p.K, p.y, L, lam, C, 3, balanced=balanced, labelled=labelled, K_new=p.K_new
    )
    assert_same_subspace(model, reference, p, C, balanced, labelled)


def test_printed_kernel_deflation_fails_the_orthogonality_that_lsva_passes():
    """E1: eq. (9) of 000 returns to the first direction, and so does it with its index mended."""
    p, C, lam = problem("cancer"), 10.0, 0.5
    L = laplacian("cancer", "E")
    model = LSVA(N_COMPONENTS, deflation=PAPERS, C=C, kernel=p.kernel, graph=KNN, graph_weight=lam)
    model.set_params(normalize_graph=False).fit(p.X, p.y)
    assert _overlap_of_directions(model.transform(p.X), p.K) < ORTHOGONAL
    assert_close(model.components_ @ model.components_.T, np.eye(N_COMPONENTS), ORTHOGONAL)
    for index_fixed in (False, True):
        printed = lit.klsva_printed(p.K, p.y, L, lam, C, 3, index_fixed=index_fixed)
        assert _overlap_of_directions(printed, p.K) > 0.99


def _overlap_of_directions(projections, K):
    """Largest |w_j'w_k - [j = k]|, from the values w_k'phi(x_i) on the training rows."""
    H = np.eye(len(K)) - 1 / len(K)
    _, E = lit.explicit_features(H @ K @ H)
    W = E.T @ (H @ projections)
    return np.abs(W.T @ W - np.eye(W.shape[1])).max()


# --------------------------------------------------------------------------------------------
# WSVDA
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize(("C", "ridge"), [(1.0, 1e-1), (100.0, 1e-3)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_wsvda(name, C, ridge, balanced):
    p = problem(name)
    model = WSVDA(N_COMPONENTS, C=C, ridge=ridge, class_weight=class_weight(balanced))
    eps = _ridge(p.X, p.y, ridge)
    reference = lit.wsvda(p.X, p.y, eps, C, N_COMPONENTS, balanced=balanced, X_new=p.X_new)
    assert_same_subspace(model.fit(p.X, p.y), reference, p, C, balanced)


@pytest.mark.parametrize("name", PROBLEMS)
def test_wsvda_at_half_the_cost_is_the_printed_objective(name):
    """E14: eq. (15) of 001 has no 1/2."""
    p, C = problem(name), 10.0
    eps = _ridge(p.X, p.y, 1e-2)
    printed = lit.wsvda(p.X, p.y, eps, C, N_COMPONENTS, X_new=p.X_new, printed=True)
    model = WSVDA(N_COMPONENTS, C=C / 2, ridge=1e-2).fit(p.X, p.y)
    assert_same_subspace(model, printed, p, C / 2, True)


@pytest.mark.parametrize("name", PROBLEMS)
def test_kernel_wsvda_is_wsvda_on_explicit_features(name):
    p, C, ridge = problem(name), 10.0, 1e-2
    n = len(p.y)
    H = np.eye(n) - 1 / n
    Phi, E = lit.explicit_features(H @ p.K @ H)
    Phi_new = (p.K_new - p.K.mean(axis=0)) @ H @ E
    model = WSVDA(N_COMPONENTS, C=C, ridge=ridge, kernel=p.kernel).fit(p.X, p.y)
    eps = _ridge(Phi, p.y, ridge)
    reference = lit.wsvda(Phi, p.y, eps, C, N_COMPONENTS, X_new=Phi_new)
    in_feature_space = lit.LiteralSubspace(
        **vars(reference) | {"directions": None, "coefficients": H @ E @ reference.directions}
    )
    assert_same_subspace(model, in_feature_space, p, C, True)


def _ridge(X, y, share):
    """eps as documented: a share of the mean eigenvalue of S_W."""
    return share * np.trace(lit.within_scatter(X, y)) / X.shape[1]


# --------------------------------------------------------------------------------------------
# Weights of rows and classes
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", ["W", "C"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_sample_weights_are_costs_and_masses(name, graph):
    """L of weighted rows is that of the weighted scatter: W_ij = s_i s_j / sum of their s."""
    p, C, lam = problem(name), 10.0, 0.5
    s = np.random.default_rng(0).uniform(0.3, 3.0, len(p.y))
    together = (p.y[:, None] == p.y) if graph == "W" else np.ones((len(p.y), len(p.y)))
    L = lit.laplacian(together * np.outer(s, s) / (together @ s))
    model = LSVA(
        N_COMPONENTS,
        deflation=PAPERS,
        C=C,
        graph=GRAPHS[graph],
        graph_weight=lam,
        class_weight=None,
    )
    model.set_params(normalize_graph=False).fit(p.X, p.y, sample_weight=s)
    reference = lit.llsva(p.X, p.y, L, lam, C * s, N_COMPONENTS, balanced=False, X_new=p.X_new)
    assert_close(model.components_.T, reference.directions, DIRECTIONS)
    centre = np.average(p.X, axis=0, weights=s)
    for X in (p.X, p.X_new):
        assert_close(model.transform(X), (X - centre) @ reference.directions, DIRECTIONS)
    decisions, decisions_new = expected_decisions(reference, p.y, C * s, False)
    assert_close(model.decision_function(p.X), decisions, DECISIONS)
    assert_close(model.decision_function(p.X_new), decisions_new, DECISIONS)


@pytest.mark.parametrize("estimator", ["LSVA", "WSVDA", "kernel LSVA"])
@pytest.mark.parametrize("name", ["overlap", "wine"])
def test_sample_weights_are_repeated_rows(name, estimator):
    """Weight 2 is the row twice and weight 0 the row absent, for costs, balance and graph."""
    p, C = problem(name), 10.0
    times = np.arange(len(p.y)) % 3
    rows = np.repeat(np.arange(len(p.y)), times)
    X, y, K = p.X[rows], p.y[rows], p.K[np.ix_(rows, rows)]
    if estimator == "WSVDA":
        model = WSVDA(3, C=C, ridge=1e-2)
        reference = lit.wsvda(X, y, _ridge(X, y, 1e-2), C, 3, X_new=p.X_new)
    elif estimator == "LSVA":
        model = LSVA(3, deflation=PAPERS, C=C, graph="within", graph_weight=0.5)
        lam = graph_weight_in_data_units(X @ X.T, lit.within_graph(y), 0.5)
        reference = lit.llsva(X, y, lit.within_graph(y), lam, C, 3, X_new=p.X_new)
    else:
        model = LSVA(3, deflation=PAPERS, C=C, graph="within", graph_weight=0.5, kernel=p.kernel)
        lam = graph_weight_in_data_units(K, lit.within_graph(y), 0.5)
        reference = lit.klsva(K, y, lit.within_graph(y), lam, C, 3, K_new=p.K_new[:, rows])
    model.fit(p.X, p.y, sample_weight=times)
    assert_close(model.transform(X), reference.projections, DIRECTIONS)
    assert_close(model.transform(p.X_new), reference.projections_new, DIRECTIONS)
    decisions, decisions_new = expected_decisions(reference, y, C, True)
    assert_close(model.decision_function(X), decisions, DECISIONS)
    assert_close(model.decision_function(p.X_new), decisions_new, DECISIONS)


@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_class_weights_are_costs(name):
    p = problem(name)
    weights = {0: 0.7, 1: 2.0}
    model = LSVA(
        N_COMPONENTS,
        deflation=PAPERS,
        C=10.0,
        graph=KNN,
        class_weight=weights,
        normalize_graph=False,
    )
    C = 10.0 * np.array([weights.get(label, 1.0) for label in p.y])
    L = laplacian(name, "E")
    reference = lit.llsva(p.X, p.y, L, 1.0, C, N_COMPONENTS, balanced=False, X_new=p.X_new)
    assert_same_subspace(model.fit(p.X, p.y), reference, p, C, False)
