"""Paired comparisons: an interval over folds and seeds, wins and losses over data sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import stdtr, stdtrit

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.linalg.tall import Array

CONFIDENCE = 0.95
"""Share of experiments whose interval is meant to hold the true mean."""

TIE = 1e-12
"""Differences of this size or less are rounding: they count as none."""

EXACT_MAX = 50
"""Up to this many data sets Wilcoxon's test counts all signs; above, it is the normal one."""


@dataclass(frozen=True)
class Interval:
    """A mean difference, its interval, and the two-sided p-value of the mean being 0."""

    mean: float
    low: float
    high: float
    p_value: float

    def __str__(self) -> str:
        bounds = f"{100 * CONFIDENCE:.0f} % interval {self.low:+.3g} to {self.high:+.3g}"
        return f"{self.mean:+.3g} ({bounds}, p = {self.p_value:.2g})"


@dataclass(frozen=True)
class Wins:
    """How often one method beats another, and how likely that is if neither is better.

    Attributes
    ----------
    wins, ties, losses : int
    sign_p : float
        Exact two-sided sign test; ties are left out.
    wilcoxon_p : float
        Two-sided signed-rank test, which also looks at sizes; ties are left out.
    """

    wins: int
    ties: int
    losses: int
    sign_p: float
    wilcoxon_p: float

    def __str__(self) -> str:
        return (
            f"{self.wins} wins, {self.ties} ties, {self.losses} losses (sign test "
            f"p = {self.sign_p:.2g}, signed-rank test p = {self.wilcoxon_p:.2g})"
        )


def paired_interval(
    differences: ArrayLike, n_train: float, n_test: float, *, least_deviation: float = 0.0
) -> Interval:
    """Return the corrected resampled t interval of paired differences over folds and seeds.

    Training sets of different folds and seeds overlap, so differences are correlated and the
    plain t interval is far too short.  The variance of the mean of J differences with variance
    s^2 is taken as ``(1 / J + n_test / n_train) s^2`` (Nadeau and Bengio 2003, section 4), with
    J - 1 degrees of freedom.  It is a correction by rule of thumb, not an exact interval.

    Parameters
    ----------
    differences : array of any shape
        One number for each fold of each seed, at least two in all.
    n_train, n_test : float
        Rows that a fold trains and tests on.
    least_deviation : float, default=0.0
        The standard deviation counts as at least this much: a few equal differences are no proof.

    Returns
    -------
    Interval
        If all differences are equal, both ends are the mean and the p-value is 0, or 1 if they
        are 0.

    References
    ----------
    Nadeau, Bengio: Inference for the Generalization Error, Machine Learning 52, 2003.
    Bouckaert, Frank: Evaluating the Replicability of Significance Tests for Comparing Learning
    Algorithms, PAKDD 2004 (repeated k-fold).

    Examples
    --------
    >>> from marginfold.protocols.statistics import paired_interval
    >>> print(paired_interval([[0.02, 0.01], [0.03, 0.02]], n_train=50, n_test=50))
    +0.02 (95 % interval -0.00905 to +0.0491, p = 0.12)
    """
    values = _finite(differences, "differences")
    if values.size < 2:
        raise InvalidInputError(
            f"paired_interval got {values.size} difference; it needs at least 2, one for each "
            "fold of each seed. Use more folds or seeds."
        )
    if not (0 < n_train < np.inf and 0 < n_test < np.inf):
        raise InvalidParameterError(
            f"paired_interval got n_train={n_train!r} and n_test={n_test!r}; both are numbers of "
            "rows above 0."
        )
    mean = float(values.mean())
    deviation = max(float(values.std(ddof=1)), least_deviation)
    if deviation <= TIE:
        mean = 0.0 if abs(mean) <= TIE else mean
        return Interval(mean, mean, mean, 0.0 if mean else 1.0)
    error = deviation * np.sqrt(1 / values.size + n_test / n_train)
    half = float(stdtrit(values.size - 1, (1 + CONFIDENCE) / 2) * error)
    p_value = float(2 * stdtr(values.size - 1, -abs(mean) / error))
    return Interval(mean, mean - half, mean + half, p_value)


def share_interval(count: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share ``count / n`` of independent rows (Wilson 1927).

    Examples
    --------
    >>> from marginfold.protocols.statistics import share_interval
    >>> [round(end, 3) for end in share_interval(0, 20)]
    [0.0, 0.161]
    """
    interval = stats.binomtest(count, n).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class Share:
    """A share of rows, such as those answered wrongly, with its interval.

    Examples
    --------
    >>> from marginfold.protocols.statistics import Share
    >>> print(Share.of(15, 360))
    4.2 % (2.5 to 6.8) of 360 rows
    """

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, count: int, n: int) -> Share:
        """Return the share of ``count`` among ``n`` independent rows."""
        return cls(count / n, *share_interval(count, n), n)

    def __str__(self) -> str:
        value, low, high = (f"{100 * part:.1f}" for part in (self.value, self.low, self.high))
        return f"{value} % ({low} to {high}) of {self.n} rows"


def wins(a: ArrayLike, b: ArrayLike, *, larger_is_better: bool = False) -> Wins:
    """Count the data sets on which the first method beats the second, with two paired tests.

    Parameters
    ----------
    a, b : arrays of shape (n,)
        One error for each data set, in the same order.
    larger_is_better : bool, default=False
        Whether the numbers are accuracies or other scores instead.

    Returns
    -------
    Wins

    References
    ----------
    Demsar: Statistical Comparisons of Classifiers over Multiple Data Sets, Journal of Machine
    Learning Research 7, 2006.

    Examples
    --------
    >>> from marginfold.protocols.statistics import wins
    >>> print(wins([0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.4, 0.6, 0.4, 0.4]))
    3 wins, 1 ties, 1 losses (sign test p = 0.62, signed-rank test p = 0.38)
    """
    first, second = _finite(a, "a"), _finite(b, "b")
    if first.shape != second.shape or first.ndim != 1:
        raise InvalidInputError(
            f"wins got arrays of shapes {first.shape} and {second.shape}; it needs one number for "
            "each data set in both."
        )
    gains = first - second if larger_is_better else second - first
    gains = gains[np.abs(gains) > TIE]
    n_wins = int(np.count_nonzero(gains > 0))
    n_losses = len(gains) - n_wins
    if not len(gains):
        return Wins(0, len(first), 0, 1.0, 1.0)
    sign_p = float(stats.binomtest(n_wins, len(gains)).pvalue)
    return Wins(n_wins, len(first) - len(gains), n_losses, sign_p, _signed_rank(gains))


def _signed_rank(gains: Array) -> float:
    """Return the p-value of Wilcoxon's test: all signs are counted, equal sizes included."""
    if len(gains) > EXACT_MAX:
        return float(stats.wilcoxon(gains, method="approx").pvalue)
    sizes = np.round(np.abs(gains) / TIE)  # sizes that differ by rounding share their rank
    twice = np.round(2 * stats.rankdata(sizes)).astype(int)
    counts = np.ones(1)  # sets of signs by the sum of the positive ranks, doubled
    for rank in twice:
        counts = np.append(counts, np.zeros(rank)) + np.append(np.zeros(rank), counts)
    distances = np.abs(2 * np.arange(len(counts)) - twice.sum())
    observed = abs(2 * twice[gains > 0].sum() - twice.sum())
    return float(counts[distances >= observed].sum() / counts.sum())


def _finite(values: ArrayLike, name: str) -> Array:
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise InvalidInputError(
            f"{name} has {np.count_nonzero(~np.isfinite(numbers))} numbers that are NaN or "
            "infinite; a comparison is paired, so leave such folds or data sets out of both sides."
        )
    return numbers
