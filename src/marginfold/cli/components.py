"""What each component of an embedding separates, in words, and its measures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from marginfold.data import TableModel
from marginfold.data.answers import embedding
from marginfold.linalg.tall import Array

MEASURES = {
    "gain": "gain_",
    "new gain": "new_gain_",
    "gap": "gap_",
    "eigenvalue": "eigenvalues_",
}
"""What is shown of each component, and the attribute that holds it."""

LEAST_APART = 0.5
"""Standard deviations: classes that are less apart overlap in more than two thirds of their rows,
and the component is not said to separate them."""

APART = (
    "apart: how far the means of the two sides are from each other on these rows, in standard "
    "deviations within the sides; with little noise most rows can be told apart from about 2 on"
)
"""What the column of that name means."""


def found_components(model: TableModel, Z: Array, labels: Array) -> list[dict[str, Any]]:
    """Return what is known of each component: its name, what it separates, its measures.

    A margin separates the classes that it was made for.  Any other component, of eigenvectors, of
    NCA or of a map, is said to separate the classes that lie farthest apart along it.

    Parameters
    ----------
    model : TableModel
    Z : array of shape (n_rows, n_components)
        Components of the rows it was fitted to.
    labels : array
        Their classes.
    """
    names = model.component_names
    method = embedding(model.method)[-1]
    measures = {
        measure: np.asarray(getattr(method, attribute))
        for measure, attribute in MEASURES.items()
        if len(getattr(method, attribute, ())) == len(names)
    }
    tasks = getattr(method, "tasks_", [None] * len(names))
    return [
        {"name": name, **separation(Z[:, k], labels, _side(tasks[k]))}
        | {measure: float(values[k]) for measure, values in measures.items()}
        for k, name in enumerate(names)
    ]


def separation(values: Array, labels: Array, side: Collection[Any] = ()) -> dict[str, Any]:
    """Return which classes lie on two sides along a component, and how far apart the sides are.

    Parameters
    ----------
    values : array
        The component of each row.
    labels : array
    side : collection, optional
        The classes on one side.  By default the classes are parted, in the order of their means,
        where the sides are farthest apart.

    Returns
    -------
    dict
        ``separates``, such as "setosa | the rest", and ``apart``: the difference of the means of
        the sides, divided by the standard deviation within them.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.cli.components import separation
    >>> separation(np.array([0.0, 2.0, 9.0, 11.0, 1.0, 1.0]), np.array(list("aabbcc")))
    {'separates': 'b | the rest', 'apart': 11.02...}
    """
    classes = np.unique(labels).tolist()
    if side:
        return {"separates": _in_words(side, classes), "apart": _apart(values, labels, side)}
    means = [float(values[labels == label].mean()) for label in classes]
    order = [classes[k] for k in np.argsort(means, kind="stable")]
    parted = [(_apart(values, labels, order[:n]), n) for n in range(1, len(order))]
    distance, n = max(parted, key=lambda pair: pair[0])
    if distance < LEAST_APART:
        return {"separates": "no classes clearly", "apart": distance}
    smaller = order[:n] if 2 * n < len(order) else order[n:]
    return {"separates": _in_words(smaller, classes), "apart": distance}


def _side(task: Any) -> tuple[Any, ...]:
    """Return the classes on the one side of a margin; none if there is no margin."""
    if task is None:
        return ()
    return task if isinstance(task, tuple) else (task,)


def _apart(values: Array, labels: Array, side: Collection[Any]) -> float:
    """Return the difference of the means of two sides in standard deviations within them."""
    inside = np.isin(labels, list(side))
    numbers = np.asarray(values, dtype=np.float64)
    one, other = numbers[inside], numbers[~inside]
    within = (np.square(one - one.mean()).sum() + np.square(other - other.mean()).sum()) / len(
        values
    )
    distance = abs(float(one.mean() - other.mean()))
    return distance / float(np.sqrt(within)) if within > 0 else (np.inf if distance > 0 else 0.0)


def _in_words(side: Collection[Any], classes: Sequence[Any]) -> str:
    others = [label for label in classes if label not in side]
    rest = str(others[0]) if len(others) == 1 else "the rest"
    return f"{', '.join(map(str, side))} | {rest}"
