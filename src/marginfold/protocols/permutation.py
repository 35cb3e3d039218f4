"""Permutation test of a graph: does it help on my data, or would any with the same spectrum?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from marginfold.errors import InvalidParameterError, MarginfoldWarning
from marginfold.graphs import PermutedGraph, resolve_graph
from marginfold.linalg.tall import Array
from marginfold.protocols.held_out import (
    Scoring,
    Split,
    check_scored,
    held_out_score,
    parameters_named,
    read_partly_labelled,
)
from marginfold.protocols.hidden_labels import HideLabels, with_marker
from marginfold.protocols.splits import folds
from marginfold.protocols.statistics import TIE, Interval, paired_interval
from marginfold.validation.parameters import Count, check_arguments, shown
from marginfold.validation.types import Estimator, Labels, Rows, Splitter

LEVEL = 0.05
"""A p-value at or below this is called evidence."""


@dataclass(frozen=True, eq=False)
class PermutationResult:
    """What a graph does for an estimator, beside the same graph with its nodes permuted.

    Attributes
    ----------
    score : float
        Mean over the folds with the graph; larger is better.
    permuted_scores : array of shape (n_permutations,)
        The same with permuted nodes, on the same folds.
    without_graph : float or None
        The same with graph_weight=0; None if the estimator has no graph weight.
    p_value : float
        Share of graphs, this one among them, that score at least as well: small if it helps.
    p_value_hurts : float
        Share of graphs, this one among them, that score at most as well: small if it hurts.
    difference : Interval
        Over folds, to the mean of the permuted graphs.
    difference_without : Interval or None
        Over folds, to no graph.
    """

    score: float
    permuted_scores: Array
    without_graph: float | None
    p_value: float
    p_value_hurts: float
    difference: Interval
    difference_without: Interval | None

    @property
    def verdict(self) -> str:
        """One sentence that says no more than was measured."""
        found = f"{self.score:.3f} with it, {self.permuted_scores.mean():.3f} with permuted nodes"
        if self.without_graph is not None:
            found += f", {self.without_graph:.3f} without a graph"
        n = len(self.permuted_scores)
        if 1 / (1 + n) > LEVEL:
            needed = round(1 / LEVEL) - 1
            return f"Too few permutations to tell: {found}; use at least {needed} instead of {n}."
        if self.p_value_hurts <= LEVEL:
            return f"The graph hurts: {found} (p = {self.p_value_hurts:.2g}){self._caveat}."
        found += f" (p = {self.p_value:.2g})"
        if self.p_value > LEVEL:
            return f"No evidence that this graph does better than a permuted one: {found}."
        found += f"{self._caveat}."
        without = self.difference_without
        if without is None or without.low > 0:
            return f"The graph helps: {found}"
        if without.mean <= TIE:
            return f"The graph does better than a permuted one, but not better than none: {found}"
        return (
            "The graph does better than a permuted one; whether it does better than no graph, "
            f"these rows cannot say: {found}"
        )

    @property
    def _caveat(self) -> str:
        if self.difference.low > 0 or self.difference.high < 0:
            return ""
        return "; the interval over folds contains 0, so other rows may say otherwise"

    def __str__(self) -> str:
        lines = [self.verdict, f"Difference to permuted graphs: {self.difference}."]
        if self.difference_without is not None:
            lines.append(f"Difference to no graph: {self.difference_without}.")
        return "\n".join(lines)


def graph_permutation_test(
    estimator: Estimator,
    X: Rows,
    y: Labels,
    *,
    cv: int | Splitter | HideLabels = 5,
    n_permutations: int = 30,
    scoring: Scoring = None,
    parameter: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> PermutationResult:
    """Compare an estimator with its graph, with the same graph on permuted rows, and with none.

    A permuted graph has the same edges, weights and spectrum, but joins rows at random; on average
    it is a multiple of `TotalGraph`.  If it does as well, the graph acts like this regulariser, and
    it does not matter which rows are neighbors.

    Parameters
    ----------
    estimator : classifier or transformer
        With a parameter ``graph``, its own or that of a step of a pipeline.
    X : array, sparse matrix or data frame of shape (n, d)
        The square matrix if the kernel is precomputed.
    y : array of shape (n,)
        Labels; rows that the estimator's ``unlabeled`` marks have none.
    cv : int, splitter or HideLabels, default=5
        How labelled rows are split; unlabelled rows are trained on in every fold.  A number
        (stratified folds, shuffled by ``random_state``), a splitter of scikit-learn, or
        `HideLabels` to keep the test rows in the graph.
    n_permutations : int, default=30
        The smallest possible p-value is ``1 / (1 + n_permutations)``.
    scoring : str, callable or None, default=None
        For a transformer the classifier that judges its scores: "1-nn" (the nearest neighbor, the
        default), "5-nn" or "centroid"; for a classifier a scorer of scikit-learn, accuracy if None.
    parameter : str or None, default=None
        The name of the graph's parameter where there are several: ``"lsva__graph"``.
    random_state : int, default=0
        Seed of the folds and of the permutations.
    n_jobs : int or None, default=None
        Processes; the result is the same for any number.

    Returns
    -------
    PermutationResult
        Its ``verdict`` is a sentence.

    Notes
    -----
    The p-value ``(1 + #{permuted >= real}) / (1 + n_permutations)`` is about graphs, given these
    rows and folds; the intervals are about other rows (see `paired_interval`).  Help and harm are
    tested one-sided at 5 % each: on a graph that does neither, the verdict finds one of the two
    with a probability of up to 10 %.  It says that the graph helps only if the interval to no
    graph, where there is one, lies above 0 as well.

    The parameters are not tuned again: if they were tuned with the real graph, tune them for the
    permuted one too before you trust a small difference.  Warnings of the fits on permuted graphs
    are not shown.

    Examples
    --------
    Two moons and a kernel so narrow that labels spread along the graph or not at all:

    >>> from sklearn.datasets import make_moons
    >>> from marginfold import ExactKernel, LapSVC, NeighborGraph
    >>> from marginfold.protocols import HideLabels
    >>> from marginfold.protocols.permutation import graph_permutation_test
    >>> X, y = make_moons(60, noise=0.05, random_state=0)
    >>> narrow = ExactKernel("rbf", gamma=1000)
    >>> model = LapSVC(kernel=narrow, C=10, graph=NeighborGraph(4), graph_weight=10)
    >>> result = graph_permutation_test(model, X, y, cv=HideLabels(3), n_permutations=19)
    >>> result.verdict.partition(":")[0]
    'The graph helps'
    >>> bool(result.score > result.permuted_scores.max())
    True
    """
    check_arguments(
        n_permutations=(n_permutations, Count(1)), random_state=(random_state, Count(0))
    )
    check_scored(estimator)
    name = graph_parameter(estimator, parameter)
    real = with_rule(estimator, name)
    real, labels, splits, marker = _prepare(real, X, y, cv, random_state)
    graph = real.get_params()[name]
    score = partial(_fold_scores, X=X, y=labels, splits=splits, scoring=scoring, marker=marker)
    scores = score(real)
    others = [
        clone(real).set_params(**{name: PermutedGraph(graph, int(seed))})
        for seed in np.random.SeedSequence(int(random_state)).generate_state(int(n_permutations))
    ]
    weight = weight_parameter(real, name)
    if weight is not None:
        others.append(clone(real).set_params(**{weight: 0.0}))
    rest = Parallel(n_jobs=n_jobs)(delayed(_quietly)(score, other) for other in others)
    plain = None if weight is None else rest.pop()
    return _compared(scores, np.array(rest), plain, splits)


def _prepare(
    estimator: Any, X: Any, y: Any, cv: Any, random_state: int
) -> tuple[Any, Array, list[Split], Any]:
    """Return the estimator with its marker, the labels, the folds and the marker."""
    if isinstance(cv, HideLabels):
        return with_marker(estimator, cv.unlabeled), np.asarray(y), cv.splits(X, y), cv.unlabeled
    parameters = estimator.get_params(deep=True)
    markers = [parameters[name] for name in parameters_named(estimator, "unlabeled")]
    marker = next((marker for marker in markers if marker is not None), None)
    labels, labelled = read_partly_labelled(X, y, marker)
    known = np.flatnonzero(labelled)
    splits = []
    for part, test in _folds(cv, labels[known], random_state):
        train = np.sort(np.concatenate([known[part], np.flatnonzero(~labelled)]))
        splits.append(Split(train, labels[train], labelled[train], known[test]))
    return estimator, labels, splits, marker


def _folds(cv: Any, labels: Array, random_state: int) -> list[tuple[Array, Array]]:
    if hasattr(cv, "split") and not isinstance(cv, str):
        return list(cv.split(np.zeros(len(labels)), labels))
    if not Count(2).allows(cv):
        raise InvalidParameterError(
            f"cv must be a whole number >= 2, a splitter such as StratifiedKFold(5), or "
            f"HideLabels(5); got {shown(cv)}."
        )
    return folds(labels, int(cv), int(random_state))


def _fold_scores(
    estimator: Any, X: Any, y: Array, splits: Sequence[Split], scoring: Scoring, marker: Any
) -> Array:
    return np.array([held_out_score(estimator, X, y, s, scoring, marker) for s in splits])


def _quietly(score: Callable[[Any], Array], estimator: Any) -> Array:
    """Score a control; what its graph is to be warned of is no concern of the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginfoldWarning)
        return score(estimator)


def _compared(
    scores: Array, permuted: Array, plain: Array | None, splits: Sequence[Split]
) -> PermutationResult:
    """Put scores by fold, and by permutation and fold, into the result."""
    score, n = float(scores.mean()), len(permuted)
    means = permuted.mean(axis=1)
    n_train = float(np.mean([np.count_nonzero(s.labelled) for s in splits]))
    n_test = float(np.mean([len(s.test) for s in splits]))
    return PermutationResult(
        score=score,
        permuted_scores=means,
        without_graph=None if plain is None else float(plain.mean()),
        p_value=float((1 + np.count_nonzero(means >= score - TIE)) / (1 + n)),
        p_value_hurts=float((1 + np.count_nonzero(means <= score + TIE)) / (1 + n)),
        difference=paired_interval(scores - permuted.mean(axis=0), n_train, n_test),
        difference_without=None
        if plain is None
        else paired_interval(scores - plain, n_train, n_test),
    )


def graph_parameter(estimator: Any, parameter: str | None) -> str:
    """Return the name of the one parameter that holds the graph."""
    if parameter is not None:
        if parameter not in estimator.get_params(deep=True):
            raise InvalidParameterError(
                f"{shown(estimator)} has no parameter {parameter!r}; it needs the name of one that "
                "holds a graph, as in get_params()."
            )
        return parameter
    names = parameters_named(estimator, "graph")
    if not names:
        raise InvalidParameterError(
            f"{shown(estimator)} has no parameter graph; it needs a method with one, such as LSVA, "
            "LapSVC or LPP, or a pipeline with such a step. Name a parameter that holds a graph "
            "under another name by parameter=."
        )
    if len(names) > 1:
        raise InvalidParameterError(
            f"{shown(estimator)} has several graphs: {', '.join(names)}; one is tested at a time. "
            f"Pass parameter={names[0]!r}, for example."
        )
    return names[0]


def with_rule(estimator: Any, name: str) -> Any:
    """Return a clone whose graph is a rule, with a weight that lets it act."""
    value = estimator.get_params(deep=True)[name]
    if value is None:
        raise InvalidParameterError(
            f"{shown(estimator)} has {name}=None, its own default; the test needs to know the "
            "graph. Pass a rule, for example NeighborGraph(mode='mutual', within_class=True)."
        )
    weight = weight_parameter(estimator, name)
    if weight is not None and estimator.get_params(deep=True)[weight] == 0:
        raise InvalidParameterError(
            f"{shown(estimator)} has {weight}=0, so that no graph has any effect; the test needs a "
            "positive weight."
        )
    return clone(estimator).set_params(**{name: resolve_graph(value)})


def weight_parameter(estimator: Any, name: str) -> str | None:
    """Return the name of the graph's weight, which stands beside the graph, if there is one."""
    prefix, separator, _ = name.rpartition("__")
    weight = f"{prefix}{separator}graph_weight"
    return weight if weight in estimator.get_params(deep=True) else None
