"""Learning curves over the share of labels, with the unlabelled rows and without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginfold.errors import InvalidParameterError
from marginfold.linalg.tall import Array
from marginfold.protocols.held_out import (
    Scoring,
    Split,
    check_scored,
    held_out_score,
    read_partly_labelled,
)
from marginfold.protocols.hidden_labels import hide, with_marker
from marginfold.protocols.statistics import Interval, paired_interval
from marginfold.validation.parameters import Count, Flag, Number, check_arguments, shown
from marginfold.validation.rows import unique_labels

SHARES = (0.05, 0.1, 0.2, 0.5)
"""Shares of labels that a curve has if nothing else is said."""


@dataclass(frozen=True, eq=False)
class LabelCurve:
    """Scores by the share of labels, paired with those of fits on the labelled rows only.

    Attributes
    ----------
    shares : tuple of float
    n_labels : tuple of int
        Labelled training rows of each share.
    n_train, n_test : int
        Labelled rows that a repeat may learn from, of which a share keeps its label, and those
        that it scores on.
    scores : array of shape (n_repeats, n_shares)
        With the unlabelled rows; larger is better.
    labelled_only : array of shape (n_repeats, n_shares) or None
        The same estimator, rows to label and test rows, without the unlabelled rows.
    """

    shares: tuple[float, ...]
    n_labels: tuple[int, ...]
    n_train: int
    n_test: int
    scores: Array
    labelled_only: Array | None

    @property
    def mean(self) -> Array:
        """Mean score of each share over the repeats."""
        return np.asarray(self.scores.mean(axis=0))

    @property
    def spread(self) -> Array:
        """Standard deviation of the scores of each share over the repeats."""
        return np.asarray(self.scores.std(axis=0, ddof=1))

    @property
    def differences(self) -> tuple[Interval, ...]:
        """For each share what the unlabelled rows add, paired; empty without a baseline."""
        if self.labelled_only is None:
            return ()
        columns = (self.scores - self.labelled_only).T
        return tuple(paired_interval(column, self.n_train, self.n_test) for column in columns)

    def table(self) -> list[dict[str, float]]:
        """Return one row for each share.

        Without a baseline, the columns from ``labelled_only`` on are missing.
        """
        columns = {
            "share": self.shares,
            "labels": self.n_labels,
            "score": self.mean.tolist(),
            "spread": self.spread.tolist(),
        }
        if self.labelled_only is not None:
            columns |= {
                "labelled_only": self.labelled_only.mean(axis=0).tolist(),
                "labelled_only_spread": self.labelled_only.std(axis=0, ddof=1).tolist(),
                "difference": [d.mean for d in self.differences],
                "low": [d.low for d in self.differences],
                "high": [d.high for d in self.differences],
                "p_value": [d.p_value for d in self.differences],
            }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def __str__(self) -> str:
        return "\n".join(_line(row) for row in self.table())


def label_share_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    shares: Sequence[float] = SHARES,
    n_repeats: int = 10,
    test_size: float = 0.3,
    unlabeled: Any = -1,
    scoring: Scoring = None,
    random_state: int = 0,
    baseline: bool = True,
) -> LabelCurve:
    """Score an estimator with few to many labels, with all rows and with the labelled ones only.

    Unlabelled rows help on some data and hurt on other, and often they do neither; this shows
    which it is on yours.

    Parameters
    ----------
    estimator : classifier or transformer
        It, or one of its steps, needs a parameter ``unlabeled``; None is set to the marker.
    X : array, sparse matrix or data frame of shape (n, d)
    y : array of shape (n,)
        Labels; rows without one are trained on and never scored.
    shares : sequence of float, default=(0.05, 0.1, 0.2, 0.5)
        Shares of the labelled training rows that keep their label, each above 0 and at most 1.
        Every class keeps at least one; the labels of a share are among those of a larger one.
    n_repeats : int, default=10
        Random splits, stratified by class; at least 2.
    test_size : float, default=0.3
        Share of the labelled rows to score on, of every class at least one; they are not trained
        on in any way.
    unlabeled : object, default=-1
        The label of rows without one.
    scoring : str, callable or None, default=None
        For a transformer the classifier that judges its scores: "1-nn" (the nearest neighbor, the
        default), "5-nn" or "centroid"; for a classifier a scorer of scikit-learn, accuracy if None.
    random_state : int, default=0
        Seed of the splits.
    baseline : bool, default=True
        Whether to fit on the labelled rows alone as well.

    Returns
    -------
    LabelCurve

    Notes
    -----
    Without the unlabelled rows everything is learnt from fewer: the graph, but also scalings and
    automatic widths of kernels.  The parameters are the same for both curves; tuned apart, they
    may differ less.  Intervals are those of `paired_interval`, because repeats share rows.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginfold import LapSVC
    >>> from marginfold.protocols.label_curves import label_share_curve
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> model = LapSVC(kernel="rbf", C=10, graph_weight=10)
    >>> curve = label_share_curve(model, X, y, shares=[0.1, 0.5], n_repeats=3)
    >>> curve.n_labels, curve.scores.shape
    ((8, 36), (3, 2))
    >>> list(curve.table()[0])[:4]
    ['share', 'labels', 'score', 'spread']
    """
    _check_arguments(shares, n_repeats, test_size, random_state, baseline)
    check_scored(estimator)
    marked = with_marker(estimator, unlabeled)
    labels, labelled = read_partly_labelled(X, y, unlabeled)
    shares = tuple(float(share) for share in shares)
    scores = np.empty((2 if baseline else 1, int(n_repeats), len(shares)))
    for repeat in range(int(n_repeats)):
        rng = np.random.default_rng([int(random_state), repeat])
        pools, test = _stratified(labels, labelled, test_size, rng)
        train = np.setdiff1d(np.arange(len(labels)), test)
        kept = [_kept(pools, share) for share in shares]
        for k, rows in enumerate(kept):
            known = np.isin(train, rows)
            whole = Split(train, hide(labels[train], ~known, unlabeled), known, test)
            alone = Split(rows, labels[rows], np.ones(len(rows), dtype=bool), test)
            for b, split in enumerate((whole, alone)[: len(scores)]):
                scores[b, repeat, k] = held_out_score(marked, X, labels, split, scoring, unlabeled)
    return LabelCurve(
        shares,
        tuple(len(rows) for rows in kept),
        sum(len(pool) for pool in pools),
        len(test),
        scores[0],
        scores[1] if baseline else None,
    )


def _check_arguments(
    shares: Sequence[float], n_repeats: Any, test_size: Any, random_state: Any, baseline: Any
) -> None:
    check_arguments(
        n_repeats=(n_repeats, Count(2)),
        test_size=(test_size, Number(0.0, 1.0, inclusive=False)),
        random_state=(random_state, Count(0)),
        baseline=(baseline, Flag()),
    )
    positive = Number(0.0, inclusive=False)
    values = list(np.ravel(shares))
    if not values or not all(positive.allows(share) and share <= 1 for share in values):
        raise InvalidParameterError(
            f"shares must be numbers above 0 and at most 1; got {shown(shares)}."
        )


def _stratified(
    labels: Array, labelled: Array, test_size: float, rng: np.random.Generator
) -> tuple[list[Array], Array]:
    """Return the training rows of each class in random order, and the test rows."""
    rows = np.flatnonzero(labelled)
    classes, codes = unique_labels(labels[rows])
    pools, tests = [], []
    for code in range(len(classes)):
        members = rng.permutation(rows[codes == code])
        n_test = min(max(1, round(test_size * len(members))), len(members) - 1)
        tests.append(members[:n_test])
        pools.append(members[n_test:])
    return pools, np.sort(np.concatenate(tests))


def _kept(pools: Sequence[Array], share: float) -> Array:
    """Return the rows that keep their label: the first of each class, at least one."""
    return np.sort(np.concatenate([pool[: max(1, round(share * len(pool)))] for pool in pools]))


def _line(row: dict[str, float]) -> str:
    text = (
        f"{100 * row['share']:5.1f} % ({row['labels']:4.0f} labels): "
        f"{row['score']:.3f} (sd {row['spread']:.3f})"
    )
    if "difference" in row:
        text += (
            f", labelled rows only {row['labelled_only']:.3f} "
            f"(sd {row['labelled_only_spread']:.3f}), difference {row['difference']:+.3f} "
            f"[{row['low']:+.3f}, {row['high']:+.3f}]"
        )
    return text
