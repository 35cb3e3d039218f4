"""C="auto" is three over the mean square of the labelled rows in the metric of the margin."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_families import SUBSPACES
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.decomposition import PCA

from marginfold import (
    LSVA,
    MMDA,
    WSVDA,
    Linear,
    NeighborGraph,
    SubspaceSearchCV,
    TotalGraph,
    WithinClassGraph,
)
from marginfold.errors import InvalidParameterError, NoDirectionError
from marginfold.estimators.paths import path

RNG = np.random.default_rng(1)
Y = np.arange(90) % 3
X = RNG.standard_normal((90, 6)) + 1.5 * RNG.standard_normal((3, 6))[Y]
X = X * [1.0, 5.0, 0.3, 2.0, 1.0, 1.0] + 40.0
FEW = np.where(np.arange(90) % 5 == 4, -1, Y)
WEIGHTS = RNG.random(90)

MODELS = {
    "MMDA": MMDA(3, C="auto"),
    "MMDA filled up": MMDA(4, C="auto", tasks="one_vs_rest", on_exhausted="pca"),
    "MMDA about 0": MMDA(3, C="auto", kernel=Linear(center=False)),
    "LSVA": LSVA(3, C="auto", graph=NeighborGraph(4), graph_weight=2.0),
    "LSVA about 0": LSVA(3, C="auto", graph=TotalGraph(), kernel=Linear(center=False)),
    "LSVA rbf": LSVA(3, C="auto", kernel="rbf", graph=WithinClassGraph()),
    "LSVA of a transformer": LSVA(3, C="auto", kernel=PCA(3), graph=NeighborGraph()),
    "WSVDA": WSVDA(3, C="auto", graph=WithinClassGraph()),
}
LINEAR = [name for name, model in MODELS.items() if model.kernel == "linear"]


def literal_cost(model, labels, weights):
    """Return 3 / mean z'A^-1 z, z the labelled rows about their mean, with A by its definition."""
    Z = model.feature_map_.transform(X)
    A = np.eye(Z.shape[1])
    if not isinstance(model, MMDA):
        L = model.graph.build(X, labels, unlabeled=-1, sample_weight=weights)
        M, total = L.scatter(Z), (Z.T * weights) @ Z
        if isinstance(model, WSVDA):
            A = M + model.ridge * np.trace(M) / len(M) * A
        else:
            A = A + model.graph_weight * np.trace(total) / np.trace(M @ total) * M
    known = labels != -1
    Z, weights = Z[known], weights[known]
    Z = Z - np.average(Z, axis=0, weights=weights)
    squares = np.einsum("ij,ij->i", Z, np.linalg.solve(A, Z.T).T)
    return 3 / np.average(squares, weights=weights)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("labels", [Y, FEW], ids=["all labelled", "some"])
@pytest.mark.parametrize("weights", [np.ones(90), WEIGHTS], ids=["equal", "weights"])
def test_the_formula_holds(name, labels, weights):
    model = clone(MODELS[name]).set_params(unlabeled=-1).fit(X, labels, sample_weight=weights)
    assert_allclose(model.C_, literal_cost(model, labels, weights), rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_the_cost_is_used_and_told(name):
    automatic = clone(MODELS[name]).fit(X, Y)
    given = clone(MODELS[name]).set_params(C=automatic.C_).fit(X, Y)
    assert given.C_ == automatic.C_
    assert_allclose(given.transform(X), automatic.transform(X), rtol=0, atol=1e-12)
    assert automatic.C == "auto"


@pytest.mark.parametrize("name", [name for name in MODELS if "transformer" not in name])
def test_weights_are_copies(name):
    counts = np.arange(90) % 4
    weighted = clone(MODELS[name]).fit(X, Y, sample_weight=counts)
    copied = clone(MODELS[name]).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts))
    assert_allclose(weighted.C_, copied.C_, rtol=1e-9)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("unit", [2.0**-40, 8.0])
def test_units_and_places_do_not_matter(name, unit):
    """Only the columns' common unit: each column's own changes distances and margins."""
    plain = clone(MODELS[name]).fit(X, Y)
    moved = clone(MODELS[name]).fit(unit * (X - 40.0), Y)
    assert_allclose(moved.transform(unit * (X - 40.0)), unit * plain.transform(X), rtol=1e-6)
    assert_allclose(moved.gain_, plain.gain_, rtol=1e-7)


@pytest.mark.parametrize("name", LINEAR)
def test_rotations_do_not_matter(name):
    turn = np.linalg.qr(np.random.default_rng(5).standard_normal((6, 6)))[0]
    plain, turned = clone(MODELS[name]).fit(X, Y), clone(MODELS[name]).fit(X @ turn, Y)
    assert_allclose(turned.C_, plain.C_, rtol=1e-9)


def test_each_member_of_a_path_has_the_cost_of_its_own_metric():
    members = path(LSVA(2, C="auto"), X, Y, graph_weight=[0.0, 1.0, 10.0])
    for member in members:
        alone = LSVA(2, C="auto", graph_weight=member.graph_weight).fit(X, Y)
        assert_allclose(member.C_, alone.C_, rtol=1e-12)
        assert_allclose(member.transform(X), alone.transform(X), atol=1e-9)
    assert_allclose(members[0].C_, MMDA(2, C="auto").fit(X, Y).C_, rtol=1e-9)
    assert members[2].C_ > members[1].C_ > members[0].C_  # a heavier metric makes rows shorter


def test_costs_that_are_given_are_taken_instead():
    members = path(LSVA(2, C="auto"), X, Y, C=[0.5, 2])
    assert [(member.C, member.C_) for member in members] == [(0.5, 0.5), (2, 2.0)]
    search = SubspaceSearchCV(LSVA(2, C="auto"), C=[0.5], cv=2).fit(X, Y)
    assert search.best_params_["C"] == 0.5


def test_a_search_over_weights_leaves_the_cost_automatic():
    search = SubspaceSearchCV(LSVA(2, C="auto"), graph_weight=[1.0], cv=2).fit(X, Y)
    assert search.best_estimator_[0].C_ == LSVA(2, C="auto").fit(X, Y).C_


def test_copies_of_one_row_have_no_direction():
    with pytest.raises(NoDirectionError):
        MMDA(1, C="auto").fit(np.ones((6, 2)), [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("cls", SUBSPACES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("C", ["scale", 0.0, None])
def test_an_error_says_what_it_may_be(cls, C):
    with pytest.raises(InvalidParameterError) as caught:
        cls(C=C).fit(X, Y)
    expected = f"{cls.__name__}: C must be 'auto' or a finite number > 0 and < 1e+150; got {C!r}."
    assert str(caught.value) == expected
