"""LapSVC: the semi-supervised Laplacian support vector machine."""

from __future__ import annotations

from typing import Any

from marginfold.estimators.gesvm import GESVC


class LapSVC(GESVC):
    """Laplacian support vector machine: unlabelled rows act through a neighbor graph.

    The same problem as `GESVC`; rows whose label equals ``unlabeled`` have no hinge loss.  With
    Belkin's parameters, ``C = 1 / (2 n_labelled gamma_A)`` and, for the raw graph weight
    (``normalize_graph=False``), ``graph_weight = gamma_I / (gamma_A n_samples^2)``.

    Unlabelled rows help on some data and hurt on other: compare with `GESVC` on the labelled rows.

    Parameters
    ----------
    C, kernel, graph, graph_weight, normalize_graph, class_weight, solver, tol
        See `GESVC`.
    unlabeled : object, default=-1
        The label of rows without one.  It is found among text labels too, as "-1".  Leave such
        rows out when you score predictions: the marker is not a class.

    Attributes
    ----------
    coef_, intercept_, intercepts_, classes_, gap_, gain_, n_iter_, feature_map_, directions_
        See `GESVC`.

    References
    ----------
    Belkin, Niyogi, Sindhwani: Manifold Regularization, Journal of Machine Learning Research 7.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from marginfold import LapSVC
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> few = np.full(200, -1)
    >>> few[:6] = y[:6]
    >>> model = LapSVC(kernel="rbf", C=10, graph_weight=10).fit(X, few)
    >>> model.classes_
    array([0, 1])
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "linear",
        graph: Any = "knn",
        graph_weight: float = 1.0,
        normalize_graph: bool = True,
        class_weight: Any = None,
        unlabeled: Any = -1,
        solver: Any = "auto",
        tol: float = 1e-8,
    ) -> None:
        super().__init__(
            C=C,
            kernel=kernel,
            graph=graph,
            graph_weight=graph_weight,
            normalize_graph=normalize_graph,
            class_weight=class_weight,
            unlabeled=unlabeled,
            solver=solver,
            tol=tol,
        )
