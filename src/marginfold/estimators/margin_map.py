"""MarginMap: a picture of many classes in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils import column_or_1d, get_tags, indexable
from sklearn.utils.validation import check_is_fitted, validate_data

from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning, warn
from marginfold.estimators.gesvm import GESVC
from marginfold.estimators.held_out import (
    Part,
    Side,
    TrainingRows,
    codes_of,
    evenly,
    held_out_parts,
    is_better,
    is_pairwise,
    recognised,
)
from marginfold.estimators.multiclass import (
    check_has_margins,
    check_one_vs_rest,
    class_margins,
    classes_of,
)
from marginfold.estimators.second_axis import SecondAxis, feature_rows, second_axis
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.geometry.circle import circle_points, circular_order
from marginfold.linalg.tall import Array
from marginfold.runtime.callbacks import FollowedFits
from marginfold.validation.parameters import (
    POSITIVE_FACTOR,
    Choice,
    Constraint,
    Count,
    Either,
    atomic_fit,
    check_parameters,
    shown,
)
from marginfold.validation.rows import (
    UNLABELLED,
    check_weights,
    read_labelled,
    read_new_rows,
    refuse_lazy,
    unique_labels,
)
from marginfold.validation.types import Folds, Labels, Predictor, Rows, Weights

COSTS = (1.0, 100.0)
"""Costs of the default classifier between which the held-out rows choose, the smaller one unless
the other predicts more of them by more than a standard error.  Over eleven real sets the choice
between 1 and a cost of 10, 30 or 100 has 5-NN accuracy 0.865, 0.870 and 0.869, the best single cost
of 1 to 300 has 0.863, a choice of six has 0.868; image, which needs a large cost, decided for 100
and german for the standard error."""

COST = 10.0
"""The cost where nothing is held out."""

COMPONENTS = 100
"""Columns that the default classifier takes as they are; of more it takes as many principal
components.  usps is as accurate with 100, standardised mnist better, at a fifth of the time; 50
are too few for splice."""

UNIT_ROWS = 2000
"""Training rows, at most, whose margins give the unit."""

SATURATED = 0.1
"""Share of rows whose softmax is 1 to the last digit (they are on an anchor) that is warned of."""

SHARPNESS_GRID = 2.0 ** np.arange(5.0)
"""What "auto" chooses from: classes overlap in smoother maps, sharper ones are saturated."""

ORDER_SHARPNESS = 2.0
"""Sharpness of the weights whose confusion orders the classes, whatever that of the map is."""

TOLERANCE = 0.002
"""Held-out accuracy that a smoother map may lack."""


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
    "sharpness": Either(Choice("auto"), POSITIVE_FACTOR),
    "cv": Either(Count(2), Splits(), Choice("half")),
}


class MarginMap(
    FollowedFits,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    BaseEstimator,
):
    """A picture of many classes: rows among class anchors on a circle.

    Two directions can separate two classes from the rest, and no more.  Here every class has an
    anchor on the unit circle, classes that are easily confused lie side by side, and a row lies at

    ``sum_k p_k a_k``  with  ``p = softmax(sharpness * margins / scale_)``,

    the mean of the anchors a_k weighted by the row's margins in a classifier: near an anchor if the
    classifier is sure, between two if it hesitates between them, in the middle if it does not know.
    New rows follow the same rule; the place of a row depends on that row alone.

    Parameters
    ----------
    classifier : classifier, default=None
        Any classifier with ``decision_function`` (one value per class) or ``predict_proba`` (the
        margins are their logarithms); it is cloned.  None is `GESVC` without a graph and with the
        kernel rbf, on 100 principal components if there are more columns (but not of a sparse X).
        Its C is 1, or 100 if that predicts held-out rows better by more than a standard error,
        and 10 where ``sharpness`` is a number and nothing is held out.
    sharpness : "auto" or float, default="auto"
        How fast a row moves to the anchor of its largest margin.  The unit is the mean distance
        between the largest and the second largest margin of a training row: at 1 the second class
        has typically e^-1 of the weight of the first.  "auto" takes the smoothest of five maps,
        from 1 to 16, in which the nearest training row finds the class of held-out rows as often as
        in the best map, up to two rows in a thousand.
    cv : "half", int, splitter or list of splits, default="half"
        What ``sharpness="auto"`` holds out: every second row of each class, at most 2000 evenly
        spaced ones; or a number of stratified folds (in the order of the rows, not shuffled), an
        object with ``split``, or a list of (train, test) indices.  Each split costs one more fit,
        two where the classifier is None: three fits in all, two of them on half of the rows.
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
    second_axis_ : object or None
        Of two classes: what gives the second coordinate, ``mean`` and ``direction`` in the features
        that the classifier sees.
    cv_results_ : dict
        Only for "auto": for each ``sharpness`` the held-out ``accuracy`` of the classifier that
        was taken, and that of each split in the rows of ``split_accuracy``; the ``classifiers``
        that were tried, and the share of held-out rows that each predicts right in
        ``classifier_accuracy``.

    Notes
    -----
    The circle starts at (1, 0) with ``classes_[0]`` (or the first of ``order``), and goes to that
    of its neighbors that comes first in ``classes_``.  Up to 10 classes the order is the best of
    all.  The confusion is that of held-out rows, with a fixed sharpness that of the training rows.

    Two classes have one margin: it is the first coordinate, between the anchors (1, 0) and (-1, 0).
    The second one, between -0.5 and 0.5, shows what else varies most: of the first ten principal
    components of the rows the direction of largest variance that is uncorrelated with the first
    coordinate (at most 2000 training rows are looked at).  The rows are those that the classifier
    sees, of a pipeline its last step.  If they are no numbers, or have missing ones, the second
    coordinate is 0.

    A sharper map is hardly ever less accurate; in the limit the softmax saturates, all rows of a
    class share one point (the anchor) and the accuracy is that of the classifier.  So the smoother
    map wins.  Rows that share a point are equally near, whatever their label, and a single neighbor
    is one of them by chance: there is a warning about a saturated map.

    Margins of pairs of classes make the best map as votes, with ties broken by their sums, as
    ``decision_function`` of `GESVC` and of scikit-learn's ``SVC`` have them: the sums alone lose 9
    points on vowel and 4 on usps.

    A classifier that has memorised its training rows shows them nearer to the anchors than new
    rows: judge a map by new rows.

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
        classifier: Predictor | None = None,
        *,
        sharpness: float | Literal["auto"] = "auto",
        cv: Folds | Literal["half"] = "half",
        order: Labels | None = None,
    ) -> None:
        self.classifier = classifier
        self.sharpness = sharpness
        self.cv = cv
        self.order = order

    def fit(self, X: Rows, y: Labels, sample_weight: Weights | None = None) -> Self:
        """Fit the classifier, order the classes and choose the sharpness.

        Parameters
        ----------
        X : array, sparse matrix, data frame or whatever the classifier takes
        y : array of shape (n_samples,)
            Class labels of any type.
        sample_weight : array of shape (n_samples,), optional
            Passed to the classifier, which must take it (of a pipeline, to all steps that do);
            confusion and accuracy are weighted.

        Returns
        -------
        self
        """
        check_parameters(self, CONSTRAINTS)
        with atomic_fit(self):
            refuse_lazy(X, self, "fit it on some rows and map all with X.map_blocks(map.transform)")
            if self.classifier is None:
                X = read_labelled(self, X, y, sample_weight).X
            else:
                validate_data(self, X, y, skip_check_array=True)
                X, _ = indexable(X, y)
            labels = column_or_1d(y, warn=True)
            weights = check_weights(sample_weight, len(labels))
            candidates = self._candidates(X)
            given = None if sample_weight is None else weights
            rows = TrainingRows(X, labels, given, is_pairwise(candidates[0]))
            codes = self._draw(candidates, rows, weights)
            self.second_axis_ = self._find_second_axis(rows, codes, weights)
        return self

    def _draw(self, candidates: list[Any], rows: TrainingRows, weights: Array) -> Array:
        """Choose and fit the classifier, place the anchors and set how fast rows approach them.

        Returns the class numbers of the rows.
        """
        chosen = rows.fitted(candidates[0]) if len(candidates) == 1 else None
        if chosen is None:  # the default, to which every label is a class
            self.classes_ = unique_labels(rows.y[weights > 0])[0]
        else:
            check_has_margins(chosen, fitted=True)
            self.classes_ = classes_of(chosen)
        codes = codes_of(rows.y, self.classes_)
        codes[weights == 0] = UNLABELLED
        if codes.max() == UNLABELLED:
            raise InvalidInputError(
                f"MarginMap: no row has a label among the classes {shown(self.classes_.tolist())} "
                f"of the classifier; got labels such as {shown(rows.y[:3].tolist())}."
            )
        if self.sharpness == "auto":
            best = self._judge(candidates, rows, codes, weights)
            self.classifier_ = rows.fitted(best) if chosen is None else chosen
            self.scale_ = self._training_side(rows, codes, weights).unit
            return codes
        self.classifier_ = chosen
        side = self._training_side(rows, codes, weights)
        self.scale_ = side.unit
        side = side.scaled(side.unit)
        self._place([side])
        self.sharpness_ = float(self.sharpness)
        self._warn_if_saturated(side)
        return codes

    def _judge(
        self, candidates: list[Any], rows: TrainingRows, codes: Array, weights: Array
    ) -> Any:
        """Place the anchors, choose the sharpness and return the classifier, by held-out rows."""
        trials = [held_out_parts(each, rows, codes, weights, self.cv) for each in candidates]
        rights = [recognised(parts)[0] for parts in trials]
        counts = recognised(trials[0])[1]
        best = 0
        for place, right in enumerate(rights):
            best = place if is_better(right, rights[best], counts) else best
        sides = [part.held_out for part in trials[best]]
        self._place(sides)
        by_part = map_accuracies(trials[best], self.anchors_)
        shares = [side.weights.sum() for side in sides]
        by_sharpness = np.average(by_part, axis=0, weights=shares)
        self.sharpness_ = smoothest(by_sharpness)
        self.cv_results_ = {
            "sharpness": SHARPNESS_GRID.copy(),
            "accuracy": by_sharpness,
            "split_accuracy": by_part,
            "classifiers": candidates,
            "classifier_accuracy": np.average(rights, axis=1, weights=counts),
        }
        return candidates[best]

    def _place(self, sides: Sequence[Side]) -> None:
        """Place the anchors by the confusion of these rows."""
        self.confusion_ = confusion(sides, len(self.classes_))
        self.order_ = self._circle()
        self.anchors_ = circle_points(self.order_)

    def _training_side(self, rows: TrainingRows, codes: Array, weights: Array) -> Side:
        """Return the margins of training rows, at most `UNIT_ROWS`."""
        some = evenly(codes, UNIT_ROWS)
        X = rows.taken(some, np.arange(len(codes)))
        margins = class_margins(self.classifier_, X)
        check_one_vs_rest(self.classifier_, X, margins)
        return Side(margins, codes[some], weights[some])

    def _find_second_axis(
        self, rows: TrainingRows, codes: Array, weights: Array
    ) -> SecondAxis | None:
        """Return the second axis of two classes, by at most `UNIT_ROWS` training rows."""
        if len(self.classes_) > 2:
            return None
        some = evenly(codes, UNIT_ROWS)
        X = rows.taken(some, np.arange(len(codes)))
        Z = feature_rows(self.classifier_, X)
        return None if Z is None else second_axis(Z, self._on_polygon(X)[:, 0], weights[some])

    def _warn_if_saturated(self, side: Side) -> None:
        """Warn if the softmax of so many rows is saturated that their neighbors are arbitrary."""
        drawn = memberships(side.margins, self.sharpness_).max(axis=1)
        share = float(np.average(drawn == 1.0, weights=side.weights))
        if share > SATURATED:
            warn(
                f"MarginMap: with sharpness={self.sharpness_:g}, {share:.0%} of the rows lie "
                "exactly on the anchor of a class. All rows there are equally near, whatever "
                "their label: use a smaller sharpness, or more than one neighbor.",
                MarginfoldWarning,
            )

    def _candidates(self, X: Any) -> list[Any]:
        """Return the classifiers to choose from, unfitted."""
        if self.classifier is not None:
            check_has_margins(self.classifier, fitted=False)
            return [self.classifier]
        return self.planned_classifiers(0 if sp.issparse(X) else X.shape[1])

    def planned_classifiers(self, n_features: int) -> list[Any]:
        """Return the classifiers to choose from for rows of so many columns."""
        if self.classifier is not None:
            return [self.classifier]
        costs = COSTS if self.sharpness == "auto" else (COST,)
        return [default_classifier(cost, n_features) for cost in costs]

    def _circle(self) -> Array:
        """Return the order of the classes round the circle."""
        if self.order is None:
            return circular_order(self.confusion_)
        flat = np.ndim(self.order) == 1
        codes = codes_of(np.asarray(self.order), self.classes_) if flat else np.empty(0, np.intp)
        if not np.array_equal(np.sort(codes), np.arange(len(self.classes_))):
            raise InvalidParameterError(
                f"MarginMap: order must name each class once, {shown(self.classes_.tolist())} in "
                f"any order; got {shown(self.order)}."
            )
        return codes

    def memberships(self, X: Rows) -> Array:
        """Return the weight of each class in the image of each row, (n_samples, n_classes)."""
        return self._memberships(self._read(X))

    def transform(self, X: Rows) -> Array:
        """Return the images of rows, shape (n_samples, 2), inside the polygon of the anchors.

        Those of two classes are inside the rectangle from (-1, -0.5) to (1, 0.5).  A row's image
        depends on that row alone.
        """
        X = self._read(X)
        images = self._on_polygon(X)
        if self.second_axis_ is not None:
            Z = feature_rows(self.classifier_, X)
            images[:, 1] = self.second_axis_.coordinates(Z, images[:, 0])
        return images

    def _read(self, X: Any) -> Any:
        """Return new rows as the classifier takes them."""
        check_is_fitted(self)
        refuse_lazy(X, self, "go chunk by chunk with X.map_blocks(map.transform)")
        if self.classifier is None:  # fitted on what was read, as `fit` does
            return read_new_rows(self, X)
        if getattr(X, "ndim", 2) > 1:  # else texts, or a mistake that the classifier explains
            validate_data(self, X, skip_check_array=True, reset=False)
        return X

    def _memberships(self, X: Any) -> Array:
        margins = class_margins(self.classifier_, X)
        return memberships(margins / self.scale_, self.sharpness_)

    def _on_polygon(self, X: Any) -> Array:
        return np.asarray(self._memberships(X) @ self.anchors_)

    @property
    def _n_features_out(self) -> int:
        return int(self.anchors_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        classifier = GESVC() if self.classifier is None else self.classifier
        if hasattr(classifier, "__sklearn_tags__") and not isinstance(classifier, type):
            tags.input_tags = get_tags(classifier).input_tags
        return tags


def default_classifier(cost: float, n_features: int) -> Any:
    """Return the classifier of a map that is given none."""
    machine = GESVC(C=cost, kernel="rbf", graph_weight=0.0)
    return machine if n_features <= COMPONENTS else make_pipeline(SVMPCA(COMPONENTS), machine)


def memberships(margins: Array, sharpness: float) -> Array:
    """Return the weights of the classes, positive and with sum 1 in each row."""
    return np.asarray(softmax(sharpness * margins, axis=1))


def confusion(sides: Sequence[Side], n_classes: int) -> Array:
    """Return the mean weight of each class (column) in the rows of each class (row)."""
    total = np.zeros((n_classes, n_classes))
    count = np.zeros(n_classes)
    for side in sides:
        drawn = side.weights[:, None] * memberships(side.margins, ORDER_SHARPNESS)
        np.add.at(total, side.codes, drawn)
        np.add.at(count, side.codes, side.weights)
    return total / np.maximum(count, np.finfo(float).tiny)[:, None]


def map_accuracies(parts: Sequence[Part], anchors: Array) -> Array:
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
    seen, held_out = (
        memberships(side.margins, sharpness) @ anchors for side in (part.seen, part.held_out)
    )
    nearest = cKDTree(seen).query(held_out)[1]
    right = part.seen.codes[nearest] == part.held_out.codes
    return float(np.average(right, weights=part.held_out.weights))
