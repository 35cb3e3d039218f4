"""MarginMap: a picture of many classes in two dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import check_array, column_or_1d, get_tags, indexable
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning, warn
from marginfold.estimators.gesvm import GESVC
from marginfold.estimators.multiclass import (
    check_has_margins,
    check_one_vs_rest,
    class_margins,
    classes_of,
)
from marginfold.feature_maps import ExactKernel, KernelLike
from marginfold.feature_maps.kernel_values import resolve_gamma
from marginfold.geometry.circle import circle_points, circular_order
from marginfold.linalg.tall import Array, dense
from marginfold.validation.parameters import (
    Choice,
    Constraint,
    Count,
    Either,
    Number,
    atomic_fit,
    check_parameters,
    shown,
)
from marginfold.validation.row_types import refuse_lazy
from marginfold.validation.rows import UNLABELLED, check_weights

EXACT_ROWS = 2000
"""Rows up to which the default classifier takes the whole kernel, beyond them landmarks."""

EXACT_RANK = 200
"""Leading kernel coordinates that the default classifier takes."""

SATURATED = 0.1
"""Share of rows whose softmax is 1 to the last digit (they are on an anchor) that is warned of."""

LANDMARKS = 500
"""Landmarks that the default classifier takes of more rows."""

SHARPNESS_GRID = 2.0 ** np.arange(0.0, 4.5, 0.5)
"""What "auto" chooses from: classes overlap in smoother maps, sharper ones are saturated."""

ORDER_SHARPNESS = 2.0
"""Sharpness of the weights whose confusion orders the classes, whatever that of the map is."""

TOLERANCE = 0.01
"""Held-out accuracy that a smoother map may lack: only saturated maps reach the last hundredth."""


class Splits:
    """Something that ``check_cv`` takes besides a number of folds."""

    def allows(self, value: Any) -> bool:
        """Return whether the value splits rows or is a sequence of splits."""
        if isinstance(value, (str, type)):
            return False
        return callable(getattr(value, "split", None)) or isinstance(value, (list, tuple))

    def __str__(self) -> str:
        return "an object with split such as StratifiedKFold(10) or a list of (train, test) indices"


CONSTRAINTS: dict[str, Constraint] = {
    "sharpness": Either(Choice("auto"), Number(0.0, inclusive=False)),
    "cv": Either(Count(2), Splits()),
}


class MarginMap(
    ClassNamePrefixFeaturesOutMixin, MetaEstimatorMixin, TransformerMixin, BaseEstimator
):
    """A picture of many classes: rows among class anchors on a circle.

    Two directions part two classes from the rest and no more.  Here every class has an anchor on
    the unit circle, classes that are easily confused side by side, and a row stands at

    ``sum_k p_k a_k``  with  ``p = softmax(sharpness * margins / scale_)``,

    the mean of the anchors a_k weighted by the row's margins in a classifier: near an anchor if
    the classifier is sure, between two if it hesitates between them, in the middle if it has no
    idea.  New rows follow the same rule, and a row's image depends on that row alone.

    Parameters
    ----------
    classifier : classifier, default=None
        Any classifier with ``decision_function`` (one value per class) or ``predict_proba`` (the
        margins are their logarithms); it is cloned.  None is a balanced `GESVC` with C = 10 on
        rbf coordinates: the 200 leading ones of up to 2000 rows, 500 landmarks of more.
    sharpness : "auto" or float, default="auto"
        How fast a row moves to the anchor of its largest margin.  The unit is the mean distance
        between the largest and the second largest margin of a training row: at 1 the second class
        has typically e^-1 of the weight of the first.  "auto" takes the smoothest of nine maps,
        from 1 to 16, in which the nearest training row recognises held-out rows as often as in the
        best one, but for one in a hundred; this costs one more fit per fold.
    cv : int, splitter or list of splits, default=5
        Number of stratified folds (in the order of the rows, not shuffled), an object with
        ``split``, or a list of (train, test) indices, for ``sharpness="auto"``.
    order : sequence of labels, default=None
        All classes in their order round the circle, to keep the places of an earlier map:
        ``order=earlier.classes_[earlier.order_]``.  None puts confused classes side by side.

    Attributes
    ----------
    anchors_ : array of shape (n_classes, 2)
        The anchor of each class of ``classes_``.
    classes_ : array of shape (n_classes,)
    order_ : array of shape (n_classes,)
        ``classes_[order_]`` goes counter-clockwise round the circle from (1, 0).
    sharpness_ : float
    scale_ : float
        The unit of the margins.
    confusion_ : array of shape (n_classes, n_classes)
        Mean weight, at sharpness 2, of each class (column) in the rows of each class (row); no
        weight for a class with a single row, which is never held out.
    classifier_ : classifier
        Fitted on all rows.
    cv_results_ : dict
        Only for "auto": for each ``sharpness`` the held-out ``accuracy``, and that of each fold
        in the rows of ``split_accuracy``.

    Notes
    -----
    The circle starts at (1, 0) with ``classes_[0]`` (or the first of ``order``), and goes to that
    of its neighbors that comes first in ``classes_``.  Up to 10 classes the order is the best of
    all.  The confusion is that of held-out rows, with a fixed sharpness that of the training rows.

    Two classes have one margin: their map is the segment between (1, 0) and (-1, 0), the second
    coordinate is 0.  `LSVA` with two components draws two classes in two dimensions.

    A sharper map is hardly ever less accurate; in the limit the softmax saturates, all rows of a
    class share one point (the anchor) and the accuracy is that of the classifier.  So the smoother
    map wins; for the last hundredth give a number such as 8.  Rows that share a point are equally
    near, whatever their label, and a single neighbor is one of them by chance: a saturated map is
    warned of.  Many rows need no more than one small split:
    ``cv=StratifiedShuffleSplit(1, train_size=5000, test_size=5000)``.

    A classifier that knows its training rows by heart shows them nearer to the anchors than new
    ones: judge a map on new rows.

    Rows that the classifier takes as unlabelled (their label is not among its ``classes_``) take
    part in every fit; they are never held out.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginfold import MarginMap
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), MarginMap()).fit(X, y)
    >>> model.transform(X).shape
    (178, 2)
    >>> model[-1].anchors_.round(2)
    array([[ 1.  ,  0.  ],
           [-0.5 ,  0.87],
           [-0.5 , -0.87]])
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        sharpness: Any = "auto",
        cv: Any = 5,
        order: Any = None,
    ) -> None:
        self.classifier = classifier
        self.sharpness = sharpness
        self.cv = cv
        self.order = order

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier, order the classes and choose the sharpness.

        Parameters
        ----------
        X : array, sparse matrix, data frame or whatever the classifier takes
        y : array of shape (n_samples,)
            Class labels of any type.
        sample_weight : array of shape (n_samples,), optional
            Passed to the classifier, which must take it; confusion and accuracy are weighted.

        Returns
        -------
        self
        """
        check_parameters(self, CONSTRAINTS)
        with atomic_fit(self):
            refuse_lazy(X, self, "fit it on some rows and map all with X.map_blocks(map.transform)")
            validate_data(self, X, y, skip_check_array=True)
            X, _ = indexable(X, y)
            labels = column_or_1d(y, warn=True)
            weights = check_weights(sample_weight, len(labels))
            classifier = self._classifier(X, weights)
            check_has_margins(classifier)
            given = None if sample_weight is None else weights
            if given is not None and not has_fit_parameter(classifier, "sample_weight"):
                raise InvalidInputError(
                    f"The fit of {shown(classifier)} takes no sample_weight. If it is a pipeline, "
                    "make the map its last step; else choose a classifier that takes weights."
                )
            rows = TrainingRows(X, labels, given, self._is_pairwise(classifier))
            self.classifier_ = rows.fitted(classifier)
            self.classes_ = classes_of(self.classifier_)
            self._draw(classifier, rows, weights)
        return self

    def _draw(self, classifier: Any, rows: TrainingRows, weights: Array) -> None:
        """Place the anchors and set how fast rows approach them."""
        codes = _codes(rows.y, self.classes_)
        codes[weights == 0] = UNLABELLED
        known = np.flatnonzero(codes != UNLABELLED)
        X = rows.taken(known, np.arange(len(codes)))
        margins = class_margins(self.classifier_, X)
        check_one_vs_rest(self.classifier_, X, margins)
        self.scale_ = margin_unit(margins, weights[known])
        sides = [Side(margins / self.scale_, codes[known], weights[known])]
        if self.sharpness == "auto":
            parts = held_out_parts(classifier, rows, codes, weights, self.cv)
            sides = [part.held_out for part in parts]
        self.confusion_ = confusion(sides, len(self.classes_))
        self.order_ = self._circle()
        self.anchors_ = circle_points(self.order_)
        if self.sharpness != "auto":
            self.sharpness_ = float(self.sharpness)
            self._warn_if_saturated(sides[0])
            return
        by_part = accuracies(parts, self.anchors_)
        accuracy = np.average(by_part, axis=0, weights=[side.weights.sum() for side in sides])
        self.sharpness_ = smoothest(accuracy)
        self.cv_results_ = {
            "sharpness": SHARPNESS_GRID.copy(),
            "accuracy": accuracy,
            "split_accuracy": by_part,
        }

    def _warn_if_saturated(self, side: Side) -> None:
        """Warn if the softmax of so many rows is saturated that their neighbors are arbitrary."""
        drawn = memberships(side.margins, self.sharpness_).max(axis=1)
        share = float(np.average(drawn == 1.0, weights=side.weights))
        if share > SATURATED:
            warn(
                f"MarginMap: with sharpness={self.sharpness_:g}, {share:.0%} of the rows are on "
                "the anchor of a class to the last digit. Rows there are equally near, whatever "
                "their label: use a smaller sharpness, or more than one neighbor.",
                MarginfoldWarning,
            )

    def _classifier(self, X: Any, weights: Array) -> Any:
        chosen = self.planned_classifier(int(np.count_nonzero(weights)))
        if self.classifier is None and isinstance(chosen.kernel, Nystroem):
            X = check_array(X, accept_sparse="csr", dtype=np.float64)
            chosen.kernel.set_params(gamma=resolve_gamma("scale", "rbf", X, weights))
        return chosen

    def planned_classifier(self, n_samples: int) -> Any:
        """Return the classifier for so many rows; the width of landmarks is left to `fit`."""
        if self.classifier is not None:
            return self.classifier
        if n_samples <= EXACT_ROWS:
            return _default(ExactKernel("rbf", rank=EXACT_RANK))
        return _default(Nystroem(n_components=LANDMARKS, random_state=0))

    @staticmethod
    def _is_pairwise(classifier: Any) -> bool:
        if not hasattr(classifier, "__sklearn_tags__"):
            return False
        return bool(get_tags(classifier).input_tags.pairwise)

    def _circle(self) -> Array:
        """Return the order of the classes round the circle."""
        if self.order is None:
            return circular_order(self.confusion_)
        flat = np.ndim(self.order) == 1
        codes = _codes(np.asarray(self.order), self.classes_) if flat else np.empty(0, np.intp)
        if not np.array_equal(np.sort(codes), np.arange(len(self.classes_))):
            raise InvalidParameterError(
                "MarginMap: order must hold each class once, "
                f"{shown(self.classes_.tolist())} in any order; got {shown(self.order)}."
            )
        return codes

    def memberships(self, X: Any) -> Array:
        """Return the weight of each class in the image of each row, (n_samples, n_classes)."""
        check_is_fitted(self)
        refuse_lazy(X, self, "go chunk by chunk with X.map_blocks(map.transform)")
        if getattr(X, "ndim", 2) > 1:  # else texts, or a mistake that the classifier explains
            validate_data(self, X, skip_check_array=True, reset=False)
        margins = class_margins(self.classifier_, X)
        return memberships(margins / self.scale_, self.sharpness_)

    def transform(self, X: Any) -> Array:
        """Return the images of rows, shape (n_samples, 2), inside the polygon of the anchors.

        A row's image depends on that row alone.
        """
        return np.asarray(self.memberships(X) @ self.anchors_)

    @property
    def _n_features_out(self) -> int:
        return 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        classifier = _default("rbf") if self.classifier is None else self.classifier
        if hasattr(classifier, "__sklearn_tags__") and not isinstance(classifier, type):
            tags.input_tags = get_tags(classifier).input_tags
        return tags


def _default(kernel: KernelLike) -> GESVC:
    return GESVC(C=10.0, kernel=kernel, class_weight="balanced")


def _codes(labels: Array, classes: Array) -> Array:
    """Return the place of each label among the classes, or UNLABELLED."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    return np.array([places.get(label, UNLABELLED) for label in labels.tolist()], dtype=np.intp)


@dataclass(frozen=True)
class TrainingRows:
    """What a classifier is fitted on; ``sample_weight`` is None where it is given none."""

    X: Any
    y: Array
    sample_weight: Array | None
    pairwise: bool

    def fitted(self, classifier: Any, rows: Array | None = None) -> Any:
        """Return a clone of the classifier fitted on some of the rows, or on all."""
        X, y, weights = self.X, self.y, self.sample_weight
        if rows is not None:
            X, y = self.taken(rows, rows), y[rows]
            weights = None if weights is None else weights[rows]
        given = {} if weights is None else {"sample_weight": weights}
        return clone(classifier).fit(X, y, **given)

    def taken(self, rows: Array, columns: Array) -> Any:
        """Return some of the rows; of a kernel between rows also only some columns."""
        if hasattr(self.X, "iloc"):
            return self.X.iloc[rows, columns] if self.pairwise else self.X.iloc[rows]
        if self.pairwise:
            return dense(self.X)[np.ix_(rows, columns)]
        return self.X[rows] if hasattr(self.X, "shape") else [self.X[row] for row in rows]


@dataclass(frozen=True)
class Side:
    """One side of a split: margins in units of the rows seen, classes and sample weights."""

    margins: Array
    codes: Array
    weights: Array


@dataclass(frozen=True)
class Part:
    """One split."""

    seen: Side
    held_out: Side


def memberships(margins: Array, sharpness: float) -> Array:
    """Return the weights of the classes, positive and with sum 1 in each row."""
    return np.asarray(softmax(sharpness * margins, axis=1))


def margin_unit(margins: Array, weights: Array) -> float:
    """Return the mean distance of a row's largest margin from its second largest one."""
    second, first = np.partition(margins, -2, axis=1)[:, -2:].T
    return float(np.average(first - second, weights=weights)) or 1.0


def held_out_parts(
    classifier: Any, rows: TrainingRows, codes: Array, weights: Array, cv: Any
) -> list[Part]:
    """Fit once per split and return the margins of both sides.

    Rows without a class, and a row that is the only one of its class, are in every training part
    and in no held-out part.
    """
    n_classes = int(codes.max()) + 1
    known = codes != UNLABELLED
    counts = np.bincount(codes[known], minlength=n_classes)
    divided = known & (counts[codes] > 1)
    always = np.flatnonzero(~divided)
    parts = []
    for train, test in _splits(cv, codes, np.flatnonzero(divided)):
        train, test = np.union1d(always, train), test[divided[test]]
        seen = train[known[train]]
        _check_split(codes[seen], len(test), n_classes, cv)
        fitted = rows.fitted(classifier, train)
        margins = class_margins(fitted, rows.taken(seen, train))
        unit = margin_unit(margins, weights[seen])
        held_out = class_margins(fitted, rows.taken(test, train))
        parts.append(
            Part(
                Side(margins / unit, codes[seen], weights[seen]),
                Side(held_out / unit, codes[test], weights[test]),
            )
        )
    return parts


def _splits(cv: Any, codes: Array, divided: Array) -> list[tuple[Array, Array]]:
    """Return pairs of training and held-out rows."""
    if not isinstance(cv, Integral):
        rows = np.arange(len(codes))
        splits = check_cv(cv).split(np.zeros((len(codes), 1)), codes)
        return [(rows[train], rows[test]) for train, test in splits]
    if not len(divided):
        raise InvalidInputError(
            "sharpness='auto' needs a class with at least 2 rows to hold one of them out; every "
            "class has 1. Give a number, such as sharpness=4."
        )
    labels = codes[divided]
    folds = StratifiedKFold(min(int(cv), int(np.bincount(labels).max())))
    with warnings.catch_warnings():  # classes smaller than the number of folds do no harm here
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(folds.split(np.zeros((len(labels), 1)), labels))
    return [(divided[train], divided[test]) for train, test in splits]


def _check_split(codes: Array, n_held_out: int, n_classes: int, cv: Any) -> None:
    if not n_held_out:
        raise InvalidInputError(f"A part of cv={shown(cv)} holds out no labelled row.")
    missing = n_classes - len(np.unique(codes))
    if missing:
        raise InvalidInputError(
            f"{missing} of {n_classes} classes have no row in a training part of cv={shown(cv)}; "
            "every part needs all classes. Use stratified splits, or a number for sharpness."
        )


def confusion(sides: Sequence[Side], n_classes: int) -> Array:
    """Return the mean weight of each class (column) in the rows of each class (row)."""
    total = np.zeros((n_classes, n_classes))
    count = np.zeros(n_classes)
    for side in sides:
        drawn = side.weights[:, None] * memberships(side.margins, ORDER_SHARPNESS)
        np.add.at(total, side.codes, drawn)
        np.add.at(count, side.codes, side.weights)
    return total / np.maximum(count, np.finfo(float).tiny)[:, None]


def accuracies(parts: Sequence[Part], anchors: Array) -> Array:
    """Return how often a held-out row is recognised by the nearest seen row of the map.

    A row for each part and a column for each sharpness of the grid.  One neighbor is as good a
    judge as five, and to it a row of weight 2 is the row twice.
    """
    return np.array(
        [[_accuracy(part, anchors, sharpness) for sharpness in SHARPNESS_GRID] for part in parts]
    )


def smoothest(accuracy: Array) -> float:
    """Return the smallest sharpness whose accuracy is the best up to `TOLERANCE`."""
    return float(SHARPNESS_GRID[(accuracy >= accuracy.max() - TOLERANCE).argmax()])


def _accuracy(part: Part, anchors: Array, sharpness: float) -> float:
    nearest = KNeighborsClassifier(1, algorithm="kd_tree")
    nearest.fit(memberships(part.seen.margins, sharpness) @ anchors, part.seen.codes)
    guesses = nearest.predict(memberships(part.held_out.margins, sharpness) @ anchors)
    return float(np.average(guesses == part.held_out.codes, weights=part.held_out.weights))
