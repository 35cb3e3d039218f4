"""A data set as a value, and the synthetic ones behind the papers' figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginfold.runtime.extras import require
from marginfold.validation.parameters import Count, Number, check_arguments

if TYPE_CHECKING:
    import pandas as pd

SINE_WIDTH = 3.0
"""Half the width of the noisy sine: one period, drawn three times as wide as it is high."""


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


def cross_planes(n_samples: int = 200, *, noise: float = 0.05, random_state: int = 0) -> Dataset:
    """Return two classes around two crossing lines, which no single line can part.

    The rows of class 0 lie at (t, t), those of class 1 at (t, -t), with t uniform in [-1, 1].

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows; an odd one goes to class 0.
    noise : float, default=0.05
        Standard deviation of the normal noise on both coordinates.
    random_state : int, default=0
        Seed: the same one gives the same rows.

    References
    ----------
    003, Fig. 5: the "cross planes" example, after the one of GEPSVM. The paper does not state how
    its rows were made.

    Examples
    --------
    >>> from marginfold.data import cross_planes
    >>> cross_planes(100, noise=0.02)
    Dataset(100 x 2, 2 classes)
    """
    check_arguments(
        n_samples=(n_samples, Count(2)),
        noise=(noise, Number(0)),
        random_state=(random_state, Count(0)),
    )
    rng = np.random.default_rng(random_state)
    y = np.repeat([0, 1], [n_samples - n_samples // 2, n_samples // 2])
    t = rng.uniform(-1, 1, n_samples)
    X = np.column_stack([t, np.where(y == 0, t, -t)])
    return _generated(X + noise * rng.standard_normal(X.shape), y, ("0", "1"), _CROSS)


def noisy_sine(n_samples: int = 120, *, noise: float = 0.12, random_state: int = 0) -> Dataset:
    """Return rows along one period of a sine: two coordinates, one of which is enough.

    The rows lie at (3 t, sin(pi t)) for equally spaced t in [-1, 1]. There are no classes: `y` is
    t, the position along the curve, as scikit-learn's ``make_swiss_roll`` has it.

    Parameters
    ----------
    n_samples : int, default=120
        Number of rows.
    noise : float, default=0.12
        Standard deviation of the normal noise on both coordinates.
    random_state : int, default=0
        Seed: the same one gives the same rows.

    References
    ----------
    004, Fig. 4: kernel PCA of a noisy sine function. The paper does not state how its rows were
    made.

    Examples
    --------
    >>> from marginfold.data import noisy_sine
    >>> sine = noisy_sine(5, noise=0.0)
    >>> sine.X[:, 0], sine.y
    (array([-3. , -1.5,  0. ,  1.5,  3. ]), array([-1. , -0.5,  0. ,  0.5,  1. ]))
    """
    check_arguments(
        n_samples=(n_samples, Count(1)),
        noise=(noise, Number(0)),
        random_state=(random_state, Count(0)),
    )
    rng = np.random.default_rng(random_state)
    t = np.linspace(-1, 1, n_samples)
    X = np.column_stack([SINE_WIDTH * t, np.sin(np.pi * t)])
    return _generated(X + noise * rng.standard_normal(X.shape), t, (), _SINE)


_CROSS = "Two classes around the lines x2 = x1 and x2 = -x1."
_SINE = "Rows along one period of a sine; y is the position along it."


def _generated(
    X: NDArray[Any], y: NDArray[Any], target_names: tuple[str, ...], description: str
) -> Dataset:
    terms = "none needed: generated"
    return Dataset(X, y, ("x1", "x2"), target_names, description, "generated", terms)
