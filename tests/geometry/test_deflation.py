"""Deflation: orthonormal directions, and the identity of the deflated metric."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from marginfold.geometry.directions import Deflation, leading_directions, orthonormal_part

R = 8


def deflation(k, scale, seed=0):
    rng = np.random.default_rng(seed)
    found = Deflation.none(R)
    for _ in range(k):
        found = found.append(rng.standard_normal(R), scale)
    return found


@pytest.mark.parametrize("k", [0, 1, 4, R])
def test_both_sets_are_orthonormal(k):
    scale = 10.0 ** np.linspace(-3, 3, R)
    found = deflation(k, scale)
    assert found.W.shape == found.N.shape == (R, k)
    assert_allclose(found.W.T @ found.W, np.eye(k), atol=1e-14)
    assert_allclose(found.N.T @ found.N, np.eye(k), atol=1e-14)


def test_both_sets_span_the_same_constraint():
    scale = 10.0 ** np.linspace(-2, 2, R)
    found = deflation(3, scale)
    angles = scipy.linalg.subspace_angles(found.N, scale[:, None] * found.W)
    assert_allclose(angles, 0, atol=1e-10)


@pytest.mark.parametrize("k", [1, 3, R - 1])
def test_whitened_projection_is_the_metric_of_the_complement(k):
    """V A_V^-1 V' = A^-1 - A^-1 W (W'A^-1 W)^-1 W'A^-1 = D (I - N N') D, D = A^(-1/2)."""
    scale = np.random.default_rng(1).uniform(0.1, 3.0, R)
    found = deflation(k, scale)
    A, inverse, W = np.diag(scale**-2), np.diag(scale**2), found.W
    V = scipy.linalg.null_space(W.T)
    by_basis = V @ np.linalg.solve(V.T @ A @ V, V.T)
    by_constraint = inverse - inverse @ W @ np.linalg.solve(W.T @ inverse @ W, W.T @ inverse)
    by_projection = scale[:, None] * found.complement(np.eye(R)) * scale
    assert_allclose(by_projection, by_basis, atol=1e-12)
    assert_allclose(by_projection, by_constraint, atol=1e-12)


def test_complement_is_a_projection_that_loses_the_constraint():
    found = deflation(3, np.linspace(0.5, 2, R))
    rows = np.random.default_rng(2).standard_normal((5, R))
    once = found.complement(rows)
    assert_allclose(once @ found.N, 0, atol=1e-13)
    assert_allclose(found.complement(once), once, atol=1e-13)


def test_weights_in_the_complement_are_orthogonal_to_the_directions():
    scale = 10.0 ** np.linspace(-2, 2, R)
    found = deflation(4, scale)
    s = found.complement(np.random.default_rng(3).standard_normal(R))
    assert_allclose(found.W.T @ (scale * s), 0, atol=1e-10)


def test_nearly_dependent_vectors_become_orthonormal():
    """One pass of Gram-Schmidt leaves 1e-4 here."""
    W = scipy.linalg.qr(np.random.default_rng(4).standard_normal((R, 3)), mode="economic")[0]
    w = W @ [1.0, -2.0, 0.5] + 1e-12 * np.random.default_rng(5).standard_normal(R)
    part = orthonormal_part(w, W)
    assert_allclose(W.T @ part, 0, atol=1e-13)
    assert np.linalg.norm(part) == pytest.approx(1.0)


@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
def test_length_of_a_direction_does_not_matter(size):
    W = np.eye(R)[:, :2]
    w = np.arange(1.0, R + 1)
    assert_allclose(orthonormal_part(size * w, W), orthonormal_part(w, W), atol=1e-14)


def test_deflation_is_not_changed_by_append():
    before = deflation(2, np.ones(R))
    W = before.W.copy()
    before.append(np.ones(R), np.ones(R))
    assert (before.W == W).all()


@pytest.mark.parametrize("k", [0, 1, 4])
def test_leading_directions_are_principal_axes_of_the_complement(k):
    rng = np.random.default_rng(6)
    Z = rng.standard_normal((50, R)) * np.linspace(1, 3, R)
    total = Z.T @ Z
    W = scipy.linalg.qr(rng.standard_normal((R, R)))[0][:, :k]
    found = leading_directions(total, W, 3)
    P = np.eye(R) - W @ W.T
    values, vectors = np.linalg.eigh(P @ total @ P)
    assert_allclose(np.abs(found.T @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-9)
    assert_allclose(np.diag(found.T @ total @ found), values[::-1][:3])
    assert_allclose(found.T @ found, np.eye(3), atol=1e-12)
    assert_allclose(W.T @ found, 0, atol=1e-12)
    assert (found[np.abs(found).argmax(axis=0), range(3)] > 0).all()


def test_no_more_directions_than_are_left():
    W = np.eye(R)[:, : R - 2]
    assert leading_directions(np.eye(R), W, 5).shape == (R, 2)


def test_nothing_left_is_an_empty_set():
    assert leading_directions(np.eye(R), np.eye(R), 3).shape == (R, 0)
