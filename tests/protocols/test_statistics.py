"""Paired comparisons against the formulas written out, counting, and simulated coverage."""

from __future__ import annotations

from itertools import product
from math import comb, sqrt

import numpy as np
import pytest
from scipy import stats

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.protocols.statistics import CONFIDENCE, paired_interval, wins


def literal_interval(values, n_train, n_test):
    """Nadeau and Bengio's interval with loops, its quantile by bisection of the t distribution."""
    J = len(values)
    mean = sum(values) / J
    variance = sum((v - mean) ** 2 for v in values) / (J - 1)
    error = sqrt((1 / J + n_test / n_train) * variance)
    low, high = 0.0, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        inside = stats.t.cdf(middle, J - 1) - stats.t.cdf(-middle, J - 1)
        low, high = (middle, high) if inside < CONFIDENCE else (low, middle)
    p_value = stats.t.cdf(-abs(mean) / error, J - 1) * 2
    return mean, mean - low * error, mean + low * error, p_value


@pytest.mark.parametrize("shape", [(2,), (10,), (3, 5), (1, 10)])
def test_the_interval_is_the_printed_formula(shape):
    values = np.random.default_rng(0).normal(0.01, 0.02, shape)
    found = paired_interval(values, n_train=90, n_test=10)
    expected = literal_interval(values.ravel().tolist(), 90, 10)
    assert (found.mean, found.low, found.high, found.p_value) == pytest.approx(expected)


def test_without_overlap_it_is_the_t_test():
    values = np.random.default_rng(1).normal(0.5, 1.0, 12)
    found = paired_interval(values, n_train=1e15, n_test=1)
    plain = stats.ttest_1samp(values, 0.0)
    bounds = plain.confidence_interval(CONFIDENCE)
    assert found.p_value == pytest.approx(plain.pvalue)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high))


def test_an_interval_excludes_zero_exactly_if_its_p_value_says_so():
    rng = np.random.default_rng(2)
    for _ in range(50):
        found = paired_interval(rng.normal(0.3, 0.5, 10), 90, 10)
        assert (found.low > 0 or found.high < 0) == (found.p_value < 1 - CONFIDENCE)


def test_coverage_when_folds_share_noise():
    """Differences of correlation rho = n_test / (n_test + n_train), as the correction assumes."""
    rng = np.random.default_rng(3)
    n_train, n_test, runs = 80, 20, 2000
    rho = n_test / (n_test + n_train)
    shared, own = rng.standard_normal((runs, 1)), rng.standard_normal((runs, 10))
    draws = sqrt(rho) * shared + sqrt(1 - rho) * own
    corrected = [paired_interval(row, n_train, n_test) for row in draws]
    plain = [paired_interval(row, 1e15, 1) for row in draws]
    coverage, short = (
        np.mean([i.low <= 0 <= i.high for i in found]) for found in (corrected, plain)
    )
    assert abs(coverage - CONFIDENCE) < 0.015  # three standard errors of 2000 runs
    assert short < 0.85


def test_equal_differences_have_no_width():
    none = paired_interval(np.zeros((2, 5)), 4, 1)
    assert (none.mean, none.low, none.high, none.p_value) == (0, 0, 0, 1)
    some = paired_interval(np.full(5, 0.1), 4, 1)
    assert some.low == some.high == pytest.approx(0.1)
    assert some.p_value == 0


def test_intervals_that_cannot_be():
    with pytest.raises(InvalidInputError, match=r"got 1 difference.*at least 2"):
        paired_interval([0.1], 4, 1)
    with pytest.raises(InvalidInputError, match="1 numbers that are NaN"):
        paired_interval([0.1, np.nan], 4, 1)
    for sizes in [(0, 1), (1, 0), (np.nan, 1), (4, -1), (np.inf, 1)]:
        with pytest.raises(InvalidParameterError, match=r"n_train=.*n_test="):
            paired_interval([0.1, 0.2], *sizes)


@pytest.mark.parametrize(("n_wins", "n_losses"), [(5, 0), (7, 3), (4, 4), (1, 9)])
def test_the_sign_test_counts_coins(n_wins, n_losses):
    n = n_wins + n_losses
    a = np.concatenate([np.zeros(n_wins), np.arange(1, n_losses + 1), [0.5, 0.5]])
    b = np.concatenate([np.arange(1, n_wins + 1), np.zeros(n_losses), [0.5, 0.5]])
    found = wins(a, b)
    assert (found.wins, found.ties, found.losses) == (n_wins, 2, n_losses)
    extreme = max(n_wins, n_losses)
    tail = sum(comb(n, k) for k in range(extreme, n + 1)) / 2**n
    assert found.sign_p == pytest.approx(min(1.0, 2 * tail))


@pytest.mark.parametrize(
    "gains",
    [
        [0.3, -0.1, 0.7, 0.45, -0.2, 0.05, 0.9],
        [0.1, 0.3 - 0.2, -0.1, 0.2, 0.2, 0.3],  # equal up to rounding: they share a rank
        [1.0],
    ],
)
def test_the_signed_rank_test_counts_all_signs(gains):
    gains = np.array(gains)
    ranks = stats.rankdata(np.round(np.abs(gains), 9))
    observed, centre = ranks[gains > 0].sum(), ranks.sum() / 2
    sums = [ranks[np.array(signs)].sum() for signs in product([False, True], repeat=len(gains))]
    share = np.mean([abs(s - centre) >= abs(observed - centre) for s in sums])
    assert wins(-gains, np.zeros(len(gains))).wilcoxon_p == pytest.approx(share)


@pytest.mark.parametrize(("n", "method"), [(12, "exact"), (45, "exact"), (80, "approx")])
def test_the_signed_rank_test_is_that_of_scipy(n, method):
    gains = np.random.default_rng(4).normal(0.2, 1, n)
    expected = stats.wilcoxon(gains, method=method).pvalue
    assert wins(gains, np.zeros(n), larger_is_better=True).wilcoxon_p == pytest.approx(expected)


def test_the_sides_can_be_exchanged():
    rng = np.random.default_rng(5)
    a, b = rng.random(20), rng.random(20)
    one, other = wins(a, b), wins(b, a)
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    assert (one.sign_p, one.wilcoxon_p) == pytest.approx((other.sign_p, other.wilcoxon_p))
    assert wins(a, b) == wins(b, a, larger_is_better=True)


def test_rounding_is_a_tie_and_nothing_else_is_evidence():
    found = wins([0.1 + 0.2, 0.5], [0.3, 0.5])
    assert (found.wins, found.ties, found.losses) == (0, 2, 0)
    assert (found.sign_p, found.wilcoxon_p) == (1, 1)
    assert wins([], []).ties == 0


def test_wins_that_cannot_be_counted():
    with pytest.raises(InvalidInputError, match=r"shapes \(2,\) and \(3,\)"):
        wins([1, 2], [1, 2, 3])
    with pytest.raises(InvalidInputError, match="b has 1 numbers that are NaN"):
        wins([1.0], [np.nan])


def test_words():
    assert str(wins([0.1] * 3, [0.2] * 3)).startswith(
        "3 wins, 0 ties, 0 losses (sign test p = 0.25"
    )
    assert "95 % interval" in str(paired_interval([0.1, 0.3], 4, 1))
