"""A component that carries nothing is never returned: maths 1.5, checked against linear programs.

Proposition.  With costs C_i and the cheaper side called the minority, w = 0 is optimal if and only
if the cost-weighted mean of the minority lies in the reduced convex hull of the other side,
``{sum_i mu_i z_i : sum_i mu_i = 1, 0 <= mu_i <= C_i / (cost of the minority)}``.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group

from marginfold import GESVC, LSVA, MMDA, WSVDA
from marginfold.errors import ExhaustedWarning, NoDirectionError
from marginfold.geometry.directions import MIN_GAIN, gain_of
from marginfold.geometry.one_vs_rest import LabelledRows, class_factors
from marginfold.linalg.tall import SharedRows
from marginfold.svm import InteriorPoint, SVMBatch

pytestmark = pytest.mark.attack("degenerate rows")

INSIDE = 1e-12
"""Distance from the hull that the linear program cannot tell from none."""

CERTIFIED = 1e-8
"""Relative duality gap of the solver: gains are known up to this."""

seeds = st.integers(0, 10**6)


def distance_to_hull(Z, positive, costs):
    """Return the largest-coordinate distance of the minority's mean to the reduced hull, by LP."""
    if costs[positive].sum() > costs[~positive].sum():
        positive = ~positive
    total = costs[positive].sum()
    mean = costs[positive] @ Z[positive] / total
    other, r = Z[~positive], Z.shape[1]
    bounds = [(0, min(c / total, 1.0)) for c in costs[~positive]] + [(0, None)]
    ones = np.ones((r, 1))
    solution = linprog(
        np.append(np.zeros(len(other)), 1.0),
        A_ub=np.block([[other.T, -ones], [-other.T, -ones]]),
        b_ub=np.concatenate([mean, -mean]),
        A_eq=np.append(np.ones(len(other)), 0.0)[None],
        b_eq=[1.0],
        bounds=bounds,
    )
    assert solution.status == 0
    return float(solution.fun)


def solve(Z, positive, costs, *, scale=None, deflated=None):
    """Return the gain of one problem and whether the library calls it more than nothing."""
    r = Z.shape[1]
    batch = SVMBatch(
        rows=SharedRows(Z),
        signs=np.where(positive, 1.0, -1.0)[None],
        costs=costs[None],
        scale=np.ones((1, r)) if scale is None else scale[None],
        deflated=np.zeros((1, r, 0)) if deflated is None else deflated[None],
    )
    solution = InteriorPoint().solve_batch(batch)[0]
    assert solution.converged
    return gain_of(batch, 0, solution)


def class_costs(y, task, class_weight, C=1.0):
    c = int(y.max()) + 1
    balanced, factors = class_factors(class_weight, np.arange(c))
    return LabelledRows(y, np.ones(len(y)), c, balanced, factors).costs(task, C)


def overlapping(seed, c=3, n=40, d=5, shift=0.7):
    """Classes of unequal size that overlap so much that about half of the tasks are degenerate."""
    rng = np.random.default_rng(seed)
    sizes = rng.dirichlet(np.full(c, 2.0))
    y = np.append(np.repeat(np.arange(c), 2), rng.choice(c, n - 2 * c, p=sizes))
    X = rng.standard_normal((n, d)) + shift * rng.standard_normal((c, d))[y]
    return X, y


def transfusion_like(n=300, seed=0):
    """A quarter of the rows are positive and lie a little to one side of the rest."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 4 == 0).astype(int)
    return rng.standard_normal((n, 4)) + 0.3 * y[:, None] * np.array([1.0, -1.0, 0.0, 0.0]), y


# ---------------------------------------------------------------------------- the proposition


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 2: 0.4}])
@settings(max_examples=40)
@given(seed=seeds, rank=st.integers(1, 5), task=st.sampled_from([(0,), (1,), (2,), (0, 2)]))
def test_zero_is_optimal_iff_the_mean_is_in_the_reduced_hull(class_weight, seed, rank, task):
    X, y = overlapping(seed)
    Z = X @ ortho_group.rvs(5, random_state=seed)[:, :rank]
    positive, costs = np.isin(y, task), class_costs(y, task, class_weight)
    distance = distance_to_hull(Z, positive, costs)
    gain, enough = solve(Z, positive, costs)
    if distance < INSIDE:
        assert not enough
    # The steepest slope of the objective at w = 0 is the cost of the minority, c, times the
    # distance, and stays so until a row leaves the margin, at |w| <= 2 / diameter.
    c = min(costs[positive].sum(), costs[~positive].sum())
    step = min(c * distance, 2.0 / pdist(Z).max())
    lower = (c * distance * step - 0.5 * step**2) / (2 * c)
    upper = c * rank * distance**2 / 4  # the distance is in the largest coordinate
    assert lower - CERTIFIED <= gain <= upper + CERTIFIED
    if lower > MIN_GAIN:
        assert enough


def test_the_linear_program_sees_both_kinds():
    kinds = []
    for seed in range(40):
        X, y = overlapping(seed)
        kinds.append(distance_to_hull(X[:, :3], y == 0, class_costs(y, (0,), None)) < INSIDE)
    assert 8 < sum(kinds) < 32


@settings(max_examples=15)
@given(seed=seeds, C=st.sampled_from([1e-5, 1e-2, 1.0, 1e3]))
def test_degeneracy_depends_on_neither_the_cost_nor_the_metric(seed, C):
    X, y = overlapping(seed)
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-2, 0, 5)  # the diagonal of A^(-1/2)
    costs = class_costs(y, (0,), None)
    distance = distance_to_hull(X, y == 0, costs)
    gain, enough = solve(X, y == 0, C * costs, scale=scale)
    if distance < INSIDE:
        assert not enough
        assert gain < CERTIFIED
    elif distance > 0.05:  # a poor metric shrinks the gain, but never to nothing
        assert gain > 1e-12


@settings(max_examples=8)
@given(seed=seeds)
def test_a_gain_never_rises_under_deflation(seed):
    X, y = overlapping(seed, shift=1.5)
    N = ortho_group.rvs(5, random_state=seed)
    for task in [(0,), (1,), (2,)]:
        positive, costs = np.isin(y, task), class_costs(y, task, None)
        gains = [solve(X, positive, costs, deflated=N[:, :k])[0] for k in range(5)]
        distances = [distance_to_hull(X @ N[:, k:], positive, costs) for k in range(5)]
        assert (np.diff(gains) <= CERTIFIED).all()
        degenerate = np.array(distances) < INSIDE
        assert (np.diff(degenerate.astype(int)) >= 0).all()
        assert_allclose(np.array(gains)[degenerate], 0.0, atol=CERTIFIED)


@settings(max_examples=15)
@given(seed=seeds, class_weight=st.sampled_from([None, "balanced"]))
def test_what_is_left_after_exhaustion_is_degenerate_for_every_task(seed, class_weight):
    X, y = overlapping(seed, d=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)
        try:
            model = MMDA(3, C=1.0, class_weight=class_weight, deflation="orthogonal")
            W = model.fit(X, y).components_
        except NoDirectionError:
            W = np.zeros((0, 3))
    left = null_space(W) if len(W) else np.eye(3)
    for task in [(0,), (1,), (2,)] if len(W) < 3 else []:
        costs = class_costs(y, task, class_weight)
        # a gain below 1e-4 still allows a distance of sqrt(4e-4 / cost of the minority)
        assert distance_to_hull(X @ left, y == task[0], costs) < 0.05


# --------------------------------------------------------------------------------- exhaustion


@pytest.mark.parametrize(
    "model", [MMDA, LSVA, WSVDA, lambda **k: LSVA(graph="within", graph_weight=100.0, **k)]
)
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
def test_no_direction_is_an_error_whatever_the_cost_and_the_metric(model, C):
    X, y = transfusion_like()
    assert distance_to_hull(X, y == 1, np.ones(len(y))) < INSIDE
    with pytest.raises(NoDirectionError, match="class_weight='balanced'") as error:
        model(class_weight=None, C=C).fit(X, y)
    assert "found 0 of 2 components" in str(error.value)
    assert "relative gains when dropped: 1: " in str(error.value)


def test_balanced_weights_find_the_direction_that_the_minority_hides():
    X, y = transfusion_like()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MMDA(1).fit(X, y)
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    assert model.components_[0] @ difference > 0.9 * np.linalg.norm(difference)


def test_a_degenerate_classifier_is_constant_and_says_so():
    X, y = transfusion_like()
    with pytest.warns(ExhaustedWarning, match="balanced") as caught:
        model = GESVC(graph="within").fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (model.predict(X) == 0).all()
    assert_allclose(model.decision_function(X), -1.0, atol=1e-6)


@pytest.mark.parametrize("model", [MMDA, LSVA, WSVDA])
def test_pca_fills_in_when_there_is_nothing_at_all(model):
    X, y = transfusion_like()
    with pytest.warns(ExhaustedWarning, match="found 0 of 3 components") as caught:
        fitted = model(3, class_weight=None, on_exhausted="pca").fit(X, y)
    assert len(caught) == 1
    assert "variance" in str(caught[0].message)
    assert fitted.tasks_ == [None, None, None]
    assert fitted.n_components_ == 3
    assert_allclose(fitted.gain_, 0.0)
    assert list(fitted.exhausted_) == [1]
    assert fitted.exhausted_[1] < MIN_GAIN
    axes = np.linalg.svd(X - X.mean(axis=0))[2][:3]
    assert_allclose(np.abs((fitted.components_ * axes).sum(axis=1)), 1.0, atol=1e-10)


def within_scatter(X, y):
    rows = [X[y == code] - X[y == code].mean(axis=0) for code in np.unique(y)]
    return np.vstack(rows).T @ np.vstack(rows)


def two_clouds():
    rng = np.random.default_rng(3)
    y = np.arange(60) % 2
    return rng.standard_normal((60, 6)) + y[:, None] * np.array([1.0, 0.5, 0, 0, 0, 0]), y


@pytest.mark.parametrize("C", [1e-8, 1e-6, 1e-4])
def test_a_small_cost_leaves_one_component_and_no_noise(C):
    # every multiplier is at its bound: w is the difference of the means, after which the means
    # coincide and a balanced task is over
    X, y = two_clouds()
    with pytest.warns(ExhaustedWarning, match="found 1 of 4 components") as caught:
        model = MMDA(4, C=C, deflation="orthogonal").fit(X, y)
    assert len(caught) == 1
    assert model.tasks_ == [1]
    assert model.gain_[0] > 0
    assert model.exhausted_[1] < MIN_GAIN * model.gain_[0]
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    size = np.linalg.norm(difference)
    assert_allclose(model.components_[0], difference / size, rtol=0, atol=1e-9)
    assert_allclose(model.norms_[0], 30 * C * size, rtol=1e-9)


@pytest.mark.parametrize("C", [1e-8, 1e-6])
@pytest.mark.parametrize("method", ["LSVA", "WSVDA"])
def test_a_small_cost_with_a_metric_has_no_noise_either(method, C):
    # w is A^-1 times what is left of the difference of the means; orthogonality to w does not
    # exhaust that difference at once, but nothing else may ever be returned
    X, y = two_clouds()
    S = within_scatter(X, y)
    if method == "LSVA":
        model = LSVA(6, graph="within", normalize_graph=False, deflation="orthogonal")
        A = np.eye(6) + S
    else:
        model, A = WSVDA(6), S + 1e-3 * np.trace(S) / 6 * np.eye(6)
    with pytest.warns(ExhaustedWarning) as caught:
        model.set_params(C=C).fit(X, y)
    assert len(caught) == 1
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    assert 1 <= model.n_components_ < 6
    for k, component in enumerate(model.components_):
        V = null_space(model.components_[:k]) if k else np.eye(6)
        w = V @ np.linalg.solve(V.T @ A @ V, V.T @ difference)
        assert_allclose(component, w / np.linalg.norm(w), rtol=0, atol=1e-6)


def test_a_small_cost_finds_as_many_components_as_there_are_mean_differences():
    rng = np.random.default_rng(4)
    y = np.arange(80) % 4
    X = rng.standard_normal((80, 7)) + 2.0 * rng.standard_normal((4, 7))[y]
    with pytest.warns(ExhaustedWarning, match="found 3 of 7 components"):
        fitted = MMDA(7, C=1e-6, deflation="orthogonal").fit(X, y)
    means = np.array([X[y == code].mean(axis=0) for code in range(4)])
    outside = means - means.mean(axis=0)
    outside = outside - outside @ fitted.components_.T @ fitted.components_
    assert_allclose(outside, 0.0, atol=1e-9)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("tasks", ["one_vs_rest", "greedy", "splits"])
def test_columns_of_pure_noise_are_never_returned(class_weight, tasks):
    # Each row comes with mirror images in the noise columns: no label depends on those at all.
    rng = np.random.default_rng(5)
    y = np.tile(np.arange(3), 15)
    signal = rng.standard_normal((45, 2)) + 4.0 * rng.standard_normal((3, 2))[y]
    noise = 10.0 * rng.standard_normal((45, 5))
    X = np.vstack([np.hstack([signal, noise]), np.hstack([signal, -noise])])
    with pytest.warns(ExhaustedWarning) as caught:
        model = MMDA(7, class_weight=class_weight, tasks=tasks).fit(X, np.tile(y, 2))
    assert len(caught) == 1
    assert model.n_components_ == 2
    assert_allclose(model.components_[:, 2:], 0.0, atol=1e-7)


@pytest.mark.parametrize("on_exhausted", ["stop", "pca"])
def test_the_warning_comes_once_and_shows_the_gains(on_exhausted):
    X, y = overlapping(2, shift=2.0)
    names = np.array(["ant", "bee", "cat"])
    with pytest.warns(ExhaustedWarning) as caught:
        model = MMDA(5, C=1e-3, deflation="orthogonal", on_exhausted=on_exhausted).fit(X, names[y])
    assert len(caught) == 1
    message = str(caught[0].message)
    found = sum(task is not None for task in model.tasks_)
    assert 0 < found < 5
    assert f"MMDA found {found} of 5 components" in message
    assert set(model.exhausted_) == set(names)
    for name, gain in model.exhausted_.items():
        assert f"{name!r}: {gain:.1e}" in message
    assert ("variance" in message) == (on_exhausted == "pca")
    assert caught[0].filename == __file__  # it points at the caller


def test_no_warning_when_everything_was_found():
    X, y = overlapping(0, shift=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MMDA(2).fit(X, y)
    assert model.n_components_ == 2
    assert model.exhausted_ == {}


@pytest.mark.parametrize("on_exhausted", ["stop", "pca"])
def test_more_components_than_dimensions(on_exhausted):
    X, y = overlapping(1, shift=3.0, d=2)
    with pytest.warns(ExhaustedWarning, match=r"2 of 6 components: .* 2 dimension") as caught:
        model = MMDA(6, on_exhausted=on_exhausted).fit(X, y)
    assert len(caught) == 1
    assert model.n_components_ == 2
    assert model.components_.shape == (2, 2)
    assert model.transform(X).shape == (len(X), 2)


def test_more_components_than_rows_span():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5, 9)), np.array([0, 1, 0, 1, 1])
    with pytest.warns(ExhaustedWarning):
        model = MMDA(9, C=100.0, on_exhausted="pca").fit(X, y)
    assert model.n_components_ == 4  # five points span four dimensions


# ----------------------------------------------------------------------------------- filling


def scatter_left(X, W):
    """Return the scatter matrix of the rows without their part in the span of W's rows."""
    Z = X - X.mean(axis=0)
    Z = Z - Z @ W.T @ W
    return Z.T @ Z


@pytest.mark.parametrize("model", [MMDA, LSVA, WSVDA])
def test_fillers_are_the_leading_axes_of_what_is_left(model):
    X, y = two_clouds()
    with pytest.warns(ExhaustedWarning):
        fitted = model(6, C=1e-5, deflation="orthogonal", on_exhausted="pca").fit(X, y)
    k = sum(task is not None for task in fitted.tasks_)
    assert 1 <= k < 5
    assert fitted.tasks_[k:] == [None] * (6 - k)
    W = fitted.components_
    assert_allclose(W @ W.T, np.eye(6), rtol=0, atol=1e-10)
    sizes, axes = np.linalg.eigh(scatter_left(X, W[:k]))
    sizes, axes = sizes[::-1], axes[:, ::-1]
    for j in range(k, 6):
        assert_allclose(abs(axes[:, j - k] @ W[j]), 1.0, atol=1e-9)
        assert W[j][np.abs(W[j]).argmax()] > 0
    scores = (X - X.mean(axis=0)) @ W[k:].T
    assert_allclose((scores**2).sum(axis=0), sizes[: 6 - k], rtol=1e-9)


def test_fillers_without_variance_carry_nothing_and_are_not_returned():
    X, y = overlapping(7, d=3, shift=2.0)
    X = np.column_stack([X, np.ones((len(X), 2)), X[:, 0]])  # two constants and a copy
    with pytest.warns(ExhaustedWarning):
        model = MMDA(6, on_exhausted="pca").fit(X, y)
    assert model.transform(X).std(axis=0).min() > 1e-6
    assert model.n_components_ == 3


def test_fillers_of_a_kernel_have_falling_variance_and_are_orthogonal():
    X, y = overlapping(7, d=3, shift=1.0)
    model = MMDA(8, kernel="rbf", C=1e-4, deflation="orthogonal", on_exhausted="pca")
    with pytest.warns(ExhaustedWarning):
        model.fit(X, y)
    assert model.tasks_.count(None) == 6  # three means, two differences
    scores = model.transform(X)[:, 2:]
    covariance = scores.T @ scores
    assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-9)
    assert (np.diff(np.diag(covariance)) <= 1e-12).all()


# ------------------------------------------------------------------------------------ tasks


@settings(max_examples=8)
@given(seed=seeds, class_weight=st.sampled_from(["balanced", {0: 2.0}]))
def test_greedy_takes_the_largest_gain_first(seed, class_weight):
    X, y = overlapping(seed, c=4, shift=1.5)
    model = MMDA(3, C=1.0, tasks="greedy", deflation="orthogonal", class_weight=class_weight)
    model.fit(X, y)
    for k, task in enumerate(model.tasks_):
        N = model.components_[:k].T
        gains = [
            solve(X, y == code, class_costs(y, (code,), class_weight), deflated=N)[0]
            for code in range(4)
        ]
        assert gains[task] >= max(gains) - 1e-9
        assert_allclose(model.gain_[k], gains[task], rtol=1e-6)


@pytest.mark.parametrize("tasks", ["one_vs_rest", "greedy", "splits"])
def test_gains_are_those_of_the_tasks_in_what_was_left(tasks):
    X, y = overlapping(11, c=4, shift=1.5)
    model = LSVA(4, C=1.0, tasks=tasks, deflation="orthogonal", graph_weight=0.0).fit(X, y)
    for k, task in enumerate(model.tasks_):
        codes = task if isinstance(task, tuple) else (task,)
        gain, enough = solve(
            X,
            np.isin(y, codes),
            class_costs(y, codes, "balanced"),
            deflated=model.components_[:k].T,
        )
        assert enough
        assert_allclose(model.gain_[k], gain, rtol=1e-6)


def test_round_robin_goes_through_the_classes_and_drops_the_exhausted():
    X, y = overlapping(13, c=4, n=80, d=7, shift=1.5)
    with pytest.warns(ExhaustedWarning):
        model = MMDA(7, C=1.0, class_weight=None, deflation="orthogonal").fit(X, y)
    assert model.tasks_[0] == next(code for code in range(4) if code not in early(model))
    alive, expected = list(range(4)), []
    for k in range(model.n_components_ + 1):
        while alive:
            code = alive.pop(0)
            costs = class_costs(y, (code,), None)
            if solve(X, y == code, costs, deflated=model.components_[:k].T)[1]:
                expected.append(code)
                alive.append(code)
                break
    assert model.tasks_ == expected[: model.n_components_]
    assert set(model.exhausted_) == set(range(4))


def early(model):
    """Return the classes that were exhausted before they gave any component."""
    return set(model.exhausted_) - set(model.tasks_)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_splits_part_every_pair_of_separable_classes(n_classes, kernel):
    rng = np.random.default_rng(n_classes)
    needed = int(np.ceil(np.log2(n_classes)))
    y = np.arange(20 * n_classes) % n_classes
    corners = np.array([[(code >> bit) & 1 for bit in range(3)] for code in range(n_classes)])
    X = 8.0 * corners[y] * np.array([1.0, 1.3, 1.6]) + rng.standard_normal((len(y), 3))
    model = MMDA(needed, tasks="splits", kernel=kernel, C=10.0).fit(X, y)
    assert model.n_components_ == needed
    sides = np.array(
        [np.isin(np.arange(n_classes), task) for task in model.tasks_], dtype=bool
    )  # (component, class)
    assert len(np.unique(sides.T, axis=0)) == n_classes  # no two classes share all sides
    if n_classes == 2**needed:  # else a side may be two opposite corners
        values = model.decision_function(X) > 0
        assert ((values == sides[:, y].T).mean(axis=0) > 0.99).all()


def test_splits_need_few_more_components_than_the_logarithm():
    # one-vs-rest cannot do it: four components part four of eight classes from the rest
    rng = np.random.default_rng(0)
    y = np.arange(160) % 8
    X = rng.standard_normal((160, 7)) + 12.0 * rng.standard_normal((8, 7))[y]
    for tasks, parted in (("splits", 8), ("one_vs_rest", 5)):
        model = MMDA(4, tasks=tasks, C=10.0).fit(X, y)
        signs = [np.isin(np.arange(8), task) for task in model.tasks_]
        assert len(np.unique(np.array(signs).T, axis=0)) == parted
