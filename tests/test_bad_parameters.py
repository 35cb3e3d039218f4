"""Bad parameters, kernels and graphs: an `InvalidParameterError` that names what is wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from bad_data import K, N, X, Y, changed, refuse
from estimator_families import (
    DISCRIMINANTS,
    EMBEDDINGS,
    ESTIMATORS,
    MACHINES,
    PLANES,
    SUBSPACES,
    TRANSFORMERS,
    cases,
    every,
    having,
    images,
    where_it_applies,
)
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from marginfold import (
    KDA,
    LPP,
    MMDA,
    MRGEPSVC,
    NPE,
    AnchorGraph,
    BetweenClassGraph,
    ExactKernel,
    GraphEmbedding,
    InteriorPoint,
    Linear,
    LowRankKernel,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TotalGraph,
    TwinSVC,
    WithinClassGraph,
)
from marginfold.errors import (
    GraphError,
    InvalidInputError,
    InvalidParameterError,
    MarginfoldWarning,
    NoDirectionError,
)
from marginfold.feature_maps import Transformed

pytestmark = [
    pytest.mark.filterwarnings("error::RuntimeWarning", "error::DeprecationWarning"),
    pytest.mark.attack("misuse of estimators"),
]

FEATURE_MAPS = [
    Linear(),
    ExactKernel("rbf"),
    ExactKernel("poly"),
    LowRankKernel("rbf"),
    Transformed(PCA(2)),
]
GRAPHS = [
    NeighborGraph(3),
    NeighborGraph(3, within_class=True),
    WithinClassGraph(),
    BetweenClassGraph(),
    TotalGraph(),
    ReconstructionGraph(3),
    AnchorGraph(5),
    0.5 * NeighborGraph(3) + WithinClassGraph(),
]

# -------------------------------------------------------------------------------- the parameters

BAD_PARAMETERS = {
    "C negative": ({"C": -1.0}, "C must be.*a finite number > 0.*got -1"),
    "C zero": ({"C": 0}, "C must be.*> 0.*got 0"),
    "C NaN": ({"C": np.nan}, "C must be.*finite.*got nan"),
    "C infinite": ({"C": np.inf}, "C must be.*finite.*got inf"),
    "C text": ({"C": "1"}, "C must be.*number.*got '1'"),
    "C truth value": ({"C": True}, "C must be.*number.*got True"),
    "tol zero": ({"tol": 0.0}, "tol must be.*> 0.*got 0"),
    "tol text": ({"tol": "tight"}, "tol must be.*number.*got 'tight'"),
    "graph weight negative": ({"graph_weight": -0.1}, "graph_weight must be.*>= 0.*got -0.1"),
    "graph weight NaN": ({"graph_weight": np.nan}, "graph_weight must be.*finite.*got nan"),
    "normalize_graph": ({"normalize_graph": "yes"}, "normalize_graph must be True or False.*'yes'"),
    "ridge zero": ({"ridge": 0.0}, "ridge must be.*> 0.*got 0"),
    "ridge negative": ({"ridge": -1.0}, "ridge must be.*> 0.*got -1"),
    "tasks": ({"tasks": "pairs"}, "tasks must be one of 'auto', 'one_vs_rest'.*got 'pairs'"),
    "on_exhausted": ({"on_exhausted": "go"}, "on_exhausted must be one of 'stop', 'pca'; got 'go'"),
    "kernel text": ({"kernel": "rfb"}, "kernel must be one of linear, rbf.*got 'rfb'"),
    "kernel None": ({"kernel": None}, "kernel must be one of.*got None"),
    "kernel class": ({"kernel": ExactKernel}, "kernel must be one of.*got.*ExactKernel"),
    "kernel number": ({"kernel": 3}, "kernel must be one of.*got 3"),
    "inner kernel text": ({"kernel": ExactKernel("rfb")}, "kernel must be one of.*got 'rfb'"),
    "inner kernel array": ({"kernel": ExactKernel(K)}, "kernel must be one of"),
    "gamma zero": ({"kernel": ExactKernel(gamma=0.0)}, "gamma must be.*> 0.*got 0"),
    "gamma text": ({"kernel": ExactKernel(gamma="s")}, "gamma must be.*'scale', 'auto'.*got 's'"),
    "gamma None": ({"kernel": ExactKernel(gamma=None)}, "gamma must be.*'scale'.*got None"),
    "low rank": ({"kernel": LowRankKernel(rank=0)}, "rank must be.*whole number >= 1; got 0"),
    "low rank text": ({"kernel": LowRankKernel("rfb")}, "kernel must be one of.*got 'rfb'"),
    "low rank tol": ({"kernel": LowRankKernel(tol=2.0)}, "tol must be.*got 2"),
    "max_rank": ({"kernel": LowRankKernel(max_rank=1.5)}, "max_rank must be a whole.*got 1.5"),
    "degree": ({"kernel": ExactKernel("poly", degree=1.5)}, "degree must be a whole.*got 1.5"),
    "coef0": ({"kernel": ExactKernel("poly", coef0=np.nan)}, "coef0 must be a finite.*got nan"),
    "graph text": ({"graph": "kkn"}, "graph='kkn'.*one of 'knn'"),
    "graph number": ({"graph": 5}, "graph=5.*one of 'knn'"),
    "graph class": ({"graph": NeighborGraph}, "NeighborGraph.*needs one of 'knn'.*rule such as"),
    "negative factor": ({"graph": -1.0 * NeighborGraph()}, "NeighborGraph.*factor=-1.*>= 0"),
    "NaN factor": ({"graph": np.nan * NeighborGraph()}, "NeighborGraph.*factor=nan.*finite"),
    "no neighbors": ({"graph": NeighborGraph(0)}, "n_neighbors must be a whole number >= 1; got 0"),
    "half neighbors": ({"graph": NeighborGraph(2.5)}, "n_neighbors must be a whole.*got 2.5"),
    "heat width": ({"graph": NeighborGraph(width=0.0)}, "width must be.*'auto'.*> 0.*got 0"),
    "graph mode": ({"graph": NeighborGraph(mode="both")}, "mode must be.*'mutual'; got 'both'"),
    "no anchors": ({"graph": AnchorGraph(0)}, "n_anchors must be.*whole number >= 1; got 0"),
    "half anchors": ({"graph": AnchorGraph(2.5)}, "n_anchors must be.*whole.*got 2.5"),
    "anchor width": ({"graph": AnchorGraph(width=0.0)}, "width must be.*'auto'.*> 0.*got 0"),
    "lle ridge": ({"graph": ReconstructionGraph(reg=-1.0)}, "reg must be.*> 0.*got -1"),
    "sum with a text": (
        {"graph": (NeighborGraph() + TotalGraph()).set_params(second="within")},
        "SumGraph got 'within'.*graph rule",
    ),
    "weights of no class": ({"class_weight": {5: 2.0}}, "class_weight names 5.*classes"),
    "class weight negative": ({"class_weight": {0: -1.0}}, "class_weight.*> 0.*got {0: -1.0}"),
    "class weight zero": ({"class_weight": {0: 0.0}}, "class_weight.*> 0"),
    "class weight NaN": ({"class_weight": {0: np.nan}}, "class_weight.*finite"),
    "class weight text": ({"class_weight": {0: "heavy"}}, "class_weight.*'heavy'"),
    "class weight None": ({"class_weight": {0: None}}, "class_weight.*None"),
    "class weight list": ({"class_weight": [1.0, 2.0]}, r"class_weight must be None.*\[1.0, 2.0\]"),
    "class weight word": ({"class_weight": "balance"}, "class_weight must be.*got 'balance'"),
}


MACHINE_PARAMETERS = {
    "no components": ({"n_components": 0}, "n_components must be a whole number >= 1; got 0"),
    "half components": ({"n_components": 1.5}, "n_components must be a whole.*got 1.5"),
    "float components": ({"n_components": 2.0}, "n_components must be a whole.*got 2.0"),
    "None components": ({"n_components": None}, "n_components must be a whole.*got None"),
    "scaling": ({"scaling": "none"}, "scaling must be one of 'unit', 'margin'; got 'none'"),
    "solver text": ({"solver": "newton"}, "solver must be 'auto', 'interior_point'.*got 'newton'"),
    "solver None": ({"solver": None}, "solver must be 'auto', 'interior_point'.*got None"),
    "solver class": ({"solver": InteriorPoint}, "solver must be.*got.*InteriorPoint"),
    "graph None": ({"graph": None}, "graph=None.*one of 'knn'"),
}
"""Parameters whose range is another one in the eigenvalue family."""

EIGEN_PARAMETERS = {
    "C1 zero": ({"C1": 0}, "C1 must be a finite number > 0.*got 0"),
    "C1 None": ({"C1": None}, "C1 must be.*number > 0.*got None"),
    "C1 truth value": ({"C1": True}, "C1 must be.*got True"),
    "C1 array": ({"C1": np.ones(2)}, r"C1 must be.*got array\(\[1., 1.\]\)"),
    "C2 negative": ({"C2": -1.0}, "C2 must be.*None or a finite number > 0.*got -1"),
    "C2 NaN": ({"C2": np.nan}, "C2 must be.*finite.*got nan"),
    "C2 text": ({"C2": "C1"}, "C2 must be.*got 'C1'"),
    "loss": (
        {"loss": "squared_hinge"},
        "loss must be one of 'auto', 'hinge', 'least_squares'; got",
    ),
    "ridge NaN": ({"ridge": np.nan}, "ridge must be.*finite.*got nan"),
    "ridge infinite": ({"ridge": np.inf}, "ridge must be.*finite.*got inf"),
    "ridge text": ({"ridge": "small"}, "ridge must be.*number.*got 'small'"),
    "ridge truth value": ({"ridge": True}, "ridge must be.*number.*got True"),
    "ridge None": ({"ridge": None}, "ridge must be.*number.*got None"),
    "ridge complex": ({"ridge": 1j}, "ridge must be.*number.*got 1j"),
    "tikhonov": ({"tikhonov": "l2"}, "tikhonov must be one of 'rkhs', 'dual'; got 'l2'"),
    "tikhonov None": ({"tikhonov": None}, "tikhonov must be one of.*got None"),
    "normalize number": ({"normalize": 1}, "normalize must be True or False; got 1"),
    "normalize text": ({"normalize": "no"}, "normalize must be True or False; got 'no'"),
    "normalize None": ({"normalize": None}, "normalize must be True or False; got None"),
    "manifold": ({"manifold": "both"}, "manifold must be one of 'denominator', 'num.*got 'both'"),
    "graph weight text": ({"graph_weight": "1"}, "graph_weight must be.*number.*got '1'"),
    "graph weight None": ({"graph_weight": None}, "graph_weight must be.*number.*got None"),
    "shrinkage zero": ({"shrinkage": 0.0}, "shrinkage must be.*'auto'.*> 0.*got 0"),
    "shrinkage above 1": ({"shrinkage": 1.5}, "shrinkage must be.*< 1; got 1.5"),
    "shrinkage NaN": ({"shrinkage": np.nan}, "shrinkage must be.*got nan"),
    "shrinkage text": ({"shrinkage": "Auto"}, "shrinkage must be.*'auto'.*got 'Auto'"),
    "shrinkage None": ({"shrinkage": None}, "shrinkage must be.*got None"),
    "shrinkage truth value": ({"shrinkage": True}, "shrinkage must be.*got True"),
    "no components": ({"n_components": 0}, "n_components must be.*whole number >= 1; got 0"),
    "negative components": ({"n_components": -1}, "n_components must be.*whole.*got -1"),
    "half components": ({"n_components": 1.5}, "n_components must be.*whole.*got 1.5"),
    "float components": ({"n_components": 2.0}, "n_components must be.*whole.*got 2.0"),
    "NaN components": ({"n_components": np.nan}, "n_components must be.*whole.*got nan"),
    "text components": ({"n_components": "2"}, "n_components must be.*whole.*got '2'"),
    "true components": ({"n_components": True}, "n_components must be.*whole.*got True"),
    "array components": ({"n_components": np.array([2])}, r"n_components must be.*array\(\[2\]\)"),
    "scaling": ({"scaling": "none"}, "scaling must be one of 'penalty', 'intrinsic', 'unit'; got"),
    "scaling None": ({"scaling": None}, "scaling must be one of.*got None"),
    "bias number": ({"bias": 1}, "bias must be True or False; got 1"),
    "bias None": ({"bias": None}, "bias must be True or False; got None"),
    "solver text": ({"solver": "newton"}, "solver must be one of 'auto', 'primal', 'dual'; got"),
    "solver None": ({"solver": None}, "solver must be one of.*got None"),
    "primal kernel": ({"solver": "primal", "kernel": "rbf"}, "'primal' needs explicit.*'dual'"),
}
"""Messages of the parameter tables: they name the class too."""

RECONSTRUCTIONS = {
    "text": ({"reconstruct": "linera"}, "reconstruct must be None, 'linear'.*got 'linera'"),
    "number": ({"reconstruct": 3}, "reconstruct must be.*regressor.*got 3"),
    "truth value": ({"reconstruct": True}, "reconstruct must be.*got True"),
    "class": ({"reconstruct": Ridge}, "reconstruct must be.*such as KernelRidge.*got.*Ridge"),
    "transformer": ({"reconstruct": PCA(2)}, "reconstruct must be.*got PCA"),
    "array": ({"reconstruct": np.eye(4)}, "reconstruct must be.*got array"),
}


@where_it_applies(BAD_PARAMETERS)
def test_bad_parameters_are_refused(cls, case):
    parameters, message = BAD_PARAMETERS[case]
    refuse(cls(**parameters), X, Y, None, message, InvalidInputError)


@where_it_applies(MACHINE_PARAMETERS, [*SUBSPACES, *MACHINES])
def test_bad_parameters_of_machines_are_refused(cls, case):
    parameters, message = MACHINE_PARAMETERS[case]
    refuse(cls(**parameters), X, Y, None, message, InvalidInputError)


@where_it_applies(EIGEN_PARAMETERS, [*PLANES, *EMBEDDINGS])
def test_bad_parameters_of_eigenvalue_problems_are_refused_by_name(cls, case):
    parameters, message = EIGEN_PARAMETERS[case]
    refuse(cls(**parameters), X, Y, None, f"^{cls.__name__}: .*{message}", InvalidParameterError)


@where_it_applies(RECONSTRUCTIONS)
def test_bad_reconstructions_are_refused_by_name(cls, case):
    parameters, message = RECONSTRUCTIONS[case]
    refuse(cls(**parameters), X, Y, None, f"^{cls.__name__}: .*{message}", InvalidParameterError)


@every(TRANSFORMERS)
def test_reconstructions_that_the_kernel_does_not_have(cls):
    model = cls(kernel="precomputed", reconstruct="linear")
    refuse(model, K, Y, None, f"{cls.__name__}.*precomputed.*no rows", InvalidParameterError)
    for kernel in ("linear", "poly", "laplacian", PCA(2)):
        model = cls(kernel=kernel, reconstruct="fixed_point")
        refuse(model, X, Y, None, "'fixed_point' needs the rbf kernel", InvalidParameterError)


@every(DISCRIMINANTS)
def test_shrinkage_of_one_leaves_nothing(cls):
    refuse(cls(shrinkage=1.0), X, Y, None, f"{cls.__name__}: shrinkage", InvalidParameterError)


NUMPY_VALUES = {
    "ridge float32": ({"ridge": np.float32(0.125)},),
    "ridge integer": ({"ridge": np.int64(1)},),
    "components": ({"n_components": np.int32(1)},),
    "unsigned components": ({"n_components": np.uint8(1)},),
    "normalize": ({"normalize": np.bool_(False)},),
    "bias": ({"bias": np.bool_(False)},),
    "C1": ({"C1": np.int16(2)},),
    "C2": ({"C2": np.float32(0.5)},),
    "shrinkage": ({"shrinkage": np.float32(0.25)},),
    "tikhonov": ({"tikhonov": np.str_("dual")},),
    "loss": ({"loss": np.str_("least_squares")},),
    "manifold": ({"manifold": np.str_("numerator")},),
    "solver": ({"solver": np.str_("dual")},),
    "kernel": ({"kernel": np.str_("poly")},),
    "graph": ({"graph": np.str_("within")},),
    "penalty": ({"penalty": np.str_("total")},),
    "reconstruct": ({"reconstruct": np.str_("linear")},),
}


@where_it_applies(NUMPY_VALUES, [*PLANES, *EMBEDDINGS])
def test_numpy_values_are_as_good_as_those_of_python(cls, case):
    (values,) = NUMPY_VALUES[case]
    plain = {name: value.item() for name, value in values.items()}
    np.testing.assert_array_equal(
        images(cls(**values).fit(X, Y), X), images(cls(**plain).fit(X, Y), X)
    )


@every(SUBSPACES)
def test_choices_may_be_numpy_text(cls):
    """A grid written as an array hands over ``np.str_``."""
    grid = np.array(["margin", "unit"])
    assert cls(scaling=grid[0]).fit(X, Y).transform(X).shape == (N, 2)


def test_graph_choices_may_be_numpy_values():
    graph = NeighborGraph(weights=np.str_("binary"), within_class=np.bool_(True))
    assert graph.build(X, Y).n_edges > 0


# ------------------------------------------------------------------------------- the feature maps


class Broken(TransformerMixin, BaseEstimator):
    """A transformer whose output is wrong in a chosen way."""

    def __init__(self, way="nan"):
        self.way = way

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if self.way == "nan":
            return X * np.nan
        return X[:, 0] if self.way == "flat" else X[:3]


BAD_KERNELS = {
    "wrong shape": (lambda A, B: np.ones((3, 3)), r"\(3, 3\).*20 and 20 rows.*one value per pair"),
    "a number": (lambda A, B: 1.0, r"shape \(\).*one value per pair"),
    "NaN": (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN|finite"),
    "infinity": (lambda A, B: np.full((len(A), len(B)), np.inf), "infinit|finite"),
    "complex": (lambda A, B: (A @ B.T) * 1j, "[Cc]omplex"),
    "transformer to NaN": (Broken("nan"), "NaN|finite"),
    "transformer to one dimension": (Broken("flat"), "Broken|transformer|shape"),
    "transformer that drops rows": (Broken("short"), "Broken|transformer|shape"),
    "transformer that needs y": (MMDA(), "MMDA|requires y|without labels"),
    "discriminant that needs y": (KDA(), "KDA|requires y|without labels"),
    "clusters without a name": (KMeans, "kernel must be one of.*got.*KMeans"),
}


@every(ESTIMATORS)
@cases(BAD_KERNELS)
def test_a_kernel_that_returns_nonsense_is_blamed(cls, case):
    kernel, message = BAD_KERNELS[case]
    refuse(cls(kernel=kernel), X, Y, None, message)


@every(ESTIMATORS)
def test_a_precomputed_kernel_of_wrong_shape(cls):
    refuse(cls(kernel="precomputed"), K[:, :5], Y, None, r"square.*\(20, 5\)")
    fitted = cls(kernel="precomputed").fit(K, Y)
    with pytest.raises(ValueError, match=r"5 features.*expecting 20"):
        images(fitted, K[:3, :5])


@every(ESTIMATORS)
def test_a_precomputed_kernel_that_is_not_symmetric_is_noticed(cls):
    """Its symmetric part is another kernel: an error, or at least a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", MarginfoldWarning)
        with pytest.raises((ValueError, MarginfoldWarning), match="symmetric"):
            cls(kernel="precomputed").fit(np.triu(K), Y)


@every(SUBSPACES)
def test_a_negative_kernel_has_no_directions(cls):
    """All eigenvalues of -K are negative or rounding; rounding is not a coordinate."""
    with pytest.warns(MarginfoldWarning, match="not positive semi-definite"):
        refuse(cls(kernel="precomputed"), -K, Y, None, "0 of 2|no metric|semi-definite")


@every([*PLANES, *EMBEDDINGS])
@pytest.mark.filterwarnings("ignore:The kernel 'precomputed' is not positive semi-definite")
def test_a_negative_kernel_has_no_eigenvectors(cls):
    if cls in EMBEDDINGS:
        message = "no component|no scatter|edges"
        refuse(cls(kernel="precomputed"), -K, Y, None, message, InvalidInputError)
        return
    with pytest.warns(MarginfoldWarning, match="no class has a plane"):
        cls(kernel="precomputed").fit(-K, Y)


@pytest.mark.parametrize("feature_map", FEATURE_MAPS, ids=repr)
def test_feature_maps_at_use(feature_map):
    feature_map = clone(feature_map)
    with pytest.raises(NotFittedError):
        feature_map.transform(X)
    with pytest.raises(NotFittedError):
        feature_map.project(X, np.eye(4))
    feature_map.fit(X)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        feature_map.transform(X[:, :3])


@pytest.mark.parametrize("feature_map", FEATURE_MAPS, ids=repr)
def test_feature_maps_take_lists(feature_map):
    feature_map = clone(feature_map)
    expected = clone(feature_map).fit(X).transform(X)
    np.testing.assert_array_equal(feature_map.fit(X.tolist()).transform(X.tolist()), expected)


# ------------------------------------------------------------------------------------ the graphs


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: str(graph)[:40])
@pytest.mark.parametrize(
    ("rows", "y", "weights", "message"),
    [
        (changed(X, (3, 1), np.nan), Y, None, "NaN.*Impute"),
        (changed(X, (3, 1), np.inf), Y, None, "infinite.*Impute"),
        (X * 1e200, Y, None, r"overflowing.*1e\+150.*rescale"),
        (X[:, 0], Y, None, r"shape \(20,\).*rows and columns"),
        (X[:0], Y[:0], None, r"shape \(0, 4\).*rows and columns"),
        (X, Y[:5], None, r"y of shape \(5,\).*one label"),
        (X, np.c_[Y, Y], None, r"y of shape \(20, 2\).*one label"),
        (X, Y, np.ones(3), r"sample_weight has shape \(3,\).*20 rows"),
        (X, Y, -np.ones(N), "sample_weight.*negative"),
        (X, Y, np.full(N, np.nan), "sample_weight contains NaN"),
        (X, Y, np.zeros(N), "sample weights are zero"),
    ],
)
def test_graphs_refuse_bad_data(graph, rows, y, weights, message):
    with pytest.raises(GraphError, match=message):
        graph.build(rows, y, sample_weight=weights)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: str(graph)[:40])
def test_graphs_refuse_text(graph):
    with pytest.raises(ValueError, match=r"could not convert string to float.*red"):
        graph.build(changed(X, (3, 1), "red"), Y)


def test_graphs_add_and_scale_with_what_they_know_only():
    for operation in (
        lambda: NeighborGraph() + "within",
        lambda: NeighborGraph() + NeighborGraph,
        lambda: NeighborGraph() * "2",
        lambda: -NeighborGraph(),
        lambda: NeighborGraph() - TotalGraph(),
    ):
        with pytest.raises(TypeError):
            operation()


ADJACENCY = NeighborGraph(3, merge_duplicates=False).build(X).adjacency.toarray()


WITH_GRAPH = having("graph")
JOINING_ALL_ROWS = [cls for cls in WITH_GRAPH if cls not in (MRGEPSVC, TwinSVC)]


@every(JOINING_ALL_ROWS)
@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (ADJACENCY[:5, :5], r"\(5, 5\) for 20 rows.*cross-validation"),
        (ADJACENCY[:, :5], r"\(20, 5\) for 20 rows"),
        (np.triu(ADJACENCY), r"not symmetric.*\(W \+ W.T\) / 2"),
        (-ADJACENCY, "not positive semi-definite.*smallest eigenvalue is -"),
        (np.where(ADJACENCY > 0, np.nan, 0.0), "NaN or infinite weights"),
    ],
    ids=["too small", "not square", "asymmetric", "indefinite", "NaN"],
)
def test_a_precomputed_graph_that_does_not_fit(cls, adjacency, message):
    graph = PrecomputedGraph(adjacency)
    refuse(cls(graph=graph), X, Y, None, message, GraphError)
    if cls is LPP:
        for place in ("intrinsic", "penalty"):
            refuse(GraphEmbedding(**{place: graph}), X, Y, None, message, GraphError)


@every([MRGEPSVC, TwinSVC])
def test_a_precomputed_graph_does_not_fit_the_classes_of_planes(cls):
    refuse(cls(graph=PrecomputedGraph(ADJACENCY)), X, Y, None, r"\(20, 20\) for 10", GraphError)


@pytest.mark.parametrize("graph", [0.0 * NeighborGraph(3), PrecomputedGraph(0.0 * ADJACENCY)])
def test_graphs_without_edges(graph):
    refuse(GraphEmbedding(intrinsic=graph), X, None, None, "edges of positive weight", GraphError)
    refuse(
        GraphEmbedding(intrinsic=graph, penalty="total"),
        X,
        None,
        None,
        "intrinsic graph has no scatter",
        InvalidInputError,
    )
    refuse(GraphEmbedding(penalty=graph), X, None, None, "no direction", NoDirectionError)
    refuse(LPP(graph=graph), X, None, None, "edges of positive weight", GraphError)
    refuse(NPE(graph=graph), X, None, None, "no scatter", InvalidInputError)


def test_degrees_need_a_graph_that_has_some():
    for model in (GraphEmbedding(intrinsic=None), LPP(graph="between")):
        refuse(model, X, Y, None, "degrees.*needs an intrinsic graph", GraphError)


@every(WITH_GRAPH)
@pytest.mark.parametrize("graph", [NeighborGraph, ReconstructionGraph])
def test_more_neighbors_than_rows_are_all_rows(cls, graph):
    all_rows = cls(graph=graph(N - 1)).fit(X, Y)
    np.testing.assert_array_equal(
        images(cls(graph=graph(10 * N)).fit(X, Y), X), images(all_rows, X)
    )
