"""The estimators by what they do, for the tests of what all of them promise."""

from __future__ import annotations

import numpy as np
import pytest

from marginfold import (
    GEPSVC,
    GESVC,
    KDA,
    LDA,
    LPP,
    LSVA,
    MMDA,
    MRGEPSVC,
    NPE,
    SVMPCA,
    WSVDA,
    GraphEmbedding,
    LaplacianEigenmaps,
    LapSVC,
    LocallyLinearEmbedding,
    MarginMap,
    TwinSVC,
)

SUBSPACES = [MMDA, LSVA, WSVDA]
MACHINES = [GESVC, LapSVC]
PLANES = [GEPSVC, MRGEPSVC, TwinSVC]
DISCRIMINANTS = [LDA, KDA]
UNSUPERVISED = [SVMPCA, GraphEmbedding, LPP, NPE]
DIRECT = [LaplacianEigenmaps, LocallyLinearEmbedding]

EMBEDDINGS = [*DISCRIMINANTS, *UNSUPERVISED]
TRANSFORMERS = [*SUBSPACES, *EMBEDDINGS]
CLASSIFIERS = [*MACHINES, *PLANES]
SUPERVISED = [*SUBSPACES, *CLASSIFIERS, *DISCRIMINANTS]
ESTIMATORS = [*TRANSFORMERS, *CLASSIFIERS]
"""All that have a kernel."""

EVERY_ESTIMATOR = [*ESTIMATORS, *DIRECT, MarginMap]
"""All that are public."""


def every(values):
    return pytest.mark.parametrize("cls", values, ids=lambda cls: cls.__name__)


def cases(table):
    return pytest.mark.parametrize("case", table, ids=list(table))


def having(*names):
    """Return the estimators that have all these parameters."""
    return [cls for cls in ESTIMATORS if set(names) <= cls().get_params().keys()]


def where_it_applies(table, estimators=ESTIMATORS):
    """Every estimator with every case (parameters first) whose parameters it has."""
    pairs = [
        pytest.param(cls, case, id=f"{case}-{cls.__name__}")
        for case, (parameters, *_) in table.items()
        for cls in estimators
        if parameters.keys() <= cls().get_params().keys()
    ]
    return pytest.mark.parametrize(("cls", "case"), pairs)


def images(estimator, rows):
    """Return what an estimator says about rows: scores of classes, or coordinates."""
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(rows)
    return np.asarray(estimator.transform(rows))


def state(estimator):
    """Return everything that a fit may set."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}
