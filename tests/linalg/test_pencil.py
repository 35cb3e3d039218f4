"""The largest pairs of a pencil: those of LAPACK, of the definition and of nothing at all."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from marginfold.errors import InvalidParameterError
from marginfold.linalg import pencil_pairs

EPS = np.finfo(float).eps


def pencil(name, r, rng):
    """Return a symmetric matrix and a positive definite one."""
    G, F = rng.standard_normal((2, r, r))
    B = F @ F.T + 0.1 * np.eye(r)
    if name == "definite":
        return G @ G.T, B
    if name == "singular":
        return G[:, : r // 3] @ G[:, : r // 3].T, B
    if name == "rank one":
        return np.outer(G[0], G[0]), B
    if name == "zero":
        return np.zeros((r, r)), B
    if name == "indefinite":
        return G + G.T, B
    if name == "identity on the right":
        return G @ G.T, np.eye(r)
    if name == "diagonal":
        return np.diag(np.arange(r, 0.0, -1.0)), np.diag(np.linspace(1.0, 2.0, r))
    if name == "ill conditioned":
        Q = np.linalg.qr(F)[0]
        return G @ G.T, (Q * 10.0 ** np.linspace(-5, 5, r)) @ Q.T
    raise ValueError(name)


NAMES = [
    "definite",
    "singular",
    "rank one",
    "zero",
    "indefinite",
    "identity on the right",
    "diagonal",
    "ill conditioned",
]


def assert_pairs(A, B, values, V):
    """A v = mu B v with v'Bv = 1 and other products 0, to the error that B's condition allows.

    With B = FF' the rounding error of F^-1 A F^-T is relative to the largest ratio, which makes
    it a change of A by as much times |B|; products of vectors suffer from cond(B).
    """
    A_size, B_size = np.linalg.norm(A, 2), np.linalg.norm(B, 2)
    sizes = np.linalg.norm(V, axis=0)
    residual = np.linalg.norm(A @ V - B @ V * values, axis=0)
    allowed = (A_size + np.abs(values).max(initial=0) * B_size) * sizes
    assert (residual <= 1e2 * EPS * len(A) * allowed).all()
    condition = np.linalg.cond(B)
    assert_allclose(V.T @ B @ V, np.eye(V.shape[1]), atol=1e2 * EPS * len(A) * max(condition, 1))
    assert (np.diff(values) <= 1e-12 * np.abs(values).max(initial=0)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("r", [1, 2, 7, 40])
@pytest.mark.parametrize("k", [1, 3, 100])
def test_pairs_are_those_of_lapack(name, r, k):
    A, B = pencil(name, r, np.random.default_rng(r))
    values, V = pencil_pairs(A, B, k)
    found = min(k, r)
    assert values.shape == (found,)
    assert V.shape == (r, found)
    assert_pairs(A, B, values, V)
    expected = scipy.linalg.eigh(A, B, eigvals_only=True)[::-1]
    assert_allclose(values, expected[:found], rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("r", "k", "decay"), [(600, 1, True), (900, 5, True), (600, 2, False), (700, 21, False)]
)
def test_few_pairs_of_large_matrices(r, k, decay):
    """Large matrices with few pairs go through the Krylov space, whatever their spectrum is."""
    rng = np.random.default_rng(k)
    G = rng.standard_normal((r, r)) * (0.97 ** np.arange(r) if decay else 1.0)
    F = rng.standard_normal((r, 60))
    A, B = G @ G.T, F @ F.T + np.eye(r)
    values, V = pencil_pairs(A, B, k)
    assert_pairs(A, B, values, V)
    expected = scipy.linalg.eigh(A, B, eigvals_only=True, subset_by_index=(r - k, r - 1))[::-1]
    assert_allclose(values, expected, rtol=1e-11)


@pytest.mark.parametrize("r", [30, 650])
def test_repeated_eigenvalues_are_found_as_often_as_they_occur(r):
    """A = B C B with C a projector of rank 4 in the metric of B: the ratio 3 four times."""
    rng = np.random.default_rng(0)
    F = rng.standard_normal((r, 20))
    B = F @ F.T + np.eye(r)
    V = np.linalg.qr(np.linalg.cholesky(B).T @ rng.standard_normal((r, 6)))[0]
    W = scipy.linalg.solve_triangular(np.linalg.cholesky(B), V, lower=True, trans=1)  # W'BW = I
    A = B @ (W * [3.0, 3.0, 3.0, 3.0, 1.0, 0.5]) @ W.T @ B
    values, found = pencil_pairs(A, B, 6)
    assert_allclose(values, [3.0, 3.0, 3.0, 3.0, 1.0, 0.5], rtol=1e-10)
    assert_allclose(found.T @ B @ found, np.eye(6), atol=1e-9)
    angles = scipy.linalg.subspace_angles(found[:, :4], W[:, :4])
    assert_allclose(angles, 0.0, atol=1e-6)


@pytest.mark.parametrize("condition", [1e6, 1e10, 1e13])
def test_an_ill_conditioned_right_side_costs_no_more_than_its_condition(condition):
    """A scatter that B dominates: ratios are of order 1 although B has small eigenvalues."""
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.standard_normal((25, 25)))[0]
    spectrum = condition ** np.linspace(-1.0, 0.0, 25)
    root = Q * np.sqrt(spectrum)
    C = np.diag(np.linspace(0.1, 1.0, 25))
    values, V = pencil_pairs(root @ C @ root.T, (Q * spectrum) @ Q.T, 4)
    assert_allclose(values, np.linspace(1.0, 0.1, 25)[:4], rtol=10 * EPS * condition)
    assert_allclose(V.T @ (Q * spectrum) @ Q.T @ V, np.eye(4), atol=10 * EPS * condition)


def test_ratios_are_maximal():
    """Courant and Fischer: no direction that is B-orthogonal to the first ones has a larger one."""
    rng = np.random.default_rng(3)
    A, B = pencil("definite", 12, rng)
    values, V = pencil_pairs(A, B, 3)
    for k in range(3):
        trial = rng.standard_normal((12, 2000))
        trial -= V[:, :k] @ (V[:, :k].T @ B @ trial)
        ratios = np.einsum("ij,ij->j", trial, A @ trial) / np.einsum("ij,ij->j", trial, B @ trial)
        assert ratios.max() <= values[k] * (1 + 1e-12)


def test_congruent_pencils_have_the_same_ratios():
    rng = np.random.default_rng(4)
    A, B = pencil("singular", 15, rng)
    T = rng.standard_normal((15, 15)) + 4 * np.eye(15)
    values, V = pencil_pairs(A, B, 5)
    moved, W = pencil_pairs(T.T @ A @ T, T.T @ B @ T, 5)
    assert_allclose(moved, values, rtol=1e-9)
    assert_allclose(np.abs(np.diag(V.T @ B @ T @ W)), 1.0, atol=1e-8)


def test_small_asymmetries_are_averaged():
    """Products of rows are symmetric up to rounding only."""
    rng = np.random.default_rng(6)
    A, B = pencil("definite", 20, rng)
    noise = 1e-14 * rng.standard_normal((20, 20))
    assert_allclose(pencil_pairs(A + noise, B, 4)[0], pencil_pairs(A, B, 4)[0], rtol=1e-11)


@pytest.mark.parametrize("r", [0, 1, 5, 600])
def test_no_pairs(r):
    values, V = pencil_pairs(np.eye(r), np.eye(r), 0)
    assert values.shape == (0,)
    assert V.shape == (r, 0)


@pytest.mark.parametrize("k", [0, 1, 4])
def test_no_rows(k):
    values, V = pencil_pairs(np.zeros((0, 0)), np.zeros((0, 0)), k)
    assert values.shape == (0,)
    assert V.shape == (0, 0)


@pytest.mark.parametrize("r", [8, 600])
def test_nothing_is_written_to_and_nothing_is_left_to_chance(r):
    A, B = pencil("definite", r, np.random.default_rng(7))
    before = A.copy(), B.copy()
    first, again = pencil_pairs(A, B, 2), pencil_pairs(A, B, 2)
    assert_array_equal(A, before[0])
    assert_array_equal(B, before[1])
    for one, other in zip(first, again, strict=True):
        assert_array_equal(one, other)


def test_a_right_side_that_is_not_definite_is_no_pencil():
    with pytest.raises(InvalidParameterError, match="ridge"):
        pencil_pairs(np.eye(3), np.diag([1.0, 0.0, -1.0]), 1)
