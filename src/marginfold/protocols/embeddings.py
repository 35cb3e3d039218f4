"""Errors of embeddings by graph weight and dimension: one fit answers for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from marginfold.errors import NoDirectionError
from marginfold.linalg.tall import Array
from marginfold.protocols.held_out import errors_by_dimension
from marginfold.protocols.records import Result
from marginfold.protocols.splits import Fold

EQUAL_DIGITS = 12
"""Errors that agree to so many decimals are equal: their means differ by rounding only."""


@dataclass(frozen=True)
class EmbeddingMethod:
    """A method that maps rows to components.

    Attributes
    ----------
    estimator : transformer or None
        Unfitted; None leaves the rows as they are.
    weights : sequence of float
        Graph weights, answered by one `fit_path`; empty if the method has none.
    nested : bool
        Whether the first k components are the method's answer for k (true of all here but for
        the rows themselves, whose only answer is all columns).
    """

    estimator: Any
    weights: Sequence[float] = ()
    nested: bool = True

    def fits(self, X: Array, y: Array) -> Iterator[tuple[float | None, Any]]:
        """Yield each graph weight with its fitted estimator; none if there is no direction."""
        try:
            if self.estimator is None:
                yield None, None
            elif self.weights:
                yield from zip(
                    self.weights, self.estimator.fit_path(X, y, self.weights), strict=True
                )
            else:
                yield None, clone(self.estimator).fit(X, y)
        except NoDirectionError:
            return

    def curves(self, fold: Fold, heads: Sequence[str]) -> dict[tuple[str, float | None], Array]:
        """Return the errors by dimension for each head and graph weight."""
        found: dict[tuple[str, float | None], Array] = {}
        for weight, fitted in self.fits(fold.X, fold.y):
            rows, new = fold.X, fold.X_test
            if fitted is not None:
                rows, new = fitted.transform(rows), fitted.transform(new)
            dimensions = None if self.nested else [rows.shape[1]]
            errors = errors_by_dimension(heads, rows, fold.y, new, fold.y_test, dimensions)
            found |= {(head, weight): errors[head] for head in heads}
        return found


@dataclass(frozen=True)
class Selection:
    """A graph weight and a dimension, with the error by which they were chosen."""

    weight: float | None
    dimension: int
    error: float


def best_selection(
    curves: Sequence[dict[tuple[str, float | None], Array]], head: str
) -> Selection | None:
    """Return the choice with the least mean error over the folds.

    Dimensions that some fold lacks are left out; of equal errors the fewer dimensions win, then
    the smaller weight.  None if nothing is common to all folds.
    """
    choices = []
    weights = [weight for found, weight in curves[0] if found == head] if curves else []
    for weight in weights:
        parts = [fold.get((head, weight), np.zeros(0)) for fold in curves]
        depth = min(len(part) for part in parts)
        if depth:
            mean = np.mean([part[:depth] for part in parts], axis=0)
            k = int(mean.round(EQUAL_DIGITS).argmin())
            choices.append(Selection(weight, k + 1, float(mean[k])))
    return min(
        choices,
        key=lambda c: (round(c.error, EQUAL_DIGITS), c.dimension, c.weight or 0.0),
        default=None,
    )


def measure(embedding: EmbeddingMethod, fold: Fold, heads: Sequence[str]) -> list[Result]:
    """Return the error of every head, graph weight and dimension on the test rows."""
    curves = embedding.curves(fold, heads)
    if not curves:
        return [Result("error", None, reason="no direction carries anything")]
    return [
        Result("error", float(error), _params(head, weight), k if embedding.nested else None)
        for (head, weight), errors in curves.items()
        for k, error in enumerate(errors, start=1)
    ]


def measure_nested(
    embedding: EmbeddingMethod,
    fold: Fold,
    heads: Sequence[str],
    *,
    n_folds: int,
    seed: int,
) -> list[Result]:
    """Choose graph weight and dimension by folds of the training rows; return the test error."""
    inner = [embedding.curves(part, heads) for part in fold.inner(n_folds, seed)]
    outer = embedding.curves(fold, heads)
    results = []
    for head in heads:
        choice = best_selection(inner, head)
        errors = outer.get((head, choice.weight)) if choice else None
        if choice is None or errors is None:
            reason = "no direction carries anything in some fold"
            results.append(Result("error", None, {"head": head}, reason=reason))
            continue
        k = min(choice.dimension, len(errors))
        params = _params(head, choice.weight)
        chosen = k if embedding.nested else None
        results.append(Result("error", float(errors[k - 1]), params, chosen))
    return results


def _params(head: str, weight: float | None) -> dict[str, Any]:
    return {"head": head} if weight is None else {"head": head, "graph_weight": weight}
