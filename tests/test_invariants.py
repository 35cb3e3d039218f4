"""What must not change: the answer under motions of the data, new names, new units, new orders.

Every property is exact in real arithmetic.  `CLOSE` is the room for rounding, relative to the
spread of the data; what the methods reach is 1e-9 or better, also for columns whose sizes differ
by six orders of magnitude.  WSVDA is asked for two components: with its ridge of 1e-3, each
deflation multiplies a rounding error by about a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.base import clone

from marginfold import (
    GESVC,
    LSVA,
    MMDA,
    WSVDA,
    ExactKernel,
    LapSVC,
    NeighborGraph,
    WithinClassGraph,
)
from marginfold.feature_maps import is_linear

pytestmark = [
    pytest.mark.filterwarnings("ignore::marginfold.errors.ExhaustedWarning"),
    pytest.mark.attack("relations between fits"),
]

ORTHONORMAL = 1e-10
CLOSE = 1e-7
EXAMPLES = settings(max_examples=4)

RBF = ExactKernel("rbf")
GRAPH_SUM = 0.5 * NeighborGraph(4) + WithinClassGraph()
TRANSFORMERS = {
    "MMDA": MMDA(3),
    "LSVA": LSVA(3),
    "LSVA lle": LSVA(3, graph="lle", tasks="greedy"),
    "WSVDA": WSVDA(2),
    "MMDA rbf": MMDA(3, kernel=RBF, tasks="greedy"),
    "LSVA rbf": LSVA(3, kernel=RBF, graph=GRAPH_SUM, scaling="margin"),
    "WSVDA rbf": WSVDA(2, kernel=RBF),
    "MMDA orthogonal": MMDA(3, deflation="orthogonal"),
    "LSVA rbf orthogonal": LSVA(3, kernel=RBF, deflation="orthogonal"),
    "WSVDA uncorrelated": WSVDA(2, deflation="uncorrelated"),
}
SPLITS = {
    "MMDA splits": MMDA(3, tasks="splits"),
    "LSVA rbf splits": LSVA(3, kernel=RBF, tasks="splits"),
}
CLASSIFIERS = {
    "GESVC": GESVC(graph="within"),
    "GESVC rbf": GESVC(kernel=RBF, class_weight="balanced"),
    "LapSVC": LapSVC(unlabeled=None, graph="lle"),
}
LINEAR = [name for name, model in TRANSFORMERS.items() if is_linear(model.kernel)]
EVERY = TRANSFORMERS | SPLITS | CLASSIFIERS


@dataclass(frozen=True)
class Problem:
    """Training rows, labels and new rows; ``unit`` is the unit of length of C and gamma."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    C: float
    unit: float

    def fitted(self, model):
        """Fit with a C free of units; kernel coordinates and the metric of WSVDA have none."""
        model = clone(model).set_params(C=self.C)
        if not is_linear(model.kernel):
            model.set_params(kernel__gamma=self.unit**-2)
        elif not isinstance(model, WSVDA):
            model.set_params(C=self.C / self.unit**2)
        return model.fit(self.X, self.y)

    def moved(self, move):
        """Apply a map to the distinct rows, so that copies stay copies to the last bit."""
        distinct, inverse = np.unique(self.X, axis=0, return_inverse=True)
        return replace(self, X=move(distinct)[inverse.ravel()], new=move(self.new))


@st.composite
def problems(draw, least=2, most=4):
    """Round clouds, long ones (columns of very different size), wide ones, and copied rows."""
    c = draw(st.integers(least, most))
    n, d = draw(st.integers(2 * c, 30)), draw(st.integers(1, 14))
    orders = draw(st.sampled_from([0.0, 0.0, 1.0, 3.0]))  # columns from 10^-orders to 10^orders
    n_copies = draw(st.sampled_from([0, 0, 5]))
    C = draw(st.sampled_from([0.01, 1.0, 1.0, 100.0]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    y = rng.permutation(np.arange(n) % c)
    sizes = 10.0 ** rng.permutation(np.linspace(-orders, orders, d))
    X = (rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((c, d))[y]) * sizes
    copies = np.append(np.arange(n), rng.integers(0, n, n_copies))
    new = rng.standard_normal((9, d)) * sizes
    # gamma="scale" is 1 / X.var(), which depends on the axes and on the origin; this does not
    unit = float(np.sqrt(X[copies].var(axis=0).sum()))
    return Problem(X[copies], y[copies], new, C, unit)


def output(model, problem):
    """Return what the model says about new rows, in units in which 1 is large."""
    if hasattr(model, "transform"):
        size = problem.unit if is_linear(model.kernel) else 1.0
        largest = np.maximum(model.norms_, 1.0) if model.scaling == "margin" else 1.0
        return model.transform(problem.new) / size / largest
    values = model.decision_function(problem.new)
    return values / np.maximum(np.abs(values).max(), 1.0)


def assert_same_findings(model, expected):
    """Compare everything that does not depend on coordinates."""
    assert_array_equal(model.classes_, expected.classes_)
    assert_allclose(model.gain_, expected.gain_, rtol=CLOSE, atol=CLOSE)
    if hasattr(model, "tasks_"):
        assert model.tasks_ == expected.tasks_
        assert_allclose(model.norms_, expected.norms_, rtol=1e-6)


@pytest.mark.parametrize("name", TRANSFORMERS | SPLITS)
@EXAMPLES
@given(problem=problems())
def test_components_are_orthonormal_and_certified(name, problem):
    model = problem.fitted(clone(EVERY[name]).set_params(deflation="orthogonal"))
    W = model.components_
    assert W.shape[0] == model.n_components_ >= 1
    assert_allclose(W @ W.T, np.eye(len(W)), rtol=0, atol=ORTHONORMAL)
    assert (model.gap_ <= model.tol).all()
    assert ((model.gain_ > 0) & (model.gain_ <= 1)).all()


@EXAMPLES
@given(problem=problems(), tol=st.sampled_from([1e-4, 1e-8, 1e-11]))
def test_the_certificate_keeps_its_promise(problem, tol):
    for model in (MMDA(4, tol=tol), GESVC(tol=tol)):
        assert (problem.fitted(model).gap_ <= tol).all()


def test_orthonormal_to_the_last_of_many_components():
    # the papers' recursion has lost all orthogonality by the sixth component
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.standard_normal((200, 12)) + 0.4 * y[:, None]
    W = MMDA(12, C=100.0, deflation="orthogonal").fit(X, y).components_
    assert len(W) >= 8
    assert_allclose(W @ W.T, np.eye(len(W)), rtol=0, atol=ORTHONORMAL)


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(), seed=st.integers(0, 10**6))
def test_rotation_and_translation(name, problem, seed):
    rng = np.random.default_rng(seed)
    d = problem.X.shape[1]
    R = ortho_group.rvs(d, random_state=rng) if d > 1 else np.array([[-1.0]])
    t = problem.unit * rng.standard_normal(d)
    moved = problem.moved(lambda X: X @ R + t)
    model, other = problem.fitted(EVERY[name]), moved.fitted(EVERY[name])
    assert_same_findings(other, model)
    assert_allclose(output(other, moved), output(model, problem), rtol=0, atol=CLOSE)
    if hasattr(model, "mean_"):
        atol = CLOSE * problem.unit
        assert_allclose(other.mean_, model.mean_ @ R + t, rtol=0, atol=atol)
        assert_allclose(other.components_, model.components_ @ R, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_distant_origin(name, n_classes):
    # The entries are multiples of a power of two, so that the translation itself is exact: what
    # differs is the library's own rounding.
    rng = np.random.default_rng(n_classes)
    y = np.arange(24) % n_classes
    X = rng.standard_normal((24, 4)) + 1.5 * rng.standard_normal((n_classes, 4))[y]
    X, new = (np.round(A * 2.0**20) / 2.0**20 for A in (X, rng.standard_normal((9, 4))))
    problem = Problem(X, y, new, C=1.0, unit=3.0)
    distant = problem.moved(lambda X: X + 2.0**14)
    model, other = problem.fitted(EVERY[name]), distant.fitted(EVERY[name])
    assert_same_findings(other, model)
    assert_allclose(output(other, distant), output(model, problem), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(), seed=st.integers(0, 10**6))
def test_order_of_rows(name, problem, seed):
    order = np.random.default_rng(seed).permutation(len(problem.X))
    shuffled = replace(problem, X=problem.X[order], y=problem.y[order])
    model, other = problem.fitted(EVERY[name]), shuffled.fitted(EVERY[name])
    assert_same_findings(other, model)
    assert_allclose(output(other, problem), output(model, problem), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(), seed=st.integers(0, 10**6))
def test_order_of_columns(name, problem, seed):
    order = np.random.default_rng(seed).permutation(problem.X.shape[1])
    moved = problem.moved(lambda X: X[:, order])
    model, other = problem.fitted(EVERY[name]), moved.fitted(EVERY[name])
    assert_same_findings(other, model)
    assert_allclose(output(other, moved), output(model, problem), rtol=0, atol=CLOSE)
    if name in LINEAR:
        assert_allclose(other.components_, model.components_[:, order], rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems())
def test_new_names_in_the_same_order_change_nothing_at_all(name, problem):
    names = np.array(["ant", "bee", "cat", "dog"])
    renamed = replace(problem, y=names[problem.y])
    model, other = problem.fitted(EVERY[name]), renamed.fitted(EVERY[name])
    assert_array_equal(output(other, problem), output(model, problem))
    assert_array_equal(other.gain_, model.gain_)
    assert_array_equal(other.classes_, names[model.classes_])


@pytest.mark.parametrize(
    "model",
    [
        MMDA(3, tasks="greedy"),
        WSVDA(2, tasks="greedy", kernel=RBF),
        MMDA(2, tasks="splits"),
        LSVA(3, tasks="splits", kernel=RBF),
        GESVC(),
    ],
)
@EXAMPLES
@given(problem=problems(least=3), seed=st.integers(0, 10**6))
def test_new_names_in_any_order(model, problem, seed):
    # The round robin goes by the order of the names: it is not in this test.  A split and two
    # classes that are left at the end have the same gain on both sides and opposite directions:
    # only the sign of such a component may go by the names.
    c = problem.y.max() + 1
    names = np.random.default_rng(seed).permutation(c)
    renamed = replace(problem, y=names[problem.y])
    old, new = problem.fitted(model), renamed.fitted(model)
    A, B = output(old, problem), output(new, problem)
    if isinstance(model, GESVC):
        assert_allclose(B[:, names], A, rtol=0, atol=CLOSE)
        return
    signs = np.sign((A * B).sum(axis=0))
    assert_allclose(B * signs, A, rtol=0, atol=CLOSE)
    for task, other, sign in zip(old.tasks_, new.tasks_, signs, strict=True):
        side = set(names[np.atleast_1d(task)])
        assert (set(np.atleast_1d(other)) == side) == (sign > 0)


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(most=2))
def test_swapping_two_labels_flips_signs_and_nothing_else(name, problem):
    swapped = replace(problem, y=1 - problem.y)
    model, other = problem.fitted(EVERY[name]), swapped.fitted(EVERY[name])
    assert_same_findings(other, model)
    assert_allclose(output(other, problem), -output(model, problem), rtol=0, atol=CLOSE)
    size = np.maximum(np.abs(model.intercepts_), 1.0)
    assert_allclose(other.intercepts_ / size, -model.intercepts_ / size, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
@EXAMPLES
@given(problem=problems(), factor=st.sampled_from([1e-4, 0.3, 7.0, 1e5]))
def test_scale(name, problem, factor):
    """X -> cX with C -> C / c^2; for WSVDA, whose metric scales with X, C stays."""
    scaled = replace(problem.moved(lambda X: factor * X), unit=factor * problem.unit)
    model, other = problem.fitted(EVERY[name]), scaled.fitted(EVERY[name])
    assert_allclose(other.gain_, model.gain_, rtol=CLOSE, atol=CLOSE)
    if name in LINEAR:
        assert other.tasks_ == model.tasks_
        assert_allclose(other.components_, model.components_, rtol=0, atol=CLOSE)
        assert_allclose(other.norms_, model.norms_ / factor, rtol=1e-6)
    assert_allclose(output(other, scaled), output(model, problem), rtol=0, atol=CLOSE)


@EXAMPLES
@given(problem=problems(), n_constant=st.integers(1, 20))
def test_constant_columns_count_for_nothing(problem, n_constant):
    # with enough of them the data turns wide and is treated in another basis
    padded = problem.moved(lambda X: np.column_stack([X, np.full((len(X), n_constant), 3.0)]))
    for name in ("MMDA", "LSVA", "WSVDA"):
        model, other = problem.fitted(EVERY[name]), padded.fitted(EVERY[name])
        assert_same_findings(other, model)
        assert_allclose(output(other, padded), output(model, problem), rtol=0, atol=CLOSE)
        assert_allclose(other.components_[:, problem.X.shape[1] :], 0.0, atol=CLOSE)


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("shift", [0.0, 0.1, 0.5, 1.3])
@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_the_middle_class_in_a_line_is_on_the_side_of_its_nearest_neighbor(n_classes, shift, turn):
    """The pulls of the others on it cancel, so that rounding could choose its side."""
    places = np.array([-3.0, -2.0, 0.4, 1.7, 3.1])[:: 1 if n_classes == 5 else 2]
    y = np.repeat(np.arange(n_classes), 4)
    spread = np.tile([-0.3, -0.1, 0.1, 0.3], n_classes)
    X = turn * (places[y] + spread)[:, None] + shift
    (task,) = MMDA(1, C=0.01, tasks="splits").fit(X, y).tasks_
    positive = set(np.atleast_1d(task).tolist())
    middle, neighbor = n_classes // 2, n_classes // 2 + 1
    assert (middle in positive) == (neighbor in positive)
    assert (middle - 1 in positive) != (middle in positive)
