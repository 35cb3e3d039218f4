"""Types of what users hand in, for annotations: editors and type checkers underline the rest.

They say at most what `fit` checks; the values themselves are checked there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from numpy.typing import NDArray


class SupportsArray(Protocol):
    """What NumPy can read: arrays, data frames and series of any library, Dask collections."""

    def __array__(self) -> NDArray[Any]:
        """Return the values."""


class SparseRows(Protocol):
    """A sparse matrix or sparse array of SciPy."""

    def tocsr(self) -> Any:
        """Return the same values by rows."""


class Estimator(Protocol):
    """An estimator of scikit-learn, marginfold or the user; pipelines and searches are some."""

    def get_params(self, deep: bool = True) -> Any:
        """Return the parameters by their names."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters by their names."""


class FittedMap(Protocol):
    """What gives every row an image: a fitted transformer, or a pipeline that ends in one."""

    def transform(self, X: Any, /) -> Any:
        """Return an image of each row."""


class Predictor(Protocol):
    """A classifier or regressor of scikit-learn, marginfold or the user."""

    def fit(self, X: Any, y: Any, /) -> Any:
        """Learn from rows and what belongs to them."""

    def predict(self, X: Any, /) -> Any:
        """Return what belongs to each row."""


class SubspaceEstimator(Protocol):
    """A transformer with a number of components, such as `LSVA` or scikit-learn's LDA."""

    @property
    def n_components(self) -> Any:
        """The number of components."""

    def transform(self, X: Any, /) -> Any:
        """Return an image of each row."""


class NeighborSearch(Protocol):
    """A transformer that finds neighbors, such as ``KNeighborsTransformer(mode="distance")``."""

    def fit(self, X: Any, y: Any = None, /) -> Any:
        """Learn where the rows are."""


class Splitter(Protocol):
    """A cross-validator, such as ``StratifiedKFold(5)``."""

    def split(self, X: Any, y: Any, groups: Any, /) -> Any:
        """Yield pairs of training and test rows."""


Rows = SupportsArray | SparseRows | Sequence[Sequence[float] | SupportsArray]
"""X: an array, a sparse matrix, a data frame, a Dask collection, or a list of rows."""

Images = SupportsArray | Sequence[Sequence[float]]
"""Points in a subspace: an array, a data frame, or a list of points."""

Labels = SupportsArray | list[Any] | tuple[Any, ...]
"""y: class labels of any type, one for each row (a string is not taken for a list of letters)."""

HeldOut = tuple[Rows, Labels]
"""Rows that a fit has not seen, and their labels."""

Mask = SupportsArray | Sequence[bool]
Numbers = SupportsArray | Sequence[float]
Weights = Numbers | float
"""A number for each row, or one for all of them."""

SearchLike = Literal["auto", "exact", "faiss"] | NeighborSearch
"""How a graph finds neighbors."""

ClassWeight = Literal["balanced"] | Mapping[Any, float] | None
Multiclass = Literal["one_vs_one", "one_vs_rest"]
Reconstruct = Literal["linear", "kernel_ridge", "fixed_point"] | Predictor | None

Folds = int | Splitter | Iterable[tuple[Any, Any]]
"""A number of folds, a splitter, or pairs of training and test rows."""

Scorings = str | Callable[..., Any] | Sequence[str] | Mapping[str, str | Callable[..., Any]] | None
"""One metric or several, as in GridSearchCV: names, or functions of a fitted estimator, X and y."""
