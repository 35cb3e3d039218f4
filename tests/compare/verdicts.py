"""Comparisons with errors made for the purpose: what the tests of words and reports start from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from marginfold.compare.comparison import conclude
from marginfold.compare.measures import AUC
from marginfold.compare.runs import Comparison
from marginfold.compare.table import Source
from marginfold.protocols.records import Result


def blobs(n, d, labels, seed=0):
    """A table of normal rows about a centre for each class."""
    rng = np.random.default_rng(seed)
    _, codes = np.unique(labels, return_inverse=True)
    X = rng.standard_normal((n, d)) + 2.0 * rng.standard_normal((codes.max() + 1, d))[codes]
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]).assign(kind=labels)


def saved(frame, folder, name="t.csv", **options):
    (folder / name).parent.mkdir(exist_ok=True)
    frame.to_csv(folder / name, index=False)
    return Source(str(folder / name), "kind", **options)


def around(mean, spread=0.02, seed=0):
    """Ten errors with exactly this mean."""
    noise = np.random.default_rng(seed).standard_normal(10)
    return mean + spread * (noise - noise.mean())


def recorded(source, store, errors, n_folds=5, n_repeats=2, left=(), areas=None):
    """A comparison with records of such errors and areas; a text is the reason of a failure."""
    made = Comparison.of(source, list(errors), n_folds=n_folds, n_repeats=n_repeats)
    for task in made.fold_tasks():
        value = errors.get(task.method, 0.9)  # the largest class is always there
        value = value if np.isscalar(value) else value[task.seed * n_folds + task.fold]
        if value is None:
            continue
        if isinstance(value, str):
            store.write(task, [Result("none", None, reason=value)], seconds=0.1, status="failed")
        else:
            area = (areas or {}).get(task.method)
            further = (
                [] if area is None else [Result(AUC, float(area[task.seed * n_folds + task.fold]))]
            )
            store.write(task, [Result("error", float(value)), *further], seconds=0.1)
    return dataclasses.replace(made, left_out=dict(left))


def verdict_of(source, store, errors, n_folds=5, n_repeats=2, left=(), stopped=None, areas=None):
    """What is concluded from such errors, and its sentences as one text."""
    made = recorded(source, store, errors, n_folds, n_repeats, left, areas)
    verdict = conclude(made, store, stopped=stopped)
    return verdict, " ".join(verdict.sentences)
