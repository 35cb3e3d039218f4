"""What MMDA, LSVA and WSVDA have in common: their fitted attributes agree with each other."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from estimator_families import SUBSPACES
from numpy.testing import assert_allclose, assert_array_equal
from same_fit import assert_same_fit
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

from marginfold import MMDA, ExactKernel, InteriorPoint, Linear
from marginfold.errors import ExhaustedWarning, InvalidInputError, UncertifiedWarning

X, Y = load_wine(return_X_y=True)
X = scale(X)
NAMES = np.array(["red", "rosé", "white"])

CONFIGURATIONS = {
    "default": {},
    "five": {"n_components": 5},
    "greedy": {"n_components": 4, "tasks": "greedy"},
    "splits": {"n_components": 4, "tasks": "splits"},
    "orthogonal": {"n_components": 5, "deflation": "orthogonal"},
    "uncorrelated": {"n_components": 4, "deflation": "uncorrelated", "C": 100.0},
    "margin": {"n_components": 3, "scaling": "margin"},
    "unbalanced": {"n_components": 4, "class_weight": None, "on_exhausted": "pca"},
    "rbf": {"n_components": 4, "kernel": "rbf", "C": 10.0},
    "function": {"kernel": lambda A, B: (1 + A @ B.T) ** 2},
    "transformer": {"kernel": PCA(6)},
    "libsvm": {"solver": "libsvm", "tol": 1e-5},
}


@pytest.fixture(params=SUBSPACES, ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


@pytest.mark.parametrize("tasks", ["one_vs_rest", "splits"])
@pytest.mark.parametrize("columns", [slice(None), slice(5)])
@pytest.mark.parametrize("kernel", ["linear", "rbf", PCA(4)])
def test_fewer_components_are_the_first_ones_to_the_last_bit(cls, kernel, columns, tasks):
    """Rows on a margin have equal images, so that any other rounding picks other neighbors."""
    few, labels = X[::6, columns], Y[::6]
    whole = cls(n_components=4, kernel=kernel, tasks=tasks).fit(few, labels)
    images = whole.transform(X[:, columns])
    for k in range(1, 4):
        alone = cls(n_components=k, kernel=kernel, tasks=tasks).fit(few, labels)
        assert_array_equal(alone.components_, whole.components_[:k])
        assert_array_equal(alone.transform(X[:, columns]), images[:, :k])


@pytest.fixture(params=CONFIGURATIONS)
def fitted(request, cls):
    return fit_once(cls, request.param)


@cache
def fit_once(cls, configuration):
    return cls(**CONFIGURATIONS[configuration]).fit(X, Y)


def test_one_entry_for_each_component(fitted):
    k = fitted.n_components_
    assert k <= fitted.n_components
    assert fitted.directions_.shape == (fitted.feature_map_.transform(X).shape[1], k)
    for name in ("intercepts_", "norms_", "gain_", "new_gain_", "gap_", "n_iter_per_component_"):
        assert getattr(fitted, name).shape == (k,), name
    assert len(fitted.tasks_) == k
    assert len(fitted.get_feature_names_out()) == k
    assert fitted.transform(X).shape == fitted.decision_function(X).shape == (len(X), k)


def test_directions_are_orthonormal_or_uncorrelated_and_project(fitted):
    W = fitted.directions_
    assert_allclose((W**2).sum(axis=0), 1.0, atol=1e-12)
    if fitted.deflation == "orthogonal":
        assert_allclose(W.T @ W, np.eye(fitted.n_components_), atol=1e-12)
    else:
        correlations = np.atleast_2d(np.corrcoef(fitted.transform(X).T))
        assert_allclose(correlations, np.eye(fitted.n_components_), atol=1e-8)
    projected = fitted.feature_map_.transform(X) @ W
    lengths = fitted.norms_ if fitted.scaling == "margin" else 1.0
    assert_allclose(fitted.transform(X), projected * lengths, atol=1e-9)


def test_the_decision_is_the_scaled_projection_plus_intercept(fitted):
    images = fitted.transform(X)
    lengths = 1.0 if fitted.scaling == "margin" else fitted.norms_
    assert_allclose(fitted.decision_function(X), images * lengths + fitted.intercepts_, atol=1e-9)


def test_components_are_directions_in_input_units_if_there_are_such(fitted):
    if fitted.kernel != "linear":
        assert_array_equal(fitted.components_, fitted.directions_.T)
        assert not hasattr(fitted, "mean_")
        return
    assert fitted.components_.shape == (fitted.n_components_, X.shape[1])
    assert_allclose(fitted.mean_, X.mean(axis=0), atol=1e-12)
    lengths = fitted.norms_ if fitted.scaling == "margin" else 1.0
    plain = (X - fitted.mean_) @ fitted.components_.T * lengths
    assert_allclose(fitted.transform(X), plain, atol=1e-10)


def test_certificates_and_iterations(fitted):
    assert (fitted.gap_ <= fitted.tol).all()
    assert (fitted.gap_ >= 0).all()
    assert fitted.n_iter_ == fitted.n_iter_per_component_.sum()
    assert isinstance(fitted.n_iter_, int)
    found = np.array([task is not None for task in fitted.tasks_])
    assert (fitted.n_iter_per_component_[found] > 0).all()
    assert (fitted.gain_[found] > 0).all()
    assert (fitted.gain_ <= 1).all()


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_the_gain_is_what_the_objective_loses(configuration):
    """Hinge loss and |w|^2 of the first component, computed anew from the decision values."""
    fitted = fit_once(MMDA, configuration)
    positive = np.isin(Y, fitted.tasks_[0])
    costs = np.full(len(Y), fitted.C_)
    if fitted.class_weight == "balanced":
        costs *= np.where(positive, 0.5 / positive.mean(), 0.5 / (1 - positive.mean()))
    margins = np.where(positive, 1, -1) * fitted.decision_function(X)[:, 0]
    objective = 0.5 * fitted.norms_[0] ** 2 + costs @ np.maximum(0, 1 - margins)
    constant = 2 * min(costs[positive].sum(), costs[~positive].sum())
    assert_allclose(fitted.gain_[0], 1 - objective / constant, rtol=1e-6)


def test_tasks_are_the_labels_of_the_user(cls):
    fitted = cls(n_components=3).fit(X, NAMES[Y])
    assert fitted.tasks_ == ["red", "rosé", "white"]
    assert {type(task) for task in fitted.tasks_} == {str}
    assert {type(task) for task in cls(n_components=3).fit(X, Y).tasks_} == {int}
    splits = cls(n_components=4, tasks="splits").fit(X, NAMES[Y]).tasks_
    for task in splits:
        assert set([task] if isinstance(task, str) else task) < set(NAMES)


def test_each_component_puts_its_own_task_on_the_positive_side(cls):
    for schedule in ("one_vs_rest", "greedy", "splits"):
        fitted = cls(n_components=3, tasks=schedule).fit(X, Y)
        for task, values in zip(fitted.tasks_, fitted.decision_function(X).T, strict=True):
            positive = np.isin(Y, task)
            assert values[positive].mean() > values[~positive].mean()


def test_two_classes_have_one_task(cls):
    two = Y != 2
    fitted = cls(n_components=3).fit(X[two], NAMES[Y[two]])
    assert fitted.tasks_ == ["rosé"] * 3


def test_exhausted_tasks_are_named_with_the_gain_at_which_they_ended(cls):
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.repeat([-3.0, 3.0], 20), rng.standard_normal((40, 3))])
    rows[20:, 1:] = rows[:20, 1:]  # nothing but the first column tells the classes apart
    labels = np.repeat(["a", "b"], 20)
    with pytest.warns(ExhaustedWarning, match=r"1 of 4 components.*'b'") as caught:
        fitted = cls(n_components=4).fit(rows, labels)
    assert fitted.n_components_ == 1
    assert list(fitted.exhausted_) == ["b"]
    assert 0 <= fitted.exhausted_["b"] < 1e-4
    assert "balanced" not in str(caught[0].message)
    with pytest.warns(ExhaustedWarning, match="largest variance"):
        filled = clone(fitted).set_params(on_exhausted="pca").fit(rows, labels)
    assert filled.tasks_ == ["b", None, None, None]
    assert_array_equal(filled.gain_[1:], 0)
    assert_array_equal(filled.norms_[1:], 1)
    assert_array_equal(filled.intercepts_[1:], 0)
    assert_array_equal(filled.n_iter_per_component_[1:], 0)
    assert_allclose(np.abs(filled.components_[0]), np.abs(fitted.components_[0]), atol=1e-9)
    variances = filled.transform(rows)[:, 1:].var(axis=0)
    assert (np.diff(variances) <= 1e-9).all()


def test_variance_fillers_are_announced_only_where_there_are_some(cls):
    rows = X[:, :2]
    with pytest.warns(ExhaustedWarning, match="2 of 5") as caught:
        fitted = cls(n_components=5, on_exhausted="pca").fit(rows, Y)
    assert None not in fitted.tasks_
    assert "variance" not in str(caught[0].message)


@pytest.mark.parametrize("n_features", [3, 30])
def test_constant_rows_have_no_directions_of_largest_variance(cls, n_features):
    """Rounding of the mean is not variance."""
    rows, labels = np.full((7, n_features), 0.1), [0, 1, 0, 1, 0, 1, 0]
    with pytest.raises(InvalidInputError):
        cls(on_exhausted="pca").fit(rows, labels)


def test_the_inverse_is_the_nearest_point_of_the_subspace(cls):
    for scaling in ("unit", "margin"):
        fitted = cls(n_components=3, scaling=scaling).fit(X, Y)
        back = fitted.inverse_transform(fitted.transform(X))
        assert_allclose(fitted.transform(back), fitted.transform(X), atol=1e-9)
        assert_allclose((X - back) @ fitted.components_.T, 0, atol=1e-9)
    complete = cls(n_components=4).fit(X[:, :4], Y)
    assert complete.n_components_ == 4
    assert_allclose(complete.inverse_transform(complete.transform(X[:, :4])), X[:, :4], atol=1e-9)


@pytest.mark.parametrize("sizes", [(1, 2), (3, 5)])
def test_more_components_extend_fewer_of_the_same_tasks(cls, sizes):
    """Three classes: one and two components are splits, from three on it is the round robin."""
    few, many = (cls(n_components=k).fit(X, Y) for k in sizes)
    assert_allclose(many.transform(X)[:, : sizes[0]], few.transform(X), atol=1e-7)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_automatic_tasks_are_splits_for_few_components_and_else_one_vs_rest(cls, n_classes, kernel):
    labels = np.arange(len(X)) % n_classes
    rows = X + 2.0 * np.random.default_rng(0).standard_normal((n_classes, X.shape[1]))[labels]
    for k in (1, 2, 3, 5):
        tasks = "splits" if n_classes > 2 and k < n_classes else "one_vs_rest"
        automatic = cls(n_components=k, kernel=kernel).fit(rows, labels)
        assert_same_fit(
            automatic, cls(n_components=k, kernel=kernel, tasks=tasks).fit(rows, labels), 0.0
        )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_names_of_many_classes_decide_only_the_signs_of_splits(cls, kernel):
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 6
    rows = rng.standard_normal((120, 7)) + 1.5 * rng.standard_normal((6, 7))[labels]
    names = rng.permutation(6)
    old = cls(n_components=4, kernel=kernel).fit(rows, labels)
    new = cls(n_components=4, kernel=kernel).fit(rows, names[labels])
    A, B = old.transform(rows), new.transform(rows)
    assert_allclose(B * np.sign((A * B).sum(axis=0)), A, rtol=0, atol=1e-6)
    assert_allclose(new.gain_, old.gain_, rtol=1e-6)
    for task, other in zip(old.tasks_, new.tasks_, strict=True):
        renamed = set(names[np.atleast_1d(task)])
        assert set(np.atleast_1d(other)) in (renamed, set(range(6)) - renamed)


def test_the_order_of_rows_does_not_matter(cls):
    order = np.random.default_rng(0).permutation(len(X))
    for kernel in ("linear", "rbf"):
        expected = cls(kernel=kernel).fit(X, Y).transform(X)
        assert_allclose(
            cls(kernel=kernel).fit(X[order], Y[order]).transform(X), expected, atol=1e-6
        )


def test_the_names_of_classes_do_not_matter_beyond_their_order(cls):
    expected = cls().fit(X, Y)
    renamed = cls().fit(X, np.array([-5, 10, 1000])[Y])
    assert_array_equal(renamed.components_, expected.components_)


def test_weights_are_copies_and_zero_is_absent(cls):
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    for kernel in ("linear", ExactKernel("rbf", gamma=0.1)):
        weighted = cls(kernel=kernel).fit(X, Y, sample_weight=weights)
        copied = cls(kernel=kernel).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
        assert_allclose(weighted.transform(X), copied.transform(X), atol=1e-6)


def test_wide_rows_have_directions_in_their_span(cls):
    rows = np.tile(X[::6], 5)
    fitted = cls(n_components=3, deflation="orthogonal").fit(rows, Y[::6])
    assert fitted.components_.shape == (3, 65)
    assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(3), atol=1e-10)
    centred = rows - rows.mean(axis=0)
    in_span = centred.T @ np.linalg.lstsq(centred.T, fitted.components_.T, rcond=None)[0]
    assert_allclose(in_span.T, fitted.components_, atol=1e-9)


def test_a_map_object_is_as_good_as_its_name(cls):
    assert_array_equal(
        cls(kernel=Linear()).fit(X, Y).components_, cls(kernel="linear").fit(X, Y).components_
    )
    assert hasattr(cls(kernel=Linear()).fit(X, Y), "inverse_transform")


@pytest.mark.filterwarnings("ignore::marginfold.errors.ExhaustedWarning")
def test_a_task_is_not_called_exhausted_by_an_uncertified_solution(cls):
    """A solver that stops early finds little gain; the user must hear of the solver."""
    with pytest.warns(UncertifiedWarning, match="relative duality gap"):
        cls(solver=InteriorPoint(max_iter=2)).fit(X, Y)


@pytest.mark.filterwarnings("error")
def test_libsvm_is_an_option_without_a_warning(cls):
    """The documented shorthand must reach the default tolerance on ordinary data."""
    libsvm = cls(solver="libsvm").fit(X, Y)
    assert_allclose(libsvm.transform(X), cls().fit(X, Y).transform(X), atol=1e-3)
