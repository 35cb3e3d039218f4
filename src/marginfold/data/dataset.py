"""What loading returns: numbers, labels, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from marginfold.runtime.extras import require

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set with its names, its source and its licence.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The values in float64, as published: not scaled, and nan where a value is missing.
    y : ndarray of shape (n_samples,)
        The labels: int64 where the source has whole numbers, else the words of the source.
    feature_names : tuple of str
        One name for each column of `X`.
    target_names : tuple of str
        One name for each class, in the order of ``np.unique(y)``; none where there are no classes.
    description, source, license : str
        What the rows are, where they were taken from with the citation, and on which terms.

    Examples
    --------
    >>> from marginfold.data import load
    >>> iris = load("iris")
    >>> iris
    Dataset(150 x 4, 3 classes)
    >>> iris.license
    'CC BY 4.0'
    """

    X: NDArray[Any]
    y: NDArray[Any]
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    description: str
    source: str
    license: str

    @property
    def frame(self) -> pd.DataFrame:
        """The columns and, last, the labels as ``label``, in a pandas data frame."""
        require("pandas")
        import pandas as pd

        return pd.DataFrame(self.X, columns=list(self.feature_names)).assign(label=self.y)

    def __repr__(self) -> str:
        n, d = self.X.shape
        classes = f", {len(self.target_names)} classes" if self.target_names else ""
        return f"Dataset({n} x {d}{classes})"
