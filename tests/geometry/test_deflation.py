"""Deflation: orthonormal directions, and the identity of the deflated metric."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from marginfold.geometry.directions import (
    Deflation,
    NewParts,
    leading_directions,
    orthonormal_part,
)
from marginfold.geometry.moments import TotalScatter
from marginfold.linalg.tall import Block, LocalBlocks

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


def scatter_of(Z):
    return TotalScatter(LocalBlocks([Block(Z, np.zeros(len(Z), dtype=int), np.ones(len(Z)))]))


def correlated_rows():
    rng = np.random.default_rng(7)
    return (
        rng.standard_normal((50, R)) @ rng.standard_normal((R, R)) * 10.0 ** np.linspace(-2, 2, R)
    )


@pytest.mark.parametrize("k", [1, 4, R])
def test_with_a_scatter_the_directions_are_uncorrelated(k):
    Z, scale = correlated_rows(), 10.0 ** np.linspace(-1, 1, R)
    rng = np.random.default_rng(0)
    found = Deflation.none(R, scatter_of(Z))
    for _ in range(k):
        found = found.append(rng.standard_normal(R), scale)
    scores = Z @ found.W
    assert_allclose((found.W**2).sum(axis=0), 1.0)
    assert_allclose(np.atleast_2d(np.corrcoef(scores.T)), np.eye(k), atol=1e-9)
    assert_allclose(found.V.T @ found.W, np.eye(k), atol=1e-9)
    assert_allclose(found.N.T @ found.N, np.eye(k), atol=1e-13)
    if k < R:
        w = scale * found.complement(rng.standard_normal(R))
        new = Z @ w
        assert_allclose(np.corrcoef(np.column_stack([scores, new]).T)[-1, :-1], 0.0, atol=1e-9)


def test_the_new_part_of_a_direction_is_the_residual_of_its_scores():
    Z = correlated_rows()
    Z -= Z.mean(axis=0)
    nothing = np.zeros((R, 0))
    parts = NewParts(scatter_of(Z), nothing, nothing)
    W = scipy.linalg.qr(np.random.default_rng(3).standard_normal((R, R)))[0][:, :4]
    scores = Z @ W
    for k in range(4):
        part = parts.add(W[:, k])
        slopes = np.linalg.lstsq(scores[:, :k], scores[:, k], rcond=None)[0]
        residual = scores[:, k] - scores[:, :k] @ slopes
        assert_allclose(abs(np.corrcoef(Z @ part, residual)[0, 1]), 1.0, atol=1e-9)
        assert np.linalg.norm(part) == pytest.approx(1.0)


def test_a_direction_without_variance_has_no_new_part():
    Z = correlated_rows()
    Z[:, 3] = Z[:, 2]
    nothing = np.zeros((R, 0))
    parts = NewParts(scatter_of(Z), nothing, nothing)
    assert parts.add(np.eye(R)[2]) is not None
    assert parts.add(np.eye(R)[3]) is None
    assert parts.W.shape == (R, 1)


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


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_directions_without_variance_are_left_out_in_any_unit(unit):
    total = unit * np.diag(np.arange(R) > 1).astype(float)
    assert leading_directions(total, np.zeros((R, 0)), R).shape == (R, R - 2)


def test_nothing_left_is_an_empty_set():
    assert leading_directions(np.eye(R), np.eye(R), 3).shape == (R, 0)
