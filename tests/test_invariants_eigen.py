"""What must not change, for planes and embeddings: motions, orders, names, units, signs.

Every property is exact in real arithmetic.  `CLOSE` is the room for rounding, relative to the size
of the outputs.  Directions are compared only if their eigenvalues are apart.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.base import clone

from marginfold import (
    GEPSVC,
    KDA,
    LDA,
    LPP,
    MRGEPSVC,
    NPE,
    SVMPCA,
    ExactKernel,
    GraphEmbedding,
    NeighborGraph,
    TwinSVC,
    WithinClassGraph,
)
from marginfold.errors import ExhaustedWarning
from marginfold.feature_maps import is_linear

pytestmark = pytest.mark.attack("relations between fits")

CLOSE = 1e-7
SEPARATE = 1e-3
"""Relative gap of eigenvalues below which their directions may turn into each other."""

EXAMPLES = settings(max_examples=3)

RBF = ExactKernel("rbf")
PLANES = {
    "GEPSVC": GEPSVC(),
    "GEPSVC rbf": GEPSVC(kernel=RBF, tikhonov="dual"),
    "MRGEPSVC": MRGEPSVC(graph=NeighborGraph(3)),
    "MRGEPSVC rbf": MRGEPSVC(kernel=RBF, manifold="numerator", class_weight="balanced"),
    "TwinSVC": TwinSVC(),
    "TwinSVC rbf": TwinSVC(kernel=RBF, loss="least_squares"),
}
EMBEDDINGS = {
    "SVMPCA": SVMPCA(2),
    "SVMPCA rbf": SVMPCA(2, kernel=RBF),
    "GraphEmbedding": GraphEmbedding(2, intrinsic=0.5 * NeighborGraph(4) + WithinClassGraph()),
    "LDA": LDA(shrinkage=1e-3),
    "LDA auto": LDA(shrinkage="auto"),
    "KDA": KDA(kernel=RBF),
    "LPP": LPP(2, graph=NeighborGraph(4)),
    "LPP rbf": LPP(2, kernel=RBF),
    "NPE": NPE(2),
    "NPE rbf": NPE(2, kernel=RBF),
}
EVERY = PLANES | EMBEDDINGS
WITH_LABELS = [*PLANES, "GraphEmbedding", "LDA", "LDA auto", "KDA"]
LINEAR_EMBEDDINGS = [name for name, model in EMBEDDINGS.items() if is_linear(model.kernel)]


@dataclass(frozen=True)
class Problem:
    """Training rows, labels and new rows; ``unit`` is the unit of length of gamma."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    unit: float

    def fitted(self, model):
        model = clone(model)
        if not is_linear(model.kernel):
            model.set_params(kernel__gamma=self.unit**-2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExhaustedWarning)
            return model.fit(self.X, self.y)

    def moved(self, move):
        """Apply a map to the distinct rows, so that copies stay copies to the last bit."""
        distinct, inverse = np.unique(self.X, axis=0, return_inverse=True)
        return replace(self, X=move(distinct)[inverse.ravel()], new=move(self.new))


@st.composite
def problems(draw, least=2, most=4):
    """Round clouds, long ones (columns of different size), wide ones, and copied rows."""
    c = draw(st.integers(least, most))
    n, d = draw(st.integers(3 * c, 30)), draw(st.integers(1, 14))
    orders = draw(st.sampled_from([0.0, 0.0, 1.0]))  # columns from 10^-orders to 10^orders
    n_copies = draw(st.sampled_from([0, 0, 5]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    y = rng.permutation(np.arange(n) % c)
    sizes = 10.0 ** rng.permutation(np.linspace(-orders, orders, d))
    X = (rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((c, d))[y]) * sizes
    copies = np.append(np.arange(n), rng.integers(0, n, n_copies))
    new = rng.standard_normal((9, d)) * sizes
    unit = float(np.sqrt(X[copies].var(axis=0).sum()))
    return Problem(X[copies], y[copies], new, unit)


def output(model, problem):
    """Return what the model says about new rows, in units of what it says about the others."""
    said = model.transform if hasattr(model, "transform") else model.distances
    size = np.abs(said(problem.X)).max(axis=0)
    return said(problem.new) / np.maximum(size, 1e-3 * size.max())


def determined(model):
    """Return whether no two eigenvalues are alike, so that the directions are determined."""
    if not hasattr(model, "transform"):
        return True
    values = model.eigenvalues_
    return len(values) == 1 or (-np.diff(values)).min() > SEPARATE * values[0]


def unambiguous(model, problem):
    """Return whether the largest score of each component is alone of its size."""
    if not hasattr(model, "transform"):
        return True
    scores = np.unique(model.transform(problem.X), axis=0)
    return bool((scores.max(axis=0) + scores.min(axis=0) != 0).all() and len(scores) > 2)


def compare(name, problem, other_problem):
    model, other = problem.fitted(EVERY[name]), other_problem.fitted(EVERY[name])
    if hasattr(model, "eigenvalues_"):
        values = model.eigenvalues_
        assert_allclose(other.eigenvalues_, values, rtol=CLOSE, atol=CLOSE * np.max(values))
    if determined(model) and unambiguous(model, problem):
        assert_allclose(output(other, other_problem), output(model, problem), rtol=0, atol=CLOSE)
        return model, other
    return model, model


def directions(model):
    return model.components_ / np.linalg.norm(model.components_, axis=1)[:, None]


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(), seed=st.integers(0, 10**6))
def test_rotation_and_translation(name, problem, seed):
    rng = np.random.default_rng(seed)
    d = problem.X.shape[1]
    R = ortho_group.rvs(d, random_state=rng) if d > 1 else np.array([[-1.0]])
    t = problem.unit * rng.standard_normal(d)
    model, other = compare(name, problem, problem.moved(lambda X: X @ R + t))
    if other is model:
        return
    if name in LINEAR_EMBEDDINGS:
        size = np.abs(model.components_).max(axis=1, keepdims=True)
        assert_allclose(other.mean_, model.mean_ @ R + t, rtol=0, atol=CLOSE * problem.unit)
        assert_allclose(other.components_ / size, model.components_ @ R / size, rtol=0, atol=CLOSE)
    elif is_linear(model.kernel):
        assert_allclose(other.coef_, model.coef_ @ R, rtol=0, atol=CLOSE)
        moved = model.intercept_ - other.coef_ @ t
        assert_allclose(other.intercept_, moved, rtol=0, atol=CLOSE * np.abs(moved).max())


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(), seed=st.integers(0, 10**6))
def test_order_of_rows(name, problem, seed):
    order = np.random.default_rng(seed).permutation(len(problem.X))
    compare(name, problem, replace(problem, X=problem.X[order], y=problem.y[order]))


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(), seed=st.integers(0, 10**6))
def test_order_of_columns(name, problem, seed):
    order = np.random.default_rng(seed).permutation(problem.X.shape[1])
    compare(name, problem, problem.moved(lambda X: X[:, order]))


@pytest.mark.parametrize("name", WITH_LABELS)
@EXAMPLES
@given(problem=problems())
def test_new_names_in_the_same_order_change_nothing_at_all(name, problem):
    names = np.array(["ant", "bee", "cat", "dog"])
    renamed = replace(problem, y=names[problem.y])
    model, other = problem.fitted(EVERY[name]), renamed.fitted(EVERY[name])
    assert_array_equal(output(other, problem), output(model, problem))
    if hasattr(model, "classes_"):
        assert_array_equal(other.classes_, names[model.classes_])


@pytest.mark.parametrize("name", WITH_LABELS)
@EXAMPLES
@given(problem=problems(), seed=st.integers(0, 10**6))
def test_new_names_in_any_order_permute_planes_and_leave_embeddings(name, problem, seed):
    names = np.random.default_rng(seed).permutation(problem.y.max() + 1)
    renamed = replace(problem, y=names[problem.y])
    if name in EMBEDDINGS:
        compare(name, problem, renamed)
        return
    model, other = problem.fitted(EVERY[name]), renamed.fitted(EVERY[name])
    places = {(plane.label, plane.opponent): k for k, plane in enumerate(other.planes_)}
    order = [
        places[names[plane.label], None if plane.opponent is None else names[plane.opponent]]
        for plane in model.planes_
    ]
    assert_allclose(output(other, problem)[:, order], output(model, problem), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(), factor=st.sampled_from([1e-4, 0.3, 7.0, 1e5]))
def test_scale(name, problem, factor):
    scaled = replace(problem.moved(lambda X: factor * X), unit=factor * problem.unit)
    model, other = problem.fitted(EVERY[name]), scaled.fitted(EVERY[name])
    assume(determined(model) and unambiguous(model, problem))
    assert_allclose(output(other, scaled), output(model, problem), rtol=0, atol=CLOSE)
    if name in LINEAR_EMBEDDINGS:
        assert_allclose(directions(other), directions(model), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(), n_constant=st.integers(1, 20))
def test_constant_columns_count_for_nothing(name, problem, n_constant):
    # with enough of them the data turns wide and is treated in another basis
    padded = problem.moved(lambda X: np.column_stack([X, np.full((len(X), n_constant), 3.0)]))
    model, other = compare(name, problem, padded)
    if is_linear(model.kernel):
        normals = other.components_ if name in EMBEDDINGS else other.coef_
        assert_allclose(normals[:, problem.X.shape[1] :], 0.0, atol=CLOSE * np.abs(normals).max())


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_distant_origin(name, n_classes):
    # The entries are multiples of a power of two, so that the translation itself is exact: what
    # differs is the library's own rounding.
    rng = np.random.default_rng(n_classes)
    y = np.arange(24) % n_classes
    X = rng.standard_normal((24, 4)) + 1.5 * rng.standard_normal((n_classes, 4))[y]
    X, new = (np.round(A * 2.0**20) / 2.0**20 for A in (X, rng.standard_normal((9, 4))))
    problem = Problem(X, y, new, unit=3.0)
    compare(name, problem, problem.moved(lambda X: X + 2.0**14))


@pytest.mark.parametrize("name", PLANES)
@EXAMPLES
@given(problem=problems())
def test_normals_are_unit_and_the_rest_lies_below(name, problem):
    model = problem.fitted(PLANES[name])
    there = np.any(model.normals_ != 0, axis=1)
    assert_allclose(np.linalg.norm(model.normals_[there], axis=1), 1.0, rtol=1e-12)
    heights = model.feature_map_.project(problem.X, model.normals_.T) + model.offsets_
    assert_allclose(np.abs(heights), model.distances(problem.X), rtol=0, atol=1e-12)
    balanced = model.class_weight == "balanced"
    sizes = np.bincount(problem.y)[problem.y] if balanced else np.ones(len(problem.y))
    for k, plane in enumerate(model.planes_):
        rest = problem.y != plane.label
        if plane.opponent is not None:
            rest = problem.y == plane.opponent
        mean = np.average(heights[rest, k], weights=1.0 / sizes[rest])
        assert not there[k] or mean <= 1e-9 * np.abs(heights[rest, k]).mean()


@pytest.mark.parametrize("name", EMBEDDINGS)
@EXAMPLES
@given(problem=problems())
def test_the_largest_score_is_positive_and_ratios_fall(name, problem):
    model = problem.fitted(EMBEDDINGS[name])
    scores = model.transform(problem.X)
    assert (scores.max(axis=0) >= -scores.min(axis=0) * (1 - 1e-9)).all()
    assert (np.diff(model.eigenvalues_) <= 0).all()
    assert (model.eigenvalues_ > 0).all()


@pytest.mark.parametrize("name", EMBEDDINGS)
@EXAMPLES
@given(problem=problems(least=4))
def test_fewer_components_are_the_first_of_more(name, problem):
    model = clone(EMBEDDINGS[name]).set_params(n_components=3)
    three = problem.fitted(model)
    assume(determined(three))
    for k in range(1, three.n_components_ + 1):
        fewer = output(problem.fitted(model.set_params(n_components=k)), problem)
        assert_allclose(fewer, output(three, problem)[:, :k], rtol=0, atol=CLOSE * 10)


def test_fits_in_two_threads_are_those_of_one():
    """The number of BLAS threads is a setting of the process; results must not depend on it."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X, new = rng.standard_normal((120, 6)) + y[:, None], rng.standard_normal((9, 6))
    problem = Problem(X, y, new, unit=3.0)
    expected = {name: output(problem.fitted(model), problem) for name, model in EVERY.items()}
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            found = pool.map(lambda name: output(problem.fitted(EVERY[name]), problem), EVERY)
            for name, values in zip(EVERY, found, strict=True):
                assert_allclose(values, expected[name], rtol=0, atol=1e-9)
