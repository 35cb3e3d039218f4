"""Orders round a circle: against all permutations, planted circles, and other names."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from marginfold.geometry.circle import EXACT_ITEMS, circle_points, circular_order


def value(affinity, order):
    order = list(order)
    return sum(
        affinity[a, b] + affinity[b, a] for a, b in zip(order, order[1:] + order[:1], strict=True)
    )


def random_affinity(n, seed):
    return np.random.default_rng(seed).exponential(size=(n, n)) ** 2


def planted(n, seed):
    """Affinities that fall with the distance on a circle of hidden order."""
    hidden = np.random.default_rng(seed).permutation(n)
    place = np.argsort(hidden)
    steps = np.abs(place[:, None] - place)
    return np.exp(-np.minimum(steps, n - steps)), hidden


def pairs_of(order):
    return {frozenset(pair) for pair in zip(order, np.roll(order, -1), strict=True)}


@pytest.mark.parametrize("n", [4, 5, 6, 7])
@pytest.mark.parametrize("seed", range(4))
def test_no_permutation_is_better(n, seed):
    affinity = random_affinity(n, seed)
    best = max(value(affinity, (0, *rest)) for rest in permutations(range(1, n)))
    assert_allclose(value(affinity, circular_order(affinity)), best, rtol=1e-12)


@pytest.mark.parametrize("n", [8, EXACT_ITEMS, EXACT_ITEMS + 1, 30, 100])
def test_a_planted_circle_is_found(n):
    affinity, hidden = planted(n, seed=n)
    assert pairs_of(circular_order(affinity)) == pairs_of(hidden)


@pytest.mark.parametrize("n", [EXACT_ITEMS + 1, 25])
@pytest.mark.parametrize("seed", range(3))
def test_many_items_are_in_an_order_that_no_exchange_improves(n, seed):
    affinity = random_affinity(n, seed)
    order = list(circular_order(affinity))
    reached = value(affinity, order)
    for start, end in combinations(range(n + 1), 2):
        turned = order[:start] + order[start:end][::-1] + order[end:]
        assert value(affinity, turned) <= reached + 1e-9
    by_chance = max(value(affinity, np.random.default_rng(k).permutation(n)) for k in range(200))
    assert reached > 1.2 * by_chance


@pytest.mark.parametrize("n", [2, 3, 5, EXACT_ITEMS, EXACT_ITEMS + 5])
def test_names_do_not_matter_and_the_start_is_agreed(n):
    affinity = random_affinity(n, seed=n)
    order = circular_order(affinity)
    assert_array_equal(np.sort(order), np.arange(n))
    assert order[0] == 0
    assert n == 2 or order[1] < order[-1]
    names = np.random.default_rng(0).permutation(n)
    renamed = circular_order(affinity[np.ix_(names, names)])
    assert pairs_of(names[renamed]) == pairs_of(order)
    assert_array_equal(circular_order(affinity.T + 3 * np.eye(n)), order)


def test_without_preferences_the_items_keep_their_order():
    for n in (4, EXACT_ITEMS + 2):
        assert_array_equal(np.sort(circular_order(np.zeros((n, n)))), np.arange(n))


def test_points_go_counter_clockwise():
    assert_array_equal(circle_points(np.array([0, 1])), [[1.0, 0.0], [-1.0, 0.0]])
    points = circle_points(np.array([0, 2, 1, 3]))
    assert_allclose(points, [[1, 0], [-1, 0], [0, 1], [0, -1]], atol=1e-15)
    many = circle_points(np.arange(7))
    assert_allclose(np.linalg.norm(many, axis=1), 1.0)
    assert_allclose(many.sum(axis=0), 0.0, atol=1e-14)
    crossed = np.linalg.det(np.stack([many, np.roll(many, -1, axis=0)], axis=1))
    assert_allclose(crossed, np.sin(2 * np.pi / 7))
