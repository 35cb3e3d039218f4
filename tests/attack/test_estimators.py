"""An attack on every estimator: a table of hostile cases, and what may come of each.

A case ends in a finite answer or in a refusal that says what was got: an error of marginfold, or
the ValueError or TypeError of scikit-learn's own validation.  It never ends in another error, in a
warning of another package, in NaN, or in an estimator that a failed fit has changed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from attack.outcomes import Case, open_ones, outcome
from bad_data import BAD_LABELS, BAD_ROWS, N, X, Y, changed
from estimator_families import EVERY_ESTIMATOR
from score_card import OPEN

from marginfold import (
    GESVC,
    LDA,
    LSVA,
    ExactKernel,
    LapSVC,
    LowRankKernel,
    NeighborGraph,
    PathSearchCV,
    PrecomputedGraph,
    SubspaceSearchCV,
)

GIVEN = (X, Y)
"""What every estimator is fitted on before it meets a case."""

ATTACKED = {
    **{cls.__name__: cls() for cls in EVERY_ESTIMATOR},
    "SubspaceSearchCV(LSVA)": SubspaceSearchCV(LSVA(2), cv=2),
    "SubspaceSearchCV(LDA)": SubspaceSearchCV(LDA(1), cv=2, n_neighbors=[1, 3]),
    "PathSearchCV(GESVC)": PathSearchCV(GESVC(), C=[0.1, 1.0], cv=2),
    "PathSearchCV(LapSVC)": PathSearchCV(LapSVC(), cv=2),
}
WITH_KERNELS = {
    f"{name}({kernel})": estimator.__class__(kernel=kernel)
    for name, estimator in ATTACKED.items()
    if "kernel" in estimator.get_params()
    for kernel in ("linear", "rbf", "poly", "sigmoid", "cosine", "laplacian")
}

TEXTS = np.array(["left", "right"], dtype=object)[Y]
ROWS = np.arange(N)
SYMMETRIC = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
FRAME = pd.DataFrame(X, columns=list("abcd"))
SIZES = (1e80, 1e149, 1e155, 1e160, 1e300)


def lopsided(A, B):
    """Return a kernel that is not symmetric."""
    A, B = np.asarray(A), np.asarray(B)
    return A @ B.T + 0.3 * (A[:, :1] - B[:, 0])


def not_finite(A, B):
    """Return what is no kernel at all."""
    return np.full((A.shape[0], B.shape[0]), np.nan)


DATA = {
    **{name: Case(*parts[:3]) for name, parts in {**BAD_ROWS, **BAD_LABELS}.items()},
    "good rows": Case(X, Y),
    "a number as weight": Case(X, Y, 2.0),
    "a complex number as weight": Case(X, Y, 2.0 + 1j),
    "complex weights": Case(X, Y, np.ones(N) + 1j),
    "None as a label": Case(X, changed(TEXTS, 3, "x")[:], None),
    "a missing text": Case(X, np.where(ROWS == 3, None, TEXTS)),
    "a missing number": Case(X, np.where(ROWS == 3, None, Y.astype(object))),
    "pandas.NA among labels": Case(X, pd.Series(Y).astype("Int64").mask(ROWS == 3)),
    "labels of two types": Case(X, np.where(ROWS < 10, "a", Y.astype(object))),
    "labels that do not compare": Case(X, np.where(ROWS < 10, 1j, Y.astype(object))),
    "every label another text": Case(X, np.array([f"t{i}" for i in ROWS])),
    "every label another number": Case(X, ROWS),
    "many texts": Case(np.vstack([X, X]), np.array([f"t{i % 25}" for i in range(2 * N)])),
    "three labels around 0": Case(X, ROWS % 3 - 1),
    "a label is a list": Case(X, [[0]] * 10 + [[1, 2]] * 10),
    "dates as labels": Case(X, np.datetime64("2020-01-01") + Y),
    "truth values as labels": Case(X, Y == 1),
    "a pyarrow table": Case(pa.Table.from_pandas(FRAME), Y),
    "a pyarrow table with text": Case(pa.Table.from_pandas(FRAME.assign(b="red")), Y),
    "pyarrow labels": Case(X, pa.array(Y)),
    "a list of lists": Case(X.tolist(), Y.tolist()),
    "ragged lists": Case([[1.0], [1.0, 2.0]] * 10, Y),
    "a dictionary": Case({"a": X[:, 0]}, Y),
    "a number as X": Case(3.0, Y),
    "None as X": Case(None, Y),
    "text as X": Case("rows", Y),
    "dates as X": Case(np.datetime64("2020-01-01") + ROWS[:, None], Y),
    "sparse rows": Case(sp.csr_array(X), Y),
    "sparse rows in another format": Case(sp.coo_array(X), Y),
    "sparse rows without an entry": Case(sp.csr_array((N, 4)), Y),
    "object array of numbers": Case(X.astype(object), Y),
    "truth values as X": Case(X > 0, Y),
    "bytes as X": Case((X > 0).astype(np.uint8), Y),
    "half precision": Case(X.astype(np.float16), Y),
    "columns with equal names": Case(FRAME.set_axis(list("aabb"), axis=1), Y),
    "nullable columns": Case(FRAME.astype("Float64").mask(FRAME > 2), Y),
    "two rows": Case(X[[0, 19]], Y[[0, 19]]),
    "equal rows": Case(np.ones((N, 4)), Y),
    "entries near the largest": Case(X * 1e307, Y),
    "entries near the smallest": Case(X * 5e-324, Y),
    "one huge entry": Case(changed(X, (3, 1), 1e149), Y),
}
AT_USE = {
    **{f"new rows of size {size:g}": Case(X, Y, new=X * size) for size in SIZES},
    **{f"one new entry {size:g}": Case(X, Y, new=changed(X, (3, 1), size)) for size in SIZES},
    **{f"new negative entry {size:g}": Case(X, Y, new=changed(X, (3, 1), -size)) for size in SIZES},
    "new sparse entry 1e+160": Case(X, Y, new=sp.csr_array(changed(X, (3, 1), 1e160))),
    "new rows with NaN": Case(X, Y, new=changed(X, (3, 1), np.nan)),
    "new rows with another width": Case(X, Y, new=X[:, :3]),
    "no new rows": Case(X, Y, new=X[:0]),
    "new pyarrow table": Case(FRAME, Y, new=pa.Table.from_pandas(FRAME)),
    "small rows, then large": Case(X * 1e-150, Y, new=X * 1e149),
    "large rows, then small": Case(X * 1e149, Y, new=X * 1e-150),
    "complex new rows": Case(X, Y, new=X * 1j),
}
PARAMETERS = {
    "a million million components": {"n_components": 10**12},
    "components beyond int64": {"n_components": 10**30},
    "a search up to 10**12 components": {"estimator__n_components": 10**12},
    "a search up to 10**30 components": {"estimator__n_components": 10**30},
    "a search with a kernel that is not square": {"estimator__kernel": "precomputed"},
    **{f"C={value:g}": {"C": value} for value in (1e-308, 1e-200, 1e200, 1e308)},
    **{f"ridge={value:g}": {"ridge": value} for value in (1e-308, 1e-200, 1e200, 1e308)},
    **{f"graph_weight={value:g}": {"graph_weight": value} for value in (1e-308, 1e200, 1e308)},
    **{f"tol={value:g}": {"tol": value} for value in (1e-308, 1.0, 5.0, 1e308)},
    **{f"shrinkage={value}": {"shrinkage": value} for value in (1e-308, 1.0, 2.0, "much")},
    **{f"sharpness={value:g}": {"sharpness": value} for value in (1e-308, 1e308)},
    "refit=nonsense": {"refit": "nonsense"},
    "refit=3": {"refit": 3},
    "refit=None": {"refit": None},
    "refit=[]": {"refit": []},
    "cv=1": {"cv": 1},
    "cv=1000": {"cv": 1000},
    "cv=text": {"cv": "five"},
    "scoring=nonsense": {"scoring": "nonsense"},
    "n_jobs=text": {"n_jobs": "all"},
    "n_neighbors=10**12": {"n_neighbors": 10**12},
    "classifier=3": {"classifier": 3},
    "lopsided kernel": {"kernel": lopsided},
    "lopsided exact kernel": {"kernel": ExactKernel(lopsided)},
    "lopsided exact kernel, rank 3": {"kernel": ExactKernel(lopsided, rank=3)},
    "lopsided low-rank kernel": {"kernel": LowRankKernel(lopsided)},
    "kernel of NaN": {"kernel": not_finite},
    "kernel without arguments": {"kernel": lambda: 3},
    "kernel that raises": {"kernel": lambda A, B: A["key"]},
    "precomputed kernel that is not square": {"kernel": "precomputed"},
    "gamma=1e308": {"kernel": ExactKernel("rbf", gamma=1e308)},
    "gamma=1e-308": {"kernel": ExactKernel("rbf", gamma=1e-308)},
    "poly of gamma 1e308": {"kernel": ExactKernel("poly", gamma=1e308)},
    "poly of degree 10000": {"kernel": ExactKernel("poly", degree=10**4)},
    "coef0=1e308": {"kernel": ExactKernel("poly", coef0=1e308)},
    "rank beyond int64": {"kernel": ExactKernel("rbf", rank=10**30)},
    "low rank beyond int64": {"kernel": LowRankKernel("rbf", rank=10**30)},
    "10**12 neighbors": {"graph": NeighborGraph(10**12)},
    "neighbors beyond int64": {"graph": NeighborGraph(10**30)},
    "width=1e308": {"graph": NeighborGraph(width=1e308)},
    "width=1e-308": {"graph": NeighborGraph(width=1e-308)},
    "complex graph": {"graph": PrecomputedGraph(SYMMETRIC * (1 + 1j))},
    "complex sparse graph": {"graph": PrecomputedGraph(sp.csr_array(SYMMETRIC * 1j))},
    "graph of text": {"graph": PrecomputedGraph(np.full((N, N), "near"))},
    "graph None": {"graph": PrecomputedGraph(None)},
    "graph of weights 1e308": {"graph": PrecomputedGraph(SYMMETRIC * 1e308)},
    "graph of weights 1e-308": {"graph": PrecomputedGraph(SYMMETRIC * 1e-308)},
    "factor 1e308": {"graph": 1e308 * NeighborGraph(3)},
}
CASES = {
    "rows, labels and weights": DATA,
    "new rows": AT_USE,
    "parameters": {name: Case(X, Y, parameters=values) for name, values in PARAMETERS.items()},
}


def applicable(estimator):
    """Return the cases that an estimator can meet, by kind and name."""
    return {
        (kind, name): case
        for kind, cases in CASES.items()
        for name, case in cases.items()
        if case.applies_to(estimator)
    }


def check_all_cases(estimator, card, kernels=""):
    """Note how every case ends, and check that none is open."""
    found = {}
    for (kind, name), case in applicable(estimator).items():
        found[name] = outcome(estimator, case, GIVEN)
        card.add(kind + kernels, OPEN if found[name].startswith(OPEN) else found[name])
    assert not any(what.startswith(OPEN) for what in found.values()), open_ones(found)


@pytest.mark.attack
@pytest.mark.parametrize("name", ATTACKED)
def test_every_case_ends_in_a_finite_answer_or_in_a_refusal_that_explains_itself(name, card):
    check_all_cases(ATTACKED[name], card)


@pytest.mark.torture
@pytest.mark.parametrize("name", WITH_KERNELS)
def test_every_case_ends_well_with_every_kernel(name, card):
    check_all_cases(WITH_KERNELS[name], card, ", six kernels")


def test_the_page_says_how_many_cases_there_are():
    """Its score card has a line for each kind, and the number tried is the last one of it."""
    page = (Path(__file__).parents[2] / "docs" / "hardening.md").read_text(encoding="utf-8")
    for suffix, estimators in (("", ATTACKED), (", six kernels", WITH_KERNELS)):
        tried = Counter(kind for one in estimators.values() for kind, _ in applicable(one))
        for kind, count in tried.items():
            (line,) = (line for line in page.splitlines() if line.startswith(f"{kind}{suffix}  "))
            assert int(line.split()[-1]) == count, kind
