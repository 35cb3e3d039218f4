"""Directions of large ratios: what they attain, how long they are, which ones carry nothing."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from marginfold.errors import InvalidInputError
from marginfold.estimators.graph_embedding import SCALINGS, graph_embedding
from marginfold.graphs import BetweenClassGraph, NeighborGraph, TotalGraph, WithinClassGraph

WINE, Y = load_wine(return_X_y=True)
SCALED = scale(WINE)
RIDGE = 1e-3


def forms(X, near=WithinClassGraph(), far=BetweenClassGraph()):  # noqa: B008 rules never change
    """Return the penalty form, the intrinsic form and the total scatter of centred rows."""
    Z = X - X.mean(axis=0)
    return far.build(X, Y).scatter(Z), near.build(X, Y).scatter(Z), Z.T @ Z


def embed(parts, *, ridge=RIDGE, n_components=5, scaling="unit", size=178.0):
    far, near, total = parts
    return graph_embedding(
        far, near, total, ridge=ridge, n_components=n_components, scaling=scaling, size=size
    )


def rank(total):
    return int((scipy.linalg.eigvalsh(total) > 1e-13 * np.trace(total)).sum())


PAIRS = {
    "discriminant": (WithinClassGraph(), BetweenClassGraph()),
    "neighbors": (NeighborGraph(5), TotalGraph()),
    "total": (TotalGraph(), TotalGraph()),
}


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 1.0, 1e3])
def test_ratios_are_rayleigh_quotients_and_stationary(pair, ridge, scaling):
    far, near, total = forms(SCALED, *PAIRS[pair])
    found = embed((far, near, total), ridge=ridge, scaling=scaling)
    V, definite = found.directions, near + ridge * np.trace(near) / 13 * np.eye(13)
    quotients = np.diag(V.T @ far @ V) / np.diag(V.T @ definite @ V)
    assert_allclose(found.ratios, quotients, rtol=1e-9)
    residual = far @ V - definite @ V * found.ratios
    assert_allclose(residual, 0.0, atol=1e-9 * np.abs(far @ V).max())
    assert (np.diff(found.ratios) <= 0).all()
    cross = V.T @ definite @ V
    assert_allclose(cross - np.diag(np.diag(cross)), 0.0, atol=1e-9 * np.abs(cross).max())


@pytest.mark.parametrize("size", [178.0, 3.5])
@pytest.mark.parametrize("pair", PAIRS)
def test_the_scaling_says_which_form_is_the_size_of_the_rows(pair, size):
    far, near, total = forms(SCALED, *PAIRS[pair])
    definite = near + RIDGE * np.trace(near) / 13 * np.eye(13)
    for scaling, form, value in (
        ("penalty", far, size),
        ("intrinsic", definite, size),
        ("unit", np.eye(13), 1.0),
    ):
        V = embed((far, near, total), scaling=scaling, size=size).directions
        assert_allclose(np.diag(V.T @ form @ V), value, rtol=1e-9)


@pytest.mark.parametrize("pair", PAIRS)
def test_the_scaling_changes_lengths_only(pair):
    parts = forms(SCALED, *PAIRS[pair])
    unit, *others = (embed(parts, scaling=scaling) for scaling in ("unit", "penalty", "intrinsic"))
    for other in others:
        V = other.directions / np.linalg.norm(other.directions, axis=0)
        assert_allclose(np.abs(np.diag(V.T @ unit.directions)), 1.0, atol=1e-12)
        assert_allclose(other.ratios, unit.ratios, rtol=1e-12)


def test_without_a_near_form_directions_are_principal_axes():
    Z = SCALED - SCALED.mean(axis=0)
    total = Z.T @ Z
    found = embed((total, None, total), n_components=13)
    sizes, axes = scipy.linalg.svd(Z)[1:]
    assert_allclose(found.ratios, sizes**2, rtol=1e-10)
    assert_allclose(np.abs(np.diag(found.directions.T @ axes.T)), 1.0, atol=1e-9)


def test_the_ridge_is_in_units_of_the_near_form():
    """A factor of the near form is a factor of the ratios, and nothing else."""
    far, near, total = forms(SCALED)
    plain, scaled = embed((far, near, total)), embed((far, 1e6 * near, total))
    assert_allclose(scaled.ratios, 1e-6 * plain.ratios, rtol=1e-9)
    assert_allclose(np.abs(np.diag(scaled.directions.T @ plain.directions)), 1.0, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-60, 1e-9, 1e9, 1e60])
@pytest.mark.parametrize("X", [SCALED, WINE], ids=["scaled", "raw"])
def test_units_of_the_rows_do_not_matter(X, unit):
    plain, moved = embed(forms(X)), embed(tuple(unit**2 * part for part in forms(X)))
    assert_allclose(moved.ratios, plain.ratios, rtol=1e-8)
    assert_allclose(np.abs(np.diag(moved.directions.T @ plain.directions)), 1.0, atol=1e-8)


def test_a_strong_ridge_leaves_the_principal_axes_of_the_far_form():
    far, near, total = forms(SCALED)
    found = embed((far, near, total), ridge=1e9, n_components=2)
    axes = scipy.linalg.eigh(far, subset_by_index=(11, 12))[1][:, ::-1]
    assert_allclose(np.abs(np.diag(found.directions.T @ axes)), 1.0, atol=1e-6)


# --------------------------------------------------------------------------------------------
# Directions that carry nothing
# --------------------------------------------------------------------------------------------


def hostile(name):
    rng = np.random.default_rng(0)
    return {
        "scaled": SCALED,
        "raw": WINE,
        "columns over 6 decades": SCALED * 10.0 ** np.linspace(-3, 3, 13),
        "far from the origin": SCALED + 1e6,
        "tiny": 1e-12 * SCALED,
        "collinear": np.column_stack([SCALED, SCALED @ rng.standard_normal((13, 6))]),
        "raw and collinear": np.column_stack([WINE, WINE @ rng.standard_normal((13, 3))]),
        "copied columns": np.column_stack([SCALED, SCALED[:, :4]]),
        "constant columns": np.column_stack([SCALED, np.full((178, 3), 0.1)]),
        "one column": SCALED[:, 6:7],
    }[name]


@pytest.mark.parametrize("name", ["collinear", "copied columns", "raw and collinear"])
@pytest.mark.parametrize("ridge", [1e-10, 1e-8, 1e-6])
def test_a_small_ridge_does_not_make_directions_of_rounding(name, ridge):
    X = hostile(name)
    found = embed(forms(X), ridge=ridge, n_components=X.shape[1], scaling="intrinsic")
    assert found.directions.shape[1] == 2


@pytest.mark.parametrize("ridge", [1e-4, 1e-3])
@pytest.mark.parametrize(
    "name",
    [
        "scaled",
        "raw",
        "columns over 6 decades",
        "far from the origin",
        "tiny",
        "collinear",
        "raw and collinear",
        "copied columns",
        "constant columns",
        "one column",
    ],
)
def test_means_of_three_classes_span_two_directions(name, ridge):
    X = hostile(name)
    found = embed(forms(X), ridge=ridge, n_components=X.shape[1], scaling="intrinsic")
    assert found.directions.shape[1] == min(2, X.shape[1])
    assert len(found.ratios) == found.directions.shape[1]
    assert np.isfinite(found.directions).all()


@pytest.mark.parametrize(
    "name", ["collinear", "copied columns", "constant columns", "raw and collinear"]
)
@pytest.mark.parametrize("near", [None, "graph"])
def test_there_are_no_more_directions_than_rows_have(name, near):
    X = hostile(name)
    far, near_form, total = forms(X, NeighborGraph(5), TotalGraph())
    found = embed((far, None if near is None else near_form, total), n_components=X.shape[1])
    assert found.directions.shape[1] == rank(total) == 13


def test_a_constant_column_has_no_part_in_any_direction():
    far, near, total = forms(hostile("constant columns"))
    V = embed((far, near, total)).directions
    assert_allclose(V[13:], 0.0, atol=1e-12)
    assert_allclose(np.abs(V[:13]), np.abs(embed(forms(SCALED)).directions), atol=1e-9)


def test_equal_class_means_leave_nothing():
    """Each row in all three classes: the between form is rounding at most."""
    X, codes = np.tile(SCALED, (3, 1)), np.repeat([0, 1, 2], 178)
    Z = X - X.mean(axis=0)
    far, near = (
        rule.build(X, codes).scatter(Z) for rule in (BetweenClassGraph(), WithinClassGraph())
    )
    noise = 1e-10 * np.trace(Z.T @ Z)
    assert np.abs(far).max() < noise
    found = embed((np.zeros_like(far), near, Z.T @ Z), n_components=13)
    assert found.directions.shape == (13, 0)
    assert found.ratios.shape == (0,)


def test_no_coordinates_give_no_directions():
    empty = np.zeros((0, 0))
    found = embed((empty, None, empty))
    assert found.directions.shape == (0, 0)
    assert found.ratios.shape == (0,)


def test_a_near_form_without_scatter_is_refused():
    far, near, total = forms(SCALED)
    with pytest.raises(InvalidInputError, match="no scatter"):
        embed((far, np.zeros_like(near), total))


def test_rows_that_do_not_vary_are_refused():
    nothing = np.zeros((3, 3))
    with pytest.raises(InvalidInputError, match="no scatter"):
        embed((nothing, nothing, nothing))


def test_fewer_components_are_the_first_ones_and_nothing_is_written_to():
    parts = forms(SCALED, *PAIRS["neighbors"])
    before = [part.copy() for part in parts]
    few, many = embed(parts, n_components=2), embed(parts, n_components=6)
    assert_allclose(few.ratios, many.ratios[:2], rtol=1e-12)
    assert_allclose(np.abs(np.diag(few.directions.T @ many.directions)), 1.0, atol=1e-9)
    for part, copy in zip(parts, before, strict=True):
        assert_array_equal(part, copy)
