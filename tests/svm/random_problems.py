"""Random support vector problems from easy to hostile, and the plain formulas that judge them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginfold.linalg.tall import SharedRows
from marginfold.svm import SVMBatch

KINDS = (
    "overlap",
    "separable",
    "noise",
    "rare class",
    "far separable",
    "integers",
    "conflicting copies",
    "column scales",
    "shifted",
    "duplicated and constant columns",
)


@dataclass(frozen=True)
class Problem:
    """Rows, labels and costs of one problem."""

    name: str
    U: np.ndarray
    y: np.ndarray
    c: np.ndarray


@dataclass(frozen=True)
class Judgement:
    """What plain formulas in extended precision say about a solution."""

    objective: float
    dual_objective: float
    gap: float
    balance: float  # |y'a| / sum(a)
    rounding: float  # what the judge's own rounding may add to the gap
    caution: float  # what a solver may add that allows for rounding in double precision


def random_problem(seed: int, *, decades: float = 6.0) -> Problem:
    """Return problem number ``seed``: kinds in turn, sizes and costs log-uniform.

    Half of the problems have costs that differ from row to row, over ``decades`` powers of ten.
    """
    rng = np.random.default_rng([2024, seed])
    kind = KINDS[seed % len(KINDS)]
    n = round(10 ** rng.uniform(np.log10(2), np.log10(5000)))
    r = round(10 ** rng.uniform(0, np.log10(200)))
    U, y = _rows(kind, n, r, rng)
    c = np.full(n, 10 ** rng.uniform(-6, 6))
    if rng.random() < 0.5:
        c *= 10 ** rng.uniform(-decades / 2, decades / 2, n)
    return Problem(f"{seed}: {kind}, n={n}, r={U.shape[1]}, max c={c.max():.1e}", U, y, c)


def random_batch(
    n: int = 300,
    r: int = 5,
    *,
    n_problems: int = 3,
    n_deflated: int = 0,
    decades: float = 2.0,
    cost: float = 1.0,
    signal: float = 1.0,
    seed: int = 0,
) -> SVMBatch:
    """Return problems on the same rows that differ in labels, costs, scale and what is deflated.

    Labels are those of a plane for each problem, with noise that ``signal`` divides.
    """
    rng = np.random.default_rng([101, seed, n, r])
    U = rng.standard_normal((n, r)) + 1.0
    noise = rng.standard_normal((n_problems, n)) / signal
    scores = rng.standard_normal((n_problems, r)) @ U.T + noise
    signs = np.where(scores > np.quantile(scores, 0.4, axis=1)[:, None], 1.0, -1.0)
    costs = cost * 10 ** rng.uniform(-decades / 2, decades / 2, (n_problems, n))
    scale = 10 ** rng.uniform(-0.5, 0.5, (n_problems, r))
    directions = rng.standard_normal((n_problems, r, n_deflated))
    deflated = np.linalg.qr(directions)[0] if n_deflated else directions
    return SVMBatch(SharedRows(U), signs, costs, scale, deflated)


def _rows(kind: str, n: int, r: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    U = rng.standard_normal((n, r))
    y = _labels(n, 0.02 if kind == "rare class" else 0.5, rng)
    if kind != "noise":
        U[:, 0] += 0.7 * y
    if kind == "separable":
        U[:, 0] = y * (0.1 + np.abs(U[:, 0]))
    if kind == "far separable":
        U[:, 0] = y * (100.0 + np.abs(U[:, 0]))
    if kind == "integers":
        U = np.rint(U)
    if kind == "conflicting copies":
        U = U[rng.integers(0, max(1, n // 3), n)]
    if kind == "column scales":
        U = U * 10.0 ** rng.uniform(-4, 4, r)
    if kind == "shifted":
        U = U + 1e4
    if kind.startswith("duplicated"):
        U = np.column_stack([U, U[:, rng.integers(0, r, 3)], np.full(n, 3.7)])
    return U, y


def _labels(n: int, share: float, rng: np.random.Generator) -> np.ndarray:
    y = np.where(rng.random(n) < share, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rng.permutation(y)


def judge(problem: Problem, coef: np.ndarray, intercept: float, dual: np.ndarray) -> Judgement:
    """Evaluate both objectives in extended precision, so that the judge adds no rounding.

    The bias is the best one that is stored as this intercept: see `stored_bias`.
    """
    U, y, c = (part.astype(np.longdouble) for part in (problem.U, problem.y, problem.c))
    w, a = coef.astype(np.longdouble), dual.astype(np.longdouble)
    scores = _times(U, w)
    bias = stored_bias(scores, y, c, intercept, float(np.abs(w) @ np.abs(U.mean(axis=0))), len(w))
    hinge = np.maximum(0, 1 - y * (scores + bias))
    size = _times(np.abs(U), np.abs(w)) + abs(intercept)
    objective = 0.5 * (w * w).sum() + (c * hinge).sum()
    # The rows are centred first: with y'a = 0 that changes nothing but the cancellation.
    pull = _times((U - U.mean(axis=0)).T, y * a)
    dual_objective = a.sum() - 0.5 * (pull * pull).sum()
    return Judgement(
        objective=float(objective),
        dual_objective=float(dual_objective),
        gap=float((objective - dual_objective) / objective),
        balance=float(abs((y * a).sum()) / max(a.sum(), np.finfo(float).tiny)),
        rounding=4 * float(np.finfo(np.longdouble).eps * (c * size).sum() / objective),
        caution=100 * float(np.finfo(np.float64).eps * (c * size).sum() / objective),
    )


def stored_bias(scores, y, c, intercept, shift, r) -> np.longdouble:
    """Return the bias of least hinge loss whose value in double precision may be the intercept.

    Solvers work and certify with rows about their mean m.  The bias there is small; the intercept
    of the rows as they are is less by w'm, a sum of r products, so that it has an error of up to
    ``(r + 1) eps (|w|'|m| + |intercept|)``.  Rows far from 0 lose more of the gap by this than any
    certificate allows, whatever is stored: the claim is about the plane before it is rounded.
    """
    reach = np.finfo(np.float64).eps * (r + 1) * (shift + abs(intercept))
    known = np.longdouble(intercept)
    corners = y - scores  # of the loss, which is convex and linear between them
    near = corners[np.abs(corners - known) <= reach]
    tried = np.unique(np.concatenate([[known, known - reach, known + reach], near]))
    losses = [(c * np.maximum(0, 1 - y * (scores + bias))).sum() for bias in tried]
    return tried[int(np.argmin(losses))]


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A * x).sum(axis=1)
