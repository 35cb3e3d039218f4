"""WSVDA: within support vector discriminant analysis (paper 001)."""

from __future__ import annotations

from typing import Any

from marginfold.estimators.margin_subspace import MarginSubspace
from marginfold.geometry.metric import Penalty
from marginfold.graphs import resolve_graph
from marginfold.validation.parameters import Constraint, Number


class WSVDA(MarginSubspace):
    """Within support vector discriminant analysis: margins measured by within-class scatter.

    Component k solves (001 eq. (15), in coordinates Z of the rows)

    ``min 1/2 w'(S_W + eps I)w + sum_i C_i max(0, 1 - y_i (w'z_i + b))``

    over w orthogonal to the earlier components, with S_W the within-class scatter of all classes
    and ``eps = ridge tr(S_W) / rank(Z)``.

    Parameters
    ----------
    n_components : int, default=2
        Largest number of components.
    C : float, default=1.0
        Cost of a margin violation.  The paper's objective (15) has no factor 1/2: its C is C / 2
        here.
    kernel : str, callable, feature map or transformer, default="linear"
        See `MMDA`.
    graph : str or graph rule, default="within"
        The graph whose scatter replaces ``|w|^2``; "within" is the paper's.
    ridge : float, default=1e-3
        Ridge relative to the mean eigenvalue of the scatter where rows vary at all.  It is needed:
        the deflated scatter is singular from the second component on, and with fewer rows than
        features at once.
    class_weight, tasks, scaling, on_exhausted, reconstruct, unlabeled, solver, tol
        See `MMDA`.

    Attributes
    ----------
    components_, mean_, intercepts_, norms_, gain_, exhausted_, tasks_, gap_, n_iter_,
    n_iter_per_component_, n_components_, classes_, feature_map_, directions_
        See `MMDA`.

    Notes
    -----
    With fewer rows than features and a small ridge the first direction tends to that of null-space
    LDA: all training rows of a class get the same value.  That is what the method asks for, not an
    error.  A pseudo-inverse instead of the ridge would delete exactly this direction.

    The paper treats two classes; with several, S_W is that of all classes for every task.

    References
    ----------
    Pitelis, Tefas: Discriminant Subspace Learning Based on Support Vectors Machines.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from marginfold import WSVDA
    >>> X, y = load_wine(return_X_y=True)
    >>> WSVDA(n_components=2).fit(X, y).transform(X).shape
    (178, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        C: float = 1.0,
        kernel: Any = "linear",
        graph: Any = "within",
        ridge: float = 1e-3,
        class_weight: Any = "balanced",
        tasks: str = "one_vs_rest",
        scaling: str = "unit",
        on_exhausted: str = "stop",
        reconstruct: Any = None,
        unlabeled: Any = None,
        solver: Any = "auto",
        tol: float = 1e-8,
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.kernel = kernel
        self.graph = graph
        self.ridge = ridge
        self.class_weight = class_weight
        self.tasks = tasks
        self.scaling = scaling
        self.on_exhausted = on_exhausted
        self.reconstruct = reconstruct
        self.unlabeled = unlabeled
        self.solver = solver
        self.tol = tol

    def _penalty(self) -> Penalty:
        return Penalty(resolve_graph(self.graph), ridge=float(self.ridge))

    def _constraints(self) -> dict[str, Constraint]:
        return super()._constraints() | {"ridge": Number(0.0, inclusive=False)}
