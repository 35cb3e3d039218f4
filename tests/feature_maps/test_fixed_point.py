"""Pre-images under the rbf kernel: where they must be, and that they are optimal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

from marginfold import ExactKernel
from marginfold.errors import InvalidInputError

rng = np.random.default_rng(11)
X = rng.standard_normal((60, 3)) + 1.0
NEW = rng.standard_normal((15, 3)) + 1.0
WEIGHTS = rng.random(60) + 0.2
GAMMA = 0.2
SETTINGS = pytest.mark.parametrize(
    ("rank", "center", "weights"),
    [
        (4, True, None),
        (4, True, WEIGHTS),
        (4, False, WEIGHTS),
        (12, True, None),
        (None, True, None),
    ],
    ids=["leading", "weighted", "uncentred", "more", "all"],
)


def squared_distances(found, U, rows, weights):
    """|phi(x) - phi|^2 from scratch: all of phi as a mixture of images of training rows."""
    share = np.full(60, 1 / 60) if weights is None else weights / weights.sum()
    K, across = rbf_kernel(X, gamma=GAMMA), rbf_kernel(rows, X, gamma=GAMMA)
    centring = np.eye(60) - np.outer(np.ones(60), share) if found.center else np.eye(60)
    c = U @ found.dual_basis_.T @ centring + (share if found.center else 0.0)
    return 1 - 2 * (c * across).sum(axis=1) + ((c @ K) * c).sum(axis=1)


@SETTINGS
def test_no_training_row_and_no_neighbor_is_closer(rank, center, weights):
    found = ExactKernel("rbf", gamma=GAMMA, rank=rank, center=center).fit(X, sample_weight=weights)
    U = found.transform(NEW)
    rows = found.preimages(U)
    best = squared_distances(found, U, rows, weights)
    for row in X:
        assert (best <= squared_distances(found, U, np.tile(row, (15, 1)), weights) + 1e-12).all()
    for _ in range(20):
        near = rows + 1e-3 * rng.standard_normal(rows.shape)
        assert (best <= squared_distances(found, U, near, weights) + 1e-12).all()


@SETTINGS
def test_the_gradient_vanishes(rank, center, weights):
    """Mixtures of all coordinates have large coefficients of both signs: some digits are lost."""
    found = ExactKernel("rbf", gamma=GAMMA, rank=rank, center=center).fit(X, sample_weight=weights)
    U = found.transform(NEW)
    rows = found.preimages(U)
    for shift in 1e-4 * np.eye(3):
        above = squared_distances(found, U, rows + shift, weights)
        below = squared_distances(found, U, rows - shift, weights)
        assert_allclose((above - below) / 2e-4, 0, atol=1e-6)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_training_rows_are_their_own_preimages(center, shift):
    found = ExactKernel("rbf", gamma=1.0, center=center).fit(X + shift)
    assert_allclose(found.preimages(found.transform(X + shift)), X + shift, atol=1e-6)


def test_a_start_that_is_a_training_row_is_not_left_for_a_worse_one():
    found = ExactKernel("rbf", gamma=GAMMA, rank=4).fit(X)
    U, start = found.transform(NEW), X[:15]
    rows = found.preimages(U, start)
    before, after = (squared_distances(found, U, points, None) for points in (start, rows))
    assert (after <= before + 1e-12).all()
    assert (after < before - 1e-3).any()


def test_a_start_at_the_result_stays():
    found = ExactKernel("rbf", gamma=GAMMA, rank=4).fit(X)
    U = found.transform(NEW)
    rows = found.preimages(U)
    assert_allclose(found.preimages(U, start=rows), rows, atol=1e-7)


def test_a_remote_start_has_no_overlap_and_stays():
    found = ExactKernel("rbf", gamma=GAMMA, rank=4).fit(X)
    start = np.full((1, 3), 1e3)
    assert_allclose(found.preimages(found.transform(NEW[:1]), start), start)


def test_the_mean_of_one_cloud_is_its_densest_point():
    """Coordinates zero are the mean of the images: its pre-image is the mode of a density."""
    found = ExactKernel("rbf", gamma=GAMMA, rank=2).fit(X)
    (row,) = found.preimages(np.zeros((1, 2)))
    density = rbf_kernel(row[None] + 0.05 * rng.standard_normal((200, 3)), X, gamma=GAMMA)
    assert rbf_kernel(row[None], X, gamma=GAMMA).sum() >= density.sum(axis=1).max()


def test_leading_coordinates_denoise_a_circle():
    angles = rng.uniform(0, 2 * np.pi, 300)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    noisy = circle + 0.1 * rng.standard_normal(circle.shape)
    found = ExactKernel("rbf", gamma=0.5, rank=4).fit(noisy)
    clean = found.preimages(found.transform(noisy))
    off = [np.abs(np.linalg.norm(rows, axis=1) - 1) for rows in (noisy, clean)]
    assert off[1].mean() < 0.6 * off[0].mean()
    assert_allclose(np.linalg.norm(clean - circle, axis=1).mean(), 0, atol=0.1)


def test_order_of_points_and_blocks_do_not_matter(monkeypatch):
    found = ExactKernel("rbf", gamma=GAMMA, rank=4).fit(X)
    U = found.transform(NEW)
    whole, started = found.preimages(U), found.preimages(U, start=NEW)
    assert_allclose(found.preimages(U[::-1]), whole[::-1], atol=1e-8)
    monkeypatch.setattr("marginfold.feature_maps.kernel_map.BLOCK_BYTES", 8 * 60 * 4)
    assert_allclose(found.preimages(U), whole, atol=1e-8)
    assert_allclose(found.preimages(U, start=NEW), started, atol=1e-8)


def test_a_weight_is_a_number_of_copies():
    copies = rng.integers(0, 4, 60)
    found = ExactKernel("rbf", gamma=GAMMA, rank=3)
    weighted = found.fit(X, sample_weight=copies)
    rows = weighted.preimages(weighted.transform(NEW))
    repeated = found.fit(np.repeat(X, copies, axis=0))
    assert_allclose(repeated.preimages(repeated.transform(NEW)), rows, atol=1e-6)


def test_sparse_training_rows():
    rows = np.where(X > 0.5, X, 0.0)
    found = ExactKernel("rbf", gamma=GAMMA, rank=3)
    expected = found.fit(rows).preimages(found.fit_transform(rows))
    sparse = scipy.sparse.csr_matrix(rows)
    U = found.fit_transform(sparse)
    assert_allclose(found.preimages(U), expected, atol=1e-6)


@pytest.mark.parametrize("center", [True, False])
def test_identical_rows(center):
    found = ExactKernel("rbf", center=center).fit(np.full((5, 3), 2.0))
    U = found.transform(np.full((2, 3), 2.0))
    assert_allclose(found.preimages(U), 2.0)


def test_what_does_not_fit_is_named():
    found = ExactKernel("rbf", rank=3).fit(X)
    U = found.transform(NEW)
    with pytest.raises(InvalidInputError, match="2 columns; a point needs 3"):
        found.preimages(U[:, :2])
    with pytest.raises(ValueError, match="inconsistent"):
        found.preimages(U, start=X)
    with pytest.raises(ValueError, match="NaN"):
        found.preimages(np.full_like(U, np.nan))


@pytest.mark.parametrize("kernel", ["poly", "laplacian", "linear", "precomputed", rbf_kernel])
def test_other_kernels_name_the_alternative(kernel):
    found = ExactKernel(kernel).fit(rbf_kernel(X))
    with pytest.raises(InvalidInputError, match="reconstruct='kernel_ridge'"):
        found.preimages(np.zeros((1, 1)))
