"""SubspaceSearchCV: costs, weights, numbers of components and of neighbors by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from marginfold.errors import InvalidParameterError
from marginfold.estimators.paths import MarginEstimator, Values, grid_of, listed
from marginfold.linalg.tall import Array
from marginfold.model_selection.folds import Trial, fit_pipeline
from marginfold.model_selection.neighbors_classifier import NeighborsClassifier
from marginfold.model_selection.rows import SearchRows
from marginfold.model_selection.search import Scorers, SharedSearch, if_best_has
from marginfold.validation.parameters import Count, check_parameters, shown
from marginfold.validation.types import (
    Folds,
    Images,
    Labels,
    Predictor,
    Rows,
    Scorings,
    SubspaceEstimator,
)


class SubspaceSearchCV(TransformerMixin, SharedSearch, auto_wrap_output_keys=None):
    """Choose C, the graph weight and the numbers of components and neighbors by cross-validation.

    The same choice as ``GridSearchCV`` over ``Pipeline([("subspace", estimator), ("classifier",
    classifier)])`` with the same grid, in a fraction of the time: each fold builds one graph,
    decomposes one metric and solves all costs and weights side by side (see `path`), and the first
    k components of one fit are the fit with ``n_components=k``.  (With ``tasks="auto"`` numbers of
    components below that of the classes share one fit, the others another.)

    Parameters
    ----------
    estimator : transformer with ``n_components``
        It is not changed; parameters that are not in the grid keep its values.  One fit serves all
        numbers of components of a transformer of this package; any other one is fitted once for
        each number of them.
    C, graph_weight : float or sequence of float, optional
        Values to try; by default the estimator's own.  Only MMDA, LSVA and WSVDA have a ``C``, and
        only LSVA has a ``graph_weight``.
    n_components : int or sequence of int, optional
        Numbers of components to try; by default 1, 2, ..., ``estimator.n_components``, but no more
        than the rows can have.
    classifier : classifier, optional
        It is fitted to the components and scored; by default ``KNeighborsClassifier(1)``.  The
        neighbors in all numbers of components are found at once, other classifiers are fitted one
        by one.
    n_neighbors : int or sequence of int, optional
        Numbers of neighbors to try, in place of a classifier: it is ``NeighborsClassifier`` with
        the best of them.  One search finds the neighbors for all of these numbers.
    cv : int, splitter or iterable, optional
        As in GridSearchCV: 5 stratified folds by default.
    scoring : str, callable, list, tuple or dict, optional
        As in GridSearchCV, but a callable returns one number; the classifier's ``score`` by
        default.  For a callable that is not a scorer made by ``make_scorer`` every number of
        components is fitted by itself, because it may look at the whole pipeline.
    refit : bool, str or callable, default=True
        As in GridSearchCV: whether the best pipeline is fitted to all rows, by which of several
        metrics, or a function of ``cv_results_`` that returns the best index.
    n_jobs : int, optional
        Processes on this machine that share the folds.  They import the script that starts them:
        its work must stand below ``if __name__ == "__main__":``.
    client : distributed.Client or str, optional
        A Dask cluster that shares the folds, or its address.
    error_score : "raise" or number, default=np.nan
        The score of a fit that fails.
    return_train_score : bool, default=False

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, n_splits_, scorer_, refit_time_,
    multimetric_
        As in GridSearchCV; parameters have the names of the estimator's, without the step.  The
        seconds of a shared fit are spread evenly over its candidates.
    best_estimator_ : Pipeline
        With the steps "subspace" and "classifier", fitted to all rows.
    classes_, n_features_in_, feature_names_in_
        Of the best estimator.

    Notes
    -----
    If ``estimator.unlabeled`` marks rows without a label, only labelled rows are split and scored;
    unlabelled rows take part in the fit of every subspace, whatever splits say that are given as
    row numbers, and never reach the classifier.  (GridSearchCV would take the marker for a class.)

    Watch the folds with `marginfold.watch`; cancelling leaves the search as it was.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import LSVA, SubspaceSearchCV
    >>> X, y = load_wine(return_X_y=True)
    >>> search = SubspaceSearchCV(LSVA(4), graph_weight=[0.1, 1, 10]).fit(scale(X), y)
    >>> search.best_params_
    {'graph_weight': 1, 'n_components': 2}
    >>> len(search.cv_results_["params"])
    12
    """

    def __init__(
        self,
        estimator: SubspaceEstimator,
        *,
        C: Values = None,
        graph_weight: Values = None,
        n_components: Iterable[int] | int | None = None,
        classifier: Predictor | None = None,
        n_neighbors: Iterable[int] | int | None = None,
        cv: Folds | None = None,
        scoring: Scorings = None,
        refit: bool | str | Callable[[dict[str, Any]], int] = True,
        n_jobs: int | None = None,
        client: object = None,
        error_score: float | Literal["raise"] = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.graph_weight = graph_weight
        self.n_components = n_components
        self.classifier = classifier
        self.n_neighbors = n_neighbors
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.client = client
        self.error_score = error_score
        self.return_train_score = return_train_score

    @if_best_has("predict", "classifier")
    def predict(self, X: Rows) -> Array:
        """Return the class of each row, by the best pipeline."""
        return self._best().predict(X)

    @if_best_has("predict_proba", "classifier")
    def predict_proba(self, X: Rows) -> Array:
        """Return the probabilities of the classes, by the best pipeline."""
        return self._best().predict_proba(X)

    @if_best_has("decision_function", "classifier")
    def decision_function(self, X: Rows) -> Array:
        """Return the decision values of the best pipeline's classifier."""
        return self._best().decision_function(X)

    @if_best_has("transform", "subspace")
    def transform(self, X: Rows) -> Array:
        """Return the rows in the best subspace."""
        subspace = self._best().named_steps["subspace"]
        configured = getattr(self, "_sklearn_output_config", None)
        if configured is None:
            return subspace.transform(X)
        images = FunctionTransformer(
            subspace.transform, feature_names_out=lambda *_: subspace.get_feature_names_out()
        )
        return images.set_output(transform=configured["transform"]).transform(X)

    def set_output(
        self, *, transform: Literal["default", "pandas", "polars"] | None = None
    ) -> Self:
        """Set the container of what `transform` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            None leaves it as it is: that of the subspace.

        Returns
        -------
        self
        """
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # clones keep what is so named
        return self

    @if_best_has("inverse_transform", "subspace")
    def inverse_transform(self, X: Images) -> Array:
        """Return rows in input space for images in the best subspace."""
        return self._best().named_steps["subspace"].inverse_transform(X)

    @if_best_has("get_feature_names_out", "subspace")
    def get_feature_names_out(self, input_features: Labels | None = None) -> Array:
        """Return the names of the best subspace's components."""
        return self._best().named_steps["subspace"].get_feature_names_out(input_features)

    def _check(self, rank: float) -> None:
        if isinstance(self.estimator, type) or not (
            hasattr(self.estimator, "transform") and hasattr(self.estimator, "n_components")
        ):
            raise InvalidParameterError(
                f"estimator must be a transformer with n_components, such as LSVA or LDA; got "
                f"{shown(self.estimator)}. For others use scikit-learn's GridSearchCV."
            )
        if self.classifier is not None and self.n_neighbors is not None:
            raise InvalidParameterError(
                f"classifier and n_neighbors cannot be used together; got {shown(self.classifier)} "
                f"and {shown(self.n_neighbors)}. Leave one out."
            )
        constraints: dict[str, Any] = {"n_components": Count(1)}
        if isinstance(self.estimator, MarginEstimator):
            constraints = self.estimator._constraints()
            check_parameters(self.estimator, constraints)
        self._check_grid(constraints, ("C", "graph_weight", "n_components", "n_neighbors"), rank)
        for head in self._heads():
            if isinstance(head, NeighborsClassifier):
                head.check()

    def _trial(self, scorers: Scorers, rank: float) -> Trial:
        return Trial(
            estimator=self.estimator,
            grid=self._grid(),
            dimensions=tuple(self._dimensions(rank)),
            heads=tuple(self._heads()),
            by_votes=self.n_neighbors is not None,
            scorers=scorers.by_name,
            needs_pipeline=not scorers.see_predictions_only,
            error_score=self.error_score,
            return_train_score=bool(self.return_train_score),
        )

    def _candidates(self, rank: float) -> dict[str, list[Any]]:
        candidates: dict[str, list[Any]] = {**self._grid(), "n_components": self._dimensions(rank)}
        if self.n_neighbors is not None:
            candidates["n_neighbors"] = listed("n_neighbors", self.n_neighbors)
        return candidates

    def _grid(self) -> dict[str, list[float]]:
        if self.C is None and self.graph_weight is None:
            return {}
        return grid_of(self.estimator, self.C, self.graph_weight)

    def _dimensions(self, rank: float) -> list[Any]:
        """Return the numbers of components to try: the given ones, or all that rows can have."""
        if self.n_components is not None:
            return listed("n_components", self.n_components)
        most = self.estimator.n_components
        if most is None or isinstance(most, str):
            raise InvalidParameterError(
                f"n_components is missing: {shown(self.estimator)} does not say how many there "
                "are. Give the numbers to try, such as n_components=[1, 2, 3]."
            )
        return list(range(1, max(1, int(min(most, rank))) + 1))

    def _heads(self) -> list[Any]:
        """Return the classifiers to choose from."""
        if self.n_neighbors is not None:
            return [NeighborsClassifier(k) for k in listed("n_neighbors", self.n_neighbors)]
        return [KNeighborsClassifier(1) if self.classifier is None else self.classifier]

    def _model(self) -> Pipeline:
        head = NeighborsClassifier() if self.n_neighbors is not None else self._heads()[0]
        return Pipeline([("subspace", self.estimator), ("classifier", head)])

    def _fit_best(self, rows: SearchRows) -> Pipeline:
        params = dict(self.best_params_)
        head = clone(self._model().named_steps["classifier"])
        if self.n_neighbors is not None:
            head.n_neighbors = params.pop("n_neighbors")
        subspace = clone(self.estimator).set_params(**params)
        return fit_pipeline(subspace, head, rows.whole())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        head, subspace = (get_tags(step) for _, step in reversed(self._model().steps))
        tags.estimator_type = head.estimator_type
        tags.classifier_tags = deepcopy(head.classifier_tags)
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False  # margins are those of classes
        tags.regressor_tags = deepcopy(head.regressor_tags)
        tags.transformer_tags = deepcopy(subspace.transformer_tags)
        tags.target_tags.required = True
        tags.input_tags.pairwise = subspace.input_tags.pairwise
        tags.input_tags.sparse = subspace.input_tags.sparse
        return tags
