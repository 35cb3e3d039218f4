"""How much work fixed problems and paths take: a lost start or a useless attempt shows here.

Work is counted, not timed: an iteration on n rows with r features costs ``n (r + 1)^2``
multiplications, a pass over the rows ``n (r + 1)``.  The unit is one iteration on all rows, so that
12 means as much as a plain solution in 12 iterations.  The counts are those of NumPy's kernels and
are the same on every machine up to rounding in the last iterations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from marginfold import LSVA
from marginfold.linalg.tall import LocalBlocks, SharedRows
from marginfold.svm import Automatic, SVMBatch, interior_point
from marginfold.svm.problem import Kernels

SLACK = 1.25
"""How many times the work that was measured may be needed."""


@dataclass
class Work:
    """Multiplications so far."""

    total: float = 0.0

    def iterations(self, scaled, n_iter):
        self.total += scaled.columns.size * len(scaled.columns) * n_iter

    def passes(self, n_rows, n_columns, count=1):
        self.total += n_rows * (n_columns + 1.0) * count

    def on_all_rows(self, X):
        """Return the work in iterations on all rows of X."""
        n, r = X.shape
        return self.total / (n * (r + 1.0) ** 2)


@pytest.fixture
def work(monkeypatch):
    """Count what goes through the seam of the kernels, and the passes over blocks of rows."""
    counted, kernels, run = Work(), interior_point.NUMPY, LocalBlocks.map

    def iterate(scaled, state, ready, steps):
        before = state.tally[0] - (state.tally[3] != 0)  # the start is a Newton system, too
        ended = kernels.iterate(scaled, state, ready, steps)
        counted.iterations(scaled, state.tally[0] - before)
        return ended

    def solve_equations(problem, free, upper):
        counted.passes(len(problem.costs), len(problem.scale))
        return kernels.solve_equations(problem, free, upper)

    def evaluate(problem, coef, dual, bound):
        counted.passes(len(problem.costs), len(problem.scale))
        return kernels.evaluate(problem, coef, dual, bound)

    def over_blocks(blocks, function, *args):
        counted.passes(blocks.n_rows, blocks.n_columns)
        return run(blocks, function, *args)

    counting = Kernels(iterate, solve_equations, kernels.dual_bound, evaluate)
    monkeypatch.setattr(interior_point, "NUMPY", counting)
    monkeypatch.setattr(LocalBlocks, "map", over_blocks)
    return counted


def clouds(n, r, apart, *, share=0.5, seed=0):
    rng = np.random.default_rng([55, seed])
    y = np.where(rng.random(n) < share, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = rng.standard_normal((n, r))
    X[:, 0] += apart * y
    return X, y


PROBLEMS = {  # rows and labels, cost, measured work
    "300 x 20": (clouds(300, 20, 1.0), 1.0, 12.0),
    "1000 x 20, large costs": (clouds(1000, 20, 1.0), 100.0, 15.0),
    "1000 x 40, apart": (clouds(1000, 40, 6.0), 1.0, 3.7),
    "5000 x 20": (clouds(5000, 20, 1.0), 1.0, 18.0),
    "5000 x 20, apart": (clouds(5000, 20, 6.0), 100.0, 0.41),
    "5000 x 10, one to fifty": (clouds(5000, 10, 1.0, share=0.02), 10.0, 30.0),
    "10000 x 20, apart": (clouds(10_000, 20, 6.0), 1.0, 0.21),
    "10000 x 20, large costs": (clouds(10_000, 20, 1.0), 100.0, 18.0),
    "20000 x 5, tiny costs": (clouds(20_000, 5, 1.0), 1e-4, 11.0),
    "40000 x 10": (clouds(40_000, 10, 1.0), 1.0, 6.7),
    "40000 x 10, noise": (clouds(40_000, 10, 0.0), 1.0, 20.9),
    "100 x 90": (clouds(100, 90, 1.0), 1.0, 11.0),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_takes_no_more_work_than_it_did(name, work):
    (X, y), cost, measured = PROBLEMS[name]
    assert Automatic(compiled=False).solve(X, y, cost).converged
    assert work.on_all_rows(X) <= SLACK * measured


PATHS = {  # rows, features, cost, components, measured work
    "600 x 8": (600, 8, 1.0, 3, 6.7),
    "3000 x 10, large costs": (3000, 10, 100.0, 2, 2.0),
    "20000 x 40": (20_000, 40, 100.0, 2, 2.4),
    "50000 x 20": (50_000, 20, 10.0, 2, 2.6),
}


@pytest.mark.parametrize("name", PATHS)
def test_a_path_takes_no_more_work_than_it_did(name, work):
    """Ten graph weights, some components: each problem begins where the last one ended.

    Work for each problem.  Alone, they take 11, 17, 21 and 23; if the first problem of a path is
    forgotten where screening fails, the last path takes 20.
    """
    n, r, cost, n_components, measured = PATHS[name]
    X, y = clouds(n, r, 0.5, seed=1)
    X[:, 1:4] += 0.25 * y[:, None]
    solver = Automatic(compiled=False)
    model = LSVA(n_components, C=cost, graph="within", solver=solver)
    weights = np.logspace(-2, 2, 10)
    fits = model.fit_path(X, y, graph_weight=weights)
    assert max(fit.gap_.max() for fit in fits) <= solver.tol
    assert work.on_all_rows(X) / (len(weights) * n_components) <= SLACK * measured


def test_a_chain_of_rows_that_crowd_at_the_margin_takes_no_more_work_than_it_did(work):
    """Tiny costs, one to four: the larger side is at the margin, and a wide zone would be all rows.

    Work for each problem; without screening 13.
    """
    X, y = clouds(3500, 4, 1.0, share=0.2)
    spectrum = np.array([0.1, 0.3, 0.6, 1.0])
    scale = 1.0 / np.sqrt(1.0 + np.logspace(-2, 1, 6)[:, None] * spectrum)
    signs, costs = np.tile(y, (6, 1)), np.full((6, len(y)), 1e-5)
    batch = SVMBatch(SharedRows(X), signs, costs, scale, np.zeros((6, 4, 0)))
    assert all(solution.converged for solution in Automatic(compiled=False).solve_batch(batch))
    assert work.on_all_rows(X) / 6 <= SLACK * 4.4
