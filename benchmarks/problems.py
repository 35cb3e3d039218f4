"""Support vector problems against the solvers that a user would take instead.

One problem, a path of graph weights, a million rows, a kernel of rank 500, and the growth with the
rows.  Overlapping: two round clouds 1.4 apart; apart: 6 and 16 apart.  Peers run at their default
tolerance (1e-3), ours is certified to a relative duality gap of 1e-6 or better.  It is compiled if
numba is installed (loaded before the first measurement: by itself only long work does that); what
NumPy alone takes stands beside it.  Peers that are not installed are left
out (`make bench` installs them).  LinearSVC solves another problem (it penalises the bias).  Peers
that need longer than `PATIENCE` on the way are not asked for larger problems.

``python benchmarks/problems.py`` measures everything; ``--quick`` a sample.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
from lines import REPEATS, Line, Times, cpu, load_compiled, ratio_text
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from marginfold import LSVA, MMDA, NeighborGraph
from marginfold.runtime.jit import without_compiling
from marginfold.svm import Automatic

CUTOFF = 300_000
"""libsvm iterations after which the obvious implementation is cut off."""

TOL = 1e-6
"""Relative duality gap that our side is certified to."""

PATIENCE = 20.0
"""CPU seconds that a peer may need on a problem to be asked for a larger one."""

ONCE = 5.0
"""CPU seconds from which a peer is measured on the first seed only."""

Pair = tuple[np.ndarray, np.ndarray]
Peer = Callable[[np.ndarray, np.ndarray, float], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a sample of small problems")
    for line in lines(parser.parse_args().quick):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def lines(quick: bool) -> Iterator[Line]:
    """Yield the lines one by one."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        load_compiled()
        yield from paths(quick)
        yield from single_problems(quick)
        yield from million(quick)
        yield from high_rank(quick)
        yield from growth(quick)


def two_clouds(n: int, r: int, half_distance: float, seed: int) -> Pair:
    """Return two round clouds and their labels +1, -1."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    X = rng.normal(size=(n, r))
    X[:, 0] += half_distance * y
    return X, y


def three_clouds(n: int, r: int, seed: int) -> Pair:
    """Return three overlapping round clouds, apart in two directions, and their numbers."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, r))
    X[:, :2] += np.array([[0.0, 1.4], [1.2, -0.7], [-1.2, -0.7]])[y]
    return X, y


def paths(quick: bool) -> Iterator[Line]:
    """LSVA, 10 components x 30 graph weights, against one SVC per component and weight."""
    sizes = [(1000, True)]
    if not quick:
        sizes += [(1000, False), (5000, True), (5000, False)]
    for n, normalize in sizes:
        X, y = two_clouds(n, 30, 0.7, 0)
        weights = np.logspace(-2, 2, 30) if normalize else np.logspace(-1, 2, 30)
        estimator = LSVA(10, C=100.0, normalize_graph=normalize, deflation="orthogonal", tol=TOL)
        work = _call(lambda e=estimator, w=weights, X=X, y=y: e.fit_path(X, y, w))
        work()
        ours = Times(tuple(cpu(work) for _ in range(2 if quick else REPEATS)))
        with without_compiling():
            plain = min(cpu(work) for _ in range(2))
        gap = max(float(member.gap_.max()) for member in estimator.fit_path(X, y, weights))
        first_only = n > 1000
        sample = weights[5::20] if quick else weights[:: 10 if first_only else 3]
        unit = graph_unit(X) if normalize else 1.0
        parts = [obvious_path(X, y, lam / unit, 1 if first_only else 10) for lam in sample]
        theirs = sum(parts) * len(weights) / len(sample) * (10 if first_only else 1)
        how = f"{len(sample)} of 30 weights" if len(sample) < 30 else "all weights, once"
        how += ", first component x 10 (extrapolated)" if first_only else ""
        units = "weights 0.01 to 100" if normalize else "raw weights 0.1 to 100 (easy problems)"
        yield Line(
            f"LSVA, 10 components x 30 graph weights, n = {n}, d = 30, C = 100, {units} "
            f"(gap <= {gap:.0e}; NumPy alone {plain:.3g} s)",
            ours,
            f"SVC(precomputed) each, at most 300k iterations, {how}: {theirs:.3g} s",
            ratio_text(ours, Times((theirs,))),
            "-" if not normalize else ">= 300" if n == 1000 else ">= 1000",
        )


def graph_unit(X: np.ndarray) -> float:
    """Return tr(Z M Z') / tr(Z Z'), the unit of a normalised graph weight."""
    Z = X - X.mean(axis=0)
    M = NeighborGraph().build(X).scatter(Z)
    return float((M * (Z.T @ Z)).sum() / (Z * Z).sum())


def obvious_path(X: np.ndarray, y: np.ndarray, lam: float, n_components: int) -> float:
    """Return the CPU seconds of Algorithm 1 of paper 000 as one would write it down."""
    start = time.process_time()
    L = NeighborGraph().build(X).scatter(np.eye(len(X)))
    signs = np.where(y > 0, 1.0, -1.0)
    P = np.eye(X.shape[1])
    for _ in range(n_components):
        A = np.eye(X.shape[1]) + lam * P @ X.T @ L @ X @ P
        kernel = X @ P @ np.linalg.solve(A, P @ X.T)
        svc = SVC(kernel="precomputed", C=100.0, class_weight="balanced", max_iter=CUTOFF)
        svc.fit(kernel, signs)
        w = np.linalg.solve(A, P @ X[svc.support_].T @ svc.dual_coef_[0])
        w /= np.linalg.norm(w)
        P = P @ (np.eye(len(w)) - np.outer(w, w))
    return time.process_time() - start


def single_problems(quick: bool) -> Iterator[Line]:
    """One certified problem against the best of the peers."""
    shapes = {300: 16, 1000: 24, 5000: 40, 20000: 40}
    kinds = [("overlapping", 0.7, 1.0), ("apart (6)", 3.0, 1.0), ("far apart (16)", 8.0, 1.0)]
    kinds.append(("far apart (16)", 8.0, 100.0))
    bars = {300: ">= 3", 1000: ">= 10", 5000: ">= 80", 20000: ">= 100"}
    for kind, distance, C in kinds:
        slow: set[str] = set()
        for n, r in shapes.items():
            if n > (1000 if quick else 5000 if distance > 1 else 20000):
                continue
            seeds = 2 if quick else REPEATS
            yield one_problem(kind, distance, C, n, r, seeds, slow, bars[n])


def one_problem(
    kind: str, distance: float, C: float, n: int, r: int, seeds: int, slow: set[str], bar: str
) -> Line:
    """Measure one shape on several seeds; the best peer is the one with the least median."""
    ours: list[float] = []
    plain: list[float] = []
    gaps: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in peers() if name not in slow}
    for seed in range(seeds):
        X, y = two_clouds(n, r, distance, seed)
        ours.append(_best(lambda X=X, y=y: gaps.append(Automatic(tol=TOL).solve(X, y, C).gap)))
        plain.append(_best(lambda X=X, y=y: Automatic(tol=TOL, compiled=False).solve(X, y, C)))
        for name, found in theirs.items():
            if found and max(found) > ONCE:
                continue
            fit = peers()[name]
            once = cpu(lambda X=X, y=y, fit=fit: fit(X, y, C))
            again = once if once > 1 else _best(lambda X=X, y=y, fit=fit: fit(X, y, C))
            found.append(again)
            if once > PATIENCE:
                slow.add(name)
    full = {name: Times(tuple(found)) for name, found in theirs.items() if found}
    best = min(full, key=lambda name: full[name].median)
    others = ", ".join(
        f"{name} {found.median:.3g} s" for name, found in full.items() if name != best
    )
    return Line(
        f"one problem, {kind}, C = {C:g}, n = {n}, r = {r} (gap <= {max(gaps):.0e}; NumPy alone "
        f"{Times(tuple(plain)).median:.3g} s)",
        Times(tuple(ours)),
        f"{best}: {full[best]}" + (f" ({others})" if others else ""),
        ratio_text(Times(tuple(ours)), full[best]),
        bar if distance < 1 else ">= 1",
    )


def peers() -> dict[str, Peer]:
    """Return what is installed."""
    found: dict[str, Peer] = {
        "SVC(linear)": lambda X, y, C: SVC(kernel="linear", C=C).fit(X, y),
        "LinearSVC": lambda X, y, C: LinearSVC(
            C=C, loss="hinge", intercept_scaling=100, max_iter=10_000
        ).fit(X, y),
    }
    if find_spec("sklearnex"):
        import sklearnex.svm

        found["sklearnex"] = lambda X, y, C: sklearnex.svm.SVC(kernel="linear", C=C).fit(X, y)
    if find_spec("thundersvm"):
        try:
            import thundersvm
        except Exception:  # a build that does not fit this machine
            return found
        found["ThunderSVM"] = lambda X, y, C: thundersvm.SVC(
            kernel="linear", C=C, n_jobs=1, max_mem_size=1024
        ).fit(X, y)
    return found


def million(quick: bool) -> Iterator[Line]:
    """A million rows in units of one pass of X @ w."""
    n = 200_000 if quick else 1_000_000
    for kind, distance in [("overlapping", 0.7), ("apart (3)", 1.5), ("apart (6)", 3.0)]:
        X, y = two_clouds(n, 20, distance, 0)
        w = np.ones(20)
        for what, fit in (
            ("one problem", lambda X, y: Automatic(tol=TOL).solve(X, y, 100.0).gap),
            ("MMDA(1)", lambda X, y: MMDA(1, C=100.0, tol=TOL).fit(X, y).gap_[0]),
        ):
            gaps: list[float] = []
            passes, ours = [], []
            for _ in range(3 if quick else REPEATS):
                passes.append(cpu(lambda X=X, w=w: [X @ w for _ in range(5)]) / 5)
                ours.append(cpu(lambda X=X, y=y, fit=fit, gaps=gaps: gaps.append(fit(X, y))))
            yield Line(
                f"{what}, {kind}, C = 100, {n:,} x 20 (gap <= {max(gaps):.0e})",
                Times(tuple(ours)),
                f"one pass of X @ w: {Times(tuple(passes))}",
                f"{np.median(ours) / np.median(passes):.3g} passes "
                f"({min(ours) / max(passes):.3g} to {max(ours) / min(passes):.3g})",
                "<= 60 passes",
            )


def high_rank(quick: bool) -> Iterator[Line]:
    """Five hundred landmarks of an rbf kernel against SVC with the kernel given."""
    X, y = make_classification(
        5000, 20, n_informative=10, n_redundant=4, flip_y=0.05, random_state=0
    )
    Z = Nystroem(gamma=1 / 40, n_components=500, random_state=0).fit_transform(scale(X))
    Z -= Z.mean(axis=0)
    y = np.where(y > 0, 1, -1)
    K = Z @ Z.T
    for C, needed in [(1.0, ">= 1"), (100.0, ">= 2")]:
        gaps: list[float] = []
        ours = Times(
            tuple(
                cpu(lambda C=C, gaps=gaps: gaps.append(Automatic(tol=TOL).solve(Z, y, C).gap))
                for _ in range(2 if quick else REPEATS)
            )
        )
        theirs = Times(
            tuple(
                cpu(lambda C=C: SVC(kernel="precomputed", C=C).fit(K, y))
                for _ in range(2 if quick else REPEATS)
            )
        )
        work = f"one problem, rank 500, n = 5000, C = {C:g} (gap <= {max(gaps):.0e})"
        yield Line(work, ours, f"SVC(precomputed): {theirs}", ratio_text(ours, theirs), needed)


def growth(quick: bool) -> Iterator[Line]:
    """Time of whole fits at ten times the rows."""
    small, large = (30_000, 300_000) if quick else (100_000, 1_000_000)
    models = {
        "MMDA(2), C = 1": MMDA(2, C=1.0, tol=TOL),
        'LSVA(2, graph="within"), C = 1': LSVA(2, C=1.0, graph="within", tol=TOL),
        'LSVA(2, graph="anchors"), C = 1': LSVA(2, C=1.0, graph="anchors", tol=TOL),
    }
    for name, model in models.items():
        times = []
        for n in (small, large):
            X, y = three_clouds(n, 20, 0)
            repeats = 1 if quick else REPEATS
            times.append(
                Times(tuple(cpu(lambda X=X, y=y, m=model: m.fit(X, y)) for _ in range(repeats)))
            )
        ratio = times[1].median / times[0].median
        yield Line(
            f"{name}, 3 classes, {large:,} x 20 rows against {small:,}",
            times[1],
            f"the smaller: {times[0]}",
            f"{ratio:.3g}x for 10x the rows",
            "<= 11x",
        )


def _best(work: Callable[[], object]) -> float:
    """Return the least CPU seconds of three calls, after one that is not counted."""
    work()
    return min(cpu(work) for _ in range(3))


def _call(work: Callable[[], object]) -> Callable[[], object]:
    return work


if __name__ == "__main__":
    main()
