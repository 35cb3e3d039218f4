"""The smallest pairs of sparse Laplacians: closed forms, a dense oracle, every route."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginfold.errors import SolverError
from marginfold.linalg import smallest_pairs, sparse

ITERATE = {"sparse.DENSE_NODES": 0, "sparse.DENSE_MULTIPLE": 0}
WIDE = ITERATE | {"sparse.NARROW_FRONT": -1}
ROUTES = {
    "decomposed": {},
    "sparse factor": ITERATE,
    "dense factor": WIDE,
    "no factor": WIDE | {"sparse.FACTORED_NODES": 0, "sparse.WIDE_FRONT": -1},
}


@pytest.fixture(params=ROUTES, ids=lambda name: name.replace(" ", "_"))
def route(request, monkeypatch):
    take(ROUTES[request.param], monkeypatch)


def take(constants, monkeypatch):
    for name, value in constants.items():
        monkeypatch.setattr(f"marginfold.linalg.{name}", value)


def laplacian(W):
    W = sp.csr_array(W)
    degrees = W.sum(axis=1)
    return sp.csr_array(sp.diags_array(degrees) - W), degrees


def path(n):
    return sp.csr_array(sp.diags_array([np.ones(n - 1)] * 2, offsets=[1, -1]))


def cycle(n):
    W = path(n).tolil()
    W[0, n - 1] = W[n - 1, 0] = 1
    return sp.csr_array(W)


def torus(n):
    return sp.kron(cycle(n), sp.eye_array(n)) + sp.kron(sp.eye_array(n), cycle(n))


def random_graph(n, seed, share=0.1):
    W = np.random.default_rng(seed).random((n, n))
    W = np.triu(W * (W < share), 1)
    W += np.diag(np.full(n - 1, 0.01), 1)  # connected
    return W + W.T


def dense_oracle(L, degrees):
    return scipy.linalg.eigh(L.toarray(), np.diag(degrees))


def check(pairs, L, degrees):
    """The definition: eigenvectors, orthonormal in D, orthogonal to the constant."""
    V = pairs.vectors
    assert_allclose(L @ V, degrees[:, None] * V * pairs.values, atol=1e-12)
    assert_allclose(V.T @ (degrees[:, None] * V), np.eye(len(pairs.values)), atol=1e-12)
    assert_allclose(degrees @ V, 0.0, atol=1e-11)
    assert pairs.residual <= 1e-12


@pytest.mark.usefixtures("route")
def test_a_path_has_the_eigenvalues_of_the_cosine():
    L, degrees = laplacian(path(120))
    pairs = smallest_pairs(L, degrees, 4, squared=True)
    assert_allclose(pairs.values, 1 - np.cos(np.pi * np.arange(1, 5) / 119), atol=1e-14)
    check(pairs, L, degrees)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("k", [1, 3, 6])
def test_an_eigenvalue_is_found_as_often_as_it_occurs(k):
    L, degrees = laplacian(torus(15))
    angle = 1 - np.cos(2 * np.pi * np.arange(15) / 15)
    exact = np.sort((angle[:, None] + angle).ravel() / 2)[1 : k + 1]
    pairs = smallest_pairs(L, degrees, k, squared=True)
    assert_allclose(pairs.values, exact, atol=1e-14)
    check(pairs, L, degrees)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("start", range(4))
def test_no_copy_of_an_eigenvalue_is_missed(start, monkeypatch):
    """A cube of eight dimensions: 2/8 eight times, 4/8 twenty-eight times."""
    monkeypatch.setattr("marginfold.linalg.sparse.START", 100 * start)
    cube = path(2)
    for _ in range(7):
        cube = sp.kron(cube, sp.eye_array(2)) + sp.kron(sp.eye_array(cube.shape[0]), path(2))
    L, degrees = laplacian(cube)
    pairs = smallest_pairs(L, degrees, 9, squared=True)
    assert_allclose(pairs.values, [0.25] * 8 + [0.5], atol=1e-13)
    check(pairs, L, degrees)


@pytest.mark.parametrize("route", list(ROUTES)[1:], indirect=True)
@pytest.mark.usefixtures("route")
def test_a_vector_that_is_not_exact_is_searched_for_anew(monkeypatch):
    """Lanczos may break off early where an eigenvalue occurs often; which one, rounding decides."""
    plain, calls = sparse.eigsh, []

    def hasty(*args, **options):
        values, vectors = plain(*args, **options)
        calls.append(options["k"])
        if len(calls) == 1:
            vectors[:, -1] += 1e-8 * np.random.default_rng(0).standard_normal(len(vectors))
        return values, vectors

    monkeypatch.setattr(sparse, "eigsh", hasty)
    L, degrees = laplacian(torus(15))
    angle = 1 - np.cos(2 * np.pi * np.arange(15) / 15)
    exact = np.sort((angle[:, None] + angle).ravel() / 2)[1:7]
    pairs = smallest_pairs(L, degrees, 6, squared=True)
    assert len(calls) > 2
    assert_allclose(pairs.values, exact, atol=1e-14)
    check(pairs, L, degrees)


@pytest.mark.usefixtures("route")
def test_dense_decomposition_agrees():
    L, degrees = laplacian(random_graph(150, 0))
    pairs = smallest_pairs(L, degrees, 5, squared=True)
    values, vectors = dense_oracle(L, degrees)
    assert_allclose(pairs.values, values[1:6], atol=1e-12)
    overlap = np.abs(pairs.vectors.T @ (degrees[:, None] * vectors[:, 1:6]))
    assert_allclose(overlap, np.eye(5), atol=1e-9)
    check(pairs, L, degrees)


@pytest.mark.parametrize("route", list(ROUTES)[:3], indirect=True)
@pytest.mark.usefixtures("route")
def test_tiny_eigenvalues_of_a_square():
    L = path(200)
    L = sp.diags_array(L.sum(axis=1)) - L
    pairs = smallest_pairs(sp.csr_array(L @ L), np.ones(200), 3, squared=True)
    exact = (2 - 2 * np.cos(np.pi * np.arange(1, 4) / 200)) ** 2  # 6e-8 of a norm of 16
    assert_allclose(pairs.values, exact, atol=1e-14)


@pytest.mark.usefixtures("route")
def test_the_same_matrix_gives_the_same_bits():
    L, degrees = laplacian(random_graph(90, 1))
    first, second = (smallest_pairs(L, degrees, 3, squared=True) for _ in range(2))
    assert_array_equal(first.vectors, second.vectors)
    assert_array_equal(first.values, second.values)


@pytest.mark.usefixtures("route")
def test_parts_are_told_apart_before_anything_else():
    graphs = [random_graph(n, n) for n in (20, 90, 40)]
    L, degrees = laplacian(sp.block_diag(graphs))
    part = np.repeat([0, 1, 2], [20, 90, 40])
    pairs = smallest_pairs(L, degrees, 5, squared=True)
    assert pairs.n_parts == 3
    assert_array_equal(pairs.values[:2], 0.0)
    mass = np.bincount(part, weights=degrees)
    assert mass[1] > mass[2] > mass[0]
    first, second = pairs.vectors[:, 0], pairs.vectors[:, 1]
    assert first[part == 1].min() == first[part == 1].max() > 0  # the heaviest ...
    assert first[part != 1].min() == first[part != 1].max() < 0  # ... against the rest
    assert_array_equal(second[part == 1], 0.0)
    assert second[part == 2].min() > 0 > second[part == 0].max()
    exact = np.sort(np.concatenate([dense_oracle(*laplacian(W))[0][1:4] for W in graphs]))
    assert_allclose(pairs.values[2:], exact[:3], atol=1e-12)
    check(pairs, L, degrees)


def test_equal_parts_share_their_eigenvalues():
    L, degrees = laplacian(sp.block_diag([path(30)] * 4))
    pairs = smallest_pairs(L, degrees, 9)
    slow = 1 - np.cos(np.pi * np.array([1, 1, 1, 1, 2, 2]) / 29)
    assert_allclose(pairs.values, [0, 0, 0, *slow], atol=1e-14)
    check(pairs, L, degrees)


def test_more_parts_than_pairs_need_no_decomposition(monkeypatch):
    monkeypatch.setattr(scipy.linalg, "eigh", None)
    L, degrees = laplacian(sp.block_diag([path(3)] * 300))
    pairs = smallest_pairs(L, degrees, 2)
    assert (pairs.n_parts, pairs.values.tolist()) == (300, [0.0, 0.0])


def test_edges_below_rounding_join_nothing():
    W = sp.block_diag([path(10), path(10)]).toarray()
    W[9, 10] = W[10, 9] = 1e-18
    L, degrees = laplacian(W)
    assert smallest_pairs(L, degrees, 1).n_parts == 2
    W[9, 10] = W[10, 9] = 1e-9
    pairs = smallest_pairs(*laplacian(W), 1)
    assert pairs.n_parts == 1
    assert 0 < pairs.values[0] < 1e-9


def test_weak_nodes_are_joined_whatever_their_scale():
    """Not the weight of an edge counts but its share of the degrees at its ends."""
    W = path(12).toarray()
    W[10, 11] = W[11, 10] = 1e-25
    L, degrees = laplacian(W)
    assert smallest_pairs(L, degrees, 3).n_parts == 1


@pytest.mark.parametrize("k", [3, 4, 10])
def test_there_are_no_more_pairs_than_nodes(k):
    L, degrees = laplacian(path(4))
    pairs = smallest_pairs(L, degrees, k)
    assert_allclose(pairs.values, 1 - np.cos(np.pi * np.arange(1, 4) / 3), atol=1e-14)


def test_two_nodes_and_one():
    L, degrees = laplacian([[0.0, 3.0], [3.0, 0.0]])
    pairs = smallest_pairs(L, degrees, 1)
    assert_allclose(pairs.values, [2.0])
    alone = smallest_pairs(sp.csr_array((1, 1)), np.ones(1), 1)
    assert alone.vectors.shape == (1, 0)


def test_scale_of_the_weights_does_not_matter():
    W = random_graph(60, 3)
    pairs = smallest_pairs(*laplacian(W), 3)
    for factor in (1e-200, 1e150):
        other = smallest_pairs(*laplacian(factor * W), 3)
        assert_allclose(other.values, pairs.values, rtol=1e-10)


def test_what_does_not_converge_is_an_error(monkeypatch):
    take(ROUTES["no factor"] | {"sparse.MAX_PRODUCTS": 60}, monkeypatch)
    L, degrees = laplacian(path(400))
    with pytest.raises(SolverError, match=r"0 of 4 pairs .* 400 nodes .* larger reg"):
        smallest_pairs(L, degrees, 2)


def test_a_matrix_without_row_sums_0_is_refused_by_its_residual():
    L, degrees = laplacian(random_graph(30, 4))
    with pytest.raises(SolverError, match="residual"):
        smallest_pairs(L + sp.diags_array(np.arange(30.0)), degrees, 2)
