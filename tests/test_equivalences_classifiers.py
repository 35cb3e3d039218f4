"""GESVC and LapSVC, one against the rest, against the papers' corrected equations."""

from __future__ import annotations

import literal as lit
import numpy as np
import pytest
from test_equivalences import (
    DECISIONS,
    GRAPHS,
    N_NEIGHBORS,
    PROBLEMS,
    assert_close,
    class_weight,
    expected_decisions,
    graph_weight_in_data_units,
    laplacian,
    problem,
)

from marginfold import GESVC, LSVA, LapSVC, NeighborGraph, PrecomputedGraph
from marginfold.feature_maps.kernel_expansion import KernelExpansion

pytestmark = pytest.mark.attack("relations between fits")

KERNELS = ["linear", "rbf"]
REST = {"multiclass": "one_vs_rest"}
SETTINGS = [(1.0, 20.0, True), (100.0, 0.5, False)]  # C, raw weight, balanced


def assert_same_classifier(model, reference, p, C, balanced, labelled=None):
    """Norms, gains and decisions of all tasks; with a linear kernel the weights in input units."""
    norms = np.linalg.norm(model.directions_, axis=0)
    if isinstance(model.feature_map_, KernelExpansion):
        rows = model.feature_map_.training_rows_
        K = model.feature_map_.function(rows, rows)
        norms = np.sqrt(np.einsum("ij,ik,kj->j", model.directions_, K, model.directions_))
    np.testing.assert_allclose(norms, reference.norms, rtol=DECISIONS, err_msg="norms")
    assert_close(model.gain_, reference.gains, DECISIONS, "gains")
    expected = expected_decisions(reference, p.y, C, balanced, labelled)
    for X, decisions in zip((p.X, p.X_new), expected, strict=True):
        values = model.decision_function(X).reshape(len(X), -1)
        assert_close(values, decisions, DECISIONS, "decisions")
        if hasattr(model, "coef_"):
            assert_close(X @ model.coef_.T + model.intercept_, decisions, DECISIONS, "weights")
        predicted = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(int)
        np.testing.assert_array_equal(model.predict(X), model.classes_[predicted])


def feature_map(p, kernel):
    return "linear" if kernel == "linear" else p.kernel


def gram(p, kernel):
    """The dense kernel of the training rows, and between new and training rows."""
    return (p.X @ p.X.T, p.X_new @ p.X.T) if kernel == "linear" else (p.K, p.K_new)


# --------------------------------------------------------------------------------------------
# GESVM
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("C", "lam", "balanced"), SETTINGS)
@pytest.mark.parametrize("graph", list(GRAPHS))
@pytest.mark.parametrize("name", PROBLEMS)
def test_gesvm_q0(name, graph, C, lam, balanced):
    p = problem(name)
    model = GESVC(**REST, C=C, graph=GRAPHS[graph], graph_weight=lam, normalize_graph=False)
    model.set_params(class_weight=class_weight(balanced)).fit(p.X, p.y)
    L = laplacian(name, graph)
    reference = lit.gesvm_q0(p.X, p.y, L, lam, C, balanced=balanced, X_new=p.X_new)
    assert_same_classifier(model, reference, p, C, balanced)


@pytest.mark.parametrize(("C", "lam", "balanced"), SETTINGS)
@pytest.mark.parametrize("graph", list(GRAPHS))
@pytest.mark.parametrize("name", PROBLEMS)
def test_gesvm_q1(name, graph, C, lam, balanced):
    p = problem(name)
    model = GESVC(**REST, C=C, kernel=p.kernel, graph=GRAPHS[graph], graph_weight=lam)
    model.set_params(normalize_graph=False, class_weight=class_weight(balanced)).fit(p.X, p.y)
    L = laplacian(name, graph)
    reference = lit.gesvm_q1(p.K, p.y, L, lam, C, balanced=balanced, K_new=p.K_new)
    assert_same_classifier(model, reference, p, C, balanced)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("graph", list(GRAPHS))
@pytest.mark.parametrize("name", ["overlap", "wine"])
def test_gesvm_with_a_graph_weight_in_units_of_the_data(name, graph, kernel):
    p, C, weight = problem(name), 10.0, 0.5
    K, K_new = gram(p, kernel)
    L = laplacian(name, graph)
    lam = graph_weight_in_data_units(K, L, weight)
    model = GESVC(
        **REST, C=C, kernel=feature_map(p, kernel), graph=GRAPHS[graph], graph_weight=weight
    )
    reference = lit.gesvm_q1(K, p.y, L, lam, C, K_new=K_new)
    assert_same_classifier(model.fit(p.X, p.y), reference, p, C, False)


@pytest.mark.parametrize("graph", list(GRAPHS))
def test_gesvm_with_the_adjacency_of_the_reference(graph):
    p, C, lam = problem("wine"), 10.0, 0.5
    L = laplacian("wine", graph)
    model = GESVC(**REST, C=C, kernel=p.kernel, graph_weight=lam, normalize_graph=False)
    model.set_params(graph=PrecomputedGraph(np.diag(np.diag(L)) - L)).fit(p.X, p.y)
    reference = lit.gesvm_q1(p.K, p.y, L, lam, C, K_new=p.K_new)
    assert_same_classifier(model, reference, p, C, False)


@pytest.mark.parametrize("lam", [0.0, 0.5])
@pytest.mark.parametrize("name", PROBLEMS)
def test_printed_q1_is_gesvc_at_half_the_cost(name, lam):
    """E22: eq. (21) of 002 has no 1/2. Its lam is ours, its C = 100 is our 50, even at lam = 0."""
    p, C = problem(name), 50.0
    L = laplacian(name, "E")
    printed = lit.gesvm_q1(p.K, p.y, L, lam, 2 * C, K_new=p.K_new, printed=True)
    model = GESVC(
        **REST, C=C, kernel=p.kernel, graph=GRAPHS["E"], graph_weight=lam, normalize_graph=False
    )
    assert_same_classifier(model.fit(p.X, p.y), printed, p, C, False)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["cancer", "overlap"])
def test_gesvc_is_the_first_component_of_lsva(name, kernel):
    p = problem(name)
    params = {"C": 10.0, "kernel": feature_map(p, kernel), "class_weight": None}
    params["graph_weight"] = 1.0
    classifier, subspace = GESVC(**params).fit(p.X, p.y), LSVA(1, **params).fit(p.X, p.y)
    for X in (p.X, p.X_new):
        expected = subspace.decision_function(X)[:, 0]
        assert_close(classifier.decision_function(X), expected, DECISIONS)


# --------------------------------------------------------------------------------------------
# LapSVM
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("gamma_A", "gamma_I"), [(0.001, 0.5), (0.01, 500.0)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_lapsvm_with_belkins_parameters(name, gamma_A, gamma_I, kernel, balanced):
    p = problem(name)
    n, labelled = len(p.y), np.arange(len(p.y)) % 3 == 0
    C, lam = 1 / (2 * labelled.sum() * gamma_A), gamma_I / (gamma_A * n**2)
    model = LapSVC(**REST, C=C, kernel=feature_map(p, kernel), graph=NeighborGraph(N_NEIGHBORS))
    model.set_params(graph_weight=lam, normalize_graph=False, class_weight=class_weight(balanced))
    model.fit(p.X, np.where(labelled, p.y, -1))
    K, K_new = gram(p, kernel)
    L = laplacian(name, "E")
    reference = lit.lapsvm_belkin(
        K, p.y, L, gamma_A, gamma_I, labelled, balanced=balanced, K_new=K_new
    )
    assert_same_classifier(model, reference, p, C, balanced, labelled)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_lapsvm_with_a_graph_weight_in_units_of_the_data(name, kernel):
    """The units are those of all rows, labelled or not."""
    p, C, weight = problem(name), 10.0, 2.0
    labelled = np.arange(len(p.y)) % 3 == 0
    K, K_new = gram(p, kernel)
    L = laplacian(name, "E")
    model = LapSVC(**REST, C=C, kernel=feature_map(p, kernel), graph=NeighborGraph(N_NEIGHBORS))
    model.set_params(graph_weight=weight).fit(p.X, np.where(labelled, p.y, -1))
    lam = graph_weight_in_data_units(K, L, weight)
    reference = lit.lapsvm(K, p.y, L, lam, C, labelled, K_new=K_new)
    assert_same_classifier(model, reference, p, C, False, labelled)
