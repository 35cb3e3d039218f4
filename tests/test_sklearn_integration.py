"""The estimators where users put them: pipelines, searches, calibration, routing, threads."""

from __future__ import annotations

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest
import sklearn
from estimator_families import (
    CLASSIFIERS,
    DISCRIMINANTS,
    ESTIMATORS,
    MACHINES,
    UNSUPERVISED,
    every,
    images,
)
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import BaggingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import get_tags

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
    ExactKernel,
    GraphEmbedding,
    LapSVC,
    Linear,
    NeighborGraph,
    ReconstructionGraph,
    TotalGraph,
    TwinSVC,
    WithinClassGraph,
)

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)

IRIS = load_iris()
X, Y = StandardScaler().fit_transform(IRIS.data), IRIS.target
TWO = Y != 2


# -------------------------------------------------------------------------------------- searches


@pytest.mark.filterwarnings("error")
def test_a_grid_reaches_the_graph_and_the_kernel():
    pipeline = Pipeline(
        [
            ("scale", StandardScaler()),
            ("map", LSVA(kernel=ExactKernel("rbf"), graph=NeighborGraph())),
            ("classify", KNeighborsClassifier(3)),
        ]
    )
    grid = {
        "map__graph__n_neighbors": [3, 9],
        "map__kernel__gamma": [0.05, 0.5],
        "map__graph_weight": [0.0, 1.0],
        "map__C": [10.0],
    }
    search = GridSearchCV(pipeline, grid, cv=FOLDS, error_score="raise").fit(IRIS.data, Y)
    assert search.best_score_ > 0.9
    assert len(search.cv_results_["params"]) == 8
    best = search.best_estimator_.named_steps["map"]
    assert best.graph.n_neighbors == search.best_params_["map__graph__n_neighbors"]
    assert best.feature_map_.gamma_ == search.best_params_["map__kernel__gamma"]


EIGEN_GRIDS = {
    "GEPSVC": (
        GEPSVC(kernel=ExactKernel("rbf")),
        {"kernel__gamma": [0.05, 0.5], "tikhonov": ["rkhs", "dual"]},
    ),
    "MRGEPSVC": (
        MRGEPSVC(kernel=ExactKernel("rbf"), graph=NeighborGraph()),
        {"kernel__gamma": [0.5], "graph__n_neighbors": [3, 9], "graph_weight": [0.0, 1.0]},
    ),
    "TwinSVC": (
        TwinSVC(kernel=ExactKernel("rbf", rank=20)),
        {"kernel__rank": [5, 20], "loss": ["hinge", "least_squares"]},
    ),
    "SVMPCA": (
        SVMPCA(kernel=ExactKernel("rbf")),
        {"kernel__gamma": [0.05, 0.5], "bias": [True, False]},
    ),
    "GraphEmbedding": (
        GraphEmbedding(intrinsic=NeighborGraph() + WithinClassGraph(), penalty=TotalGraph()),
        {"intrinsic__first__n_neighbors": [3, 9], "penalty": [TotalGraph(), "degrees"]},
    ),
    "LDA": (LDA(), {"shrinkage": [1e-8, "auto"], "n_components": [1, None]}),
    "KDA": (
        KDA(kernel=Nystroem(n_components=20, random_state=0)),
        {"kernel__gamma": [0.05, 0.5], "shrinkage": [1e-3, 0.1]},
    ),
    "LPP": (
        LPP(kernel=ExactKernel("rbf"), graph=NeighborGraph()),
        {"graph__n_neighbors": [3, 9], "kernel__gamma": [0.05, 0.5]},
    ),
    "NPE": (NPE(graph=ReconstructionGraph()), {"graph__reg": [1e-3, 0.1], "kernel": ["rbf"]}),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", EIGEN_GRIDS)
def test_grids_of_the_eigenvalue_family(name):
    """Every setting is fitted without a failure, and every parameter has an effect."""
    model, grid = EIGEN_GRIDS[name]
    if type(model) in CLASSIFIERS:
        whole, grid = Pipeline([("step", model)]), {f"step__{k}": v for k, v in grid.items()}
    else:
        whole = Pipeline([("step", model), ("classify", KNeighborsClassifier(3))])
        grid = {f"step__{k}": v for k, v in grid.items()}
    search = GridSearchCV(whole, grid, cv=FOLDS, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == np.prod([len(values) for values in grid.values()])
    assert search.best_score_ > 0.85
    best = search.best_estimator_["step"]
    for key, value in search.best_params_.items():
        assert str(best.get_params()[key.removeprefix("step__")]) == str(value)
    for key, values in grid.items():
        first, last = (
            images(clone(whole).set_params(**{key: value})["step"].fit(X, Y), X)
            for value in (values[0], values[-1])
        )
        same = first.shape == last.shape and np.allclose(first, last)
        assert not same or len(values) == 1


def test_every_parameter_of_the_grid_has_an_effect():
    base = LSVA(kernel=ExactKernel(gamma=0.1), graph=NeighborGraph(5), C=10.0)
    reference = base.fit(X, Y).transform(X)
    for change in (
        {"graph__n_neighbors": 15},
        {"graph__weights": "binary"},
        {"graph_weight": 5.0},
        {"kernel__gamma": 0.7},
        {"C": 0.1},
    ):
        other = clone(base).set_params(**change).fit(X, Y).transform(X)
        assert not np.allclose(other, reference), change


def test_sums_of_graphs_are_reached_by_nested_names():
    graph = 0.3 * NeighborGraph(5) + WithinClassGraph()
    model = GESVC(graph=graph)
    names = model.get_params()
    assert {"graph__first__factor", "graph__first__graph__n_neighbors", "graph__second"} <= set(
        names
    )
    grid = {
        "graph__first__graph__n_neighbors": [3, 8],
        "graph__first__factor": [0.0, 2.0],
        "graph__second": [WithinClassGraph(), TotalGraph()],
    }
    search = GridSearchCV(model, grid, cv=FOLDS, error_score="raise").fit(X, Y)
    assert search.best_score_ > 0.85
    assert graph.first.factor == 0.3
    assert graph.first.graph.n_neighbors == 5


def test_a_shorthand_and_its_object_are_the_same():
    for short, long in (
        ({"graph": "knn"}, {"graph": NeighborGraph()}),
        ({"graph": "within"}, {"graph": WithinClassGraph()}),
        ({"kernel": "rbf"}, {"kernel": ExactKernel("rbf")}),
        ({"kernel": "linear"}, {"kernel": Linear()}),
    ):
        one, two = LSVA(**short).fit(X, Y), LSVA(**long).fit(X, Y)
        np.testing.assert_array_equal(one.transform(X), two.transform(X))
        assert vars(one).keys() == vars(two).keys()


def test_a_search_over_shorthands_and_objects():
    grid = {
        "graph": ["knn", "within", NeighborGraph(3), TotalGraph() + WithinClassGraph()],
        "kernel": ["linear", Nystroem(n_components=20, random_state=0)],
    }
    search = GridSearchCV(GESVC(), grid, cv=FOLDS, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 8


def test_two_threads_give_the_same_scores():
    model, grid = GESVC(graph=NeighborGraph(5)), {"graph_weight": [0.0, 1.0, 10.0]}
    one = GridSearchCV(model, grid, cv=FOLDS).fit(X, Y)
    with joblib.parallel_config("threading", n_jobs=2):
        two = GridSearchCV(model, grid, cv=FOLDS).fit(X, Y)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


# ---------------------------------------------------------------------- classifiers in a company


@every([*MACHINES, GEPSVC, MRGEPSVC])
def test_calibration(cls):
    model = CalibratedClassifierCV(cls(), cv=3).fit(X, Y)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert model.score(X, Y) > 0.9
    binary = CalibratedClassifierCV(cls(), cv=3, ensemble=False).fit(X[TWO], Y[TWO])
    assert binary.predict_proba(X[TWO]).shape == (100, 2)


def test_calibration_passes_sample_weights_and_text_labels():
    labels = IRIS.target_names[Y]
    model = CalibratedClassifierCV(GESVC(), cv=3).fit(X, labels, sample_weight=np.ones(len(X)))
    assert list(model.classes_) == sorted(IRIS.target_names)


@every(CLASSIFIERS)
def test_cross_val_predict(cls):
    model = cls(kernel="rbf") if cls is TwinSVC else cls()  # no line is near the middle class
    predicted = cross_val_predict(model, X, Y, cv=FOLDS)
    assert accuracy_score(Y, predicted) > 0.8
    scores = cross_val_predict(model, X, Y, cv=FOLDS, method="decision_function")
    assert scores.shape == (150, 3)
    np.testing.assert_array_equal(scores.argmax(axis=1), predicted)


def test_bagging_and_one_vs_one():
    bagged = BaggingClassifier(GESVC(), n_estimators=3, max_features=0.5, random_state=0)
    assert bagged.fit(X, Y).score(X, Y) > 0.8
    assert OneVsOneClassifier(GESVC()).fit(X, Y).score(X, Y) > 0.9


@pytest.mark.parametrize(
    ("load", "kernel", "allowed"),
    [
        (load_breast_cancer, "linear", 0.02),
        (load_breast_cancer, "rbf", 0.02),
        (load_wine, "linear", 0.02),
        (load_wine, "rbf", 0.02),
        (load_digits, "linear", 0.04),
    ],
)
@pytest.mark.parametrize("graph", ["within", "knn"])
def test_the_accuracy_is_near_that_of_a_plain_svm(load, kernel, allowed, graph):
    """One-vs-rest with a graph at its default weight, against libsvm's one-vs-one."""
    rows, y = load(return_X_y=True)
    rows, y = rows[:600], y[:600]
    C = 10.0 if kernel == "rbf" else 1.0
    plain = make_pipeline(StandardScaler(), SVC(kernel=kernel, C=C))
    ours = make_pipeline(StandardScaler(), GESVC(kernel=kernel, C=C, graph=graph))
    expected = cross_val_score(plain, rows, y, cv=FOLDS).mean()
    assert cross_val_score(ours, rows, y, cv=FOLDS).mean() >= expected - allowed


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_without_a_graph_it_is_the_support_vector_machine(kernel):
    """libsvm as the oracle: the same decision values to its tolerance."""
    params = {"kernel": kernel, "C": 3.0}
    svc = SVC(**params, gamma="scale", coef0=1.0, tol=1e-8).fit(X[TWO], Y[TWO])
    ours = GESVC(**params, graph_weight=0.0).fit(X[TWO], Y[TWO])
    np.testing.assert_allclose(images(ours, X), images(svc, X), atol=1e-5)


def moons(seed, n_labels=6):
    rows, y = make_moons(200, noise=0.05, random_state=seed)
    return rows, y, few_labels(y, n_labels // 2, seed)


def few_labels(y, per_class, seed):
    rng = np.random.default_rng(seed)
    few = np.full(len(y), -1)
    for label in np.unique(y):
        kept = rng.choice(np.flatnonzero(y == label), per_class, replace=False)
        few[kept] = label
    return few


def unlabelled_score(model, rows, y, few):
    return model.score(rows[few == -1], y[few == -1])


def test_unlabelled_rows_help_where_classes_are_manifolds():
    gains = []
    for seed in range(8):
        rows, y, few = moons(seed)
        known = few != -1
        lap = LapSVC(kernel=ExactKernel(gamma=5.0), C=10, graph_weight=10).fit(rows, few)
        svc = SVC(gamma=5.0, C=10).fit(rows[known], y[known])
        gains.append(unlabelled_score(lap, rows, y, few) - unlabelled_score(svc, rows, y, few))
    assert min(gains) > 0
    assert np.mean(gains) > 0.1


def test_unlabelled_rows_hurt_where_they_are_not():
    """Breast cancer, three labels a class: a heavy neighbor graph costs ten points."""
    rows, y = load_breast_cancer(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)
    differences = []
    for seed in range(5):
        few = few_labels(y, 3, seed)
        known = few != -1
        lap = LapSVC(kernel="rbf", C=10, graph_weight=100).fit(rows, few)
        plain = GESVC(kernel="rbf", C=10, graph_weight=0).fit(rows[known], y[known])
        differences.append(
            unlabelled_score(lap, rows, y, few) - unlabelled_score(plain, rows, y, few)
        )
    assert np.mean(differences) < -0.05


# ------------------------------------------------------------------------------ metadata routing


@every(ESTIMATORS)
def test_weights_are_routed_through_a_pipeline(cls):
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 150)
    direct = cls().fit(X, Y, sample_weight=weights)
    assert not np.allclose(images(direct, X), images(cls().fit(X, Y), X))
    with sklearn.config_context(enable_metadata_routing=True):
        asked = Pipeline([("model", cls().set_fit_request(sample_weight=True))])
        asked.fit(X, Y, sample_weight=weights)
        np.testing.assert_array_equal(images(asked[-1], X), images(direct, X))
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            Pipeline([("model", cls())]).fit(X, Y, sample_weight=weights)
        declined = Pipeline([("model", cls().set_fit_request(sample_weight=False))])
        with pytest.raises(TypeError, match="sample_weight"):
            declined.fit(X, Y, sample_weight=weights)


def test_weights_are_routed_through_a_search():
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 150)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            LSVA().set_fit_request(sample_weight=True),
            LogisticRegression().set_fit_request(sample_weight=True),
        )
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        search = GridSearchCV(pipeline, {"lsva__graph_weight": [1.0]}, cv=FOLDS, scoring=scorer)
        search.fit(X, Y, sample_weight=weights)
    direct = LSVA().fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(search.best_estimator_[0].transform(X), direct.transform(X))


@every(UNSUPERVISED)
def test_weights_are_routed_to_an_embedding_before_a_regressor(cls):
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 150)
    with sklearn.config_context(enable_metadata_routing=True):
        step = cls().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(step, Ridge().set_fit_request(sample_weight=True))
        pipeline.fit(X, X[:, 0], sample_weight=weights)  # y is continuous and not for the step
    direct = cls().fit(X, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[0].transform(X), direct.transform(X))


def test_weights_are_passed_by_step_without_routing():
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 150)
    pipeline = make_pipeline(MMDA(), KNeighborsClassifier())
    pipeline.fit(X, Y, mmda__sample_weight=weights)
    direct = MMDA().fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[0].components_, direct.components_)


# ----------------------------------------------------------------------------- precomputed kernels


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["precomputed", ExactKernel("precomputed")], ids=["name", "map"])
def test_a_precomputed_kernel_is_cut_by_rows_and_columns(cls, kernel):
    K = rbf_kernel(X, gamma=0.3)
    graphs = {"graph": "within", "intrinsic": "within"}
    graphs = {name: graph for name, graph in graphs.items() if name in cls().get_params()}
    model = cls(kernel=kernel, **graphs)
    if cls in DISCRIMINANTS:
        model.set_params(shrinkage=1e-2)
    assert get_tags(model).input_tags.pairwise
    assert not get_tags(cls(kernel="rbf")).input_tags.pairwise
    direct = clone(model).set_params(kernel=ExactKernel("rbf", gamma=0.3)).fit(X[::2], Y[::2])
    fitted = model.fit(K[::2, ::2], Y[::2])
    found, expected = np.abs(images(fitted, K[1::2, ::2])), np.abs(images(direct, X[1::2]))
    np.testing.assert_allclose(found, expected, atol=1e-6 * max(1.0, expected.max()))


def test_a_precomputed_kernel_in_cross_validation():
    K = rbf_kernel(X, gamma=0.3)
    direct = cross_validate(
        GESVC(kernel=ExactKernel(gamma=0.3), graph="within"), X, Y, cv=FOLDS, error_score="raise"
    )
    ours = cross_validate(
        GESVC(kernel="precomputed", graph="within"), K, Y, cv=FOLDS, error_score="raise"
    )
    np.testing.assert_array_equal(ours["test_score"], direct["test_score"])
    search = GridSearchCV(
        GESVC(kernel="precomputed"), {"C": [1.0, 10.0]}, cv=FOLDS, error_score="raise"
    )
    assert search.fit(K, Y).best_score_ > 0.9
    pipeline = make_pipeline(MMDA(kernel="precomputed"), KNeighborsClassifier(3))
    assert get_tags(pipeline).input_tags.pairwise
    assert cross_val_score(pipeline, K, Y, cv=FOLDS, error_score="raise").mean() > 0.9


def test_a_transformer_of_a_precomputed_kernel_is_pairwise():
    """The tag of the transformer is the tag of the whole, or cross-validation cuts rows only."""
    model = GESVC(kernel=KernelPCA(5, kernel="precomputed"))
    assert get_tags(model.kernel).input_tags.pairwise
    assert get_tags(model).input_tags.pairwise


# ---------------------------------------------------------------------------------- threads

OVERLAP = """
import scipy.linalg
from threadpoolctl import threadpool_info
from marginfold.runtime.threads import one_thread
count = lambda: {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}
before, first, second = count(), one_thread("blas"), one_thread("blas")
first.__enter__()
second.__enter__()
inside = count()
first.__exit__(None, None, None)
second.__exit__(None, None, None)
print(sorted(before), sorted(inside), sorted(count()))
"""


def test_two_fits_that_overlap_give_the_blas_threads_back():
    """Fits in two threads end in any order; the limit of the process must be as before."""
    environment = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    done = subprocess.run(
        [sys.executable, "-c", OVERLAP], capture_output=True, text=True, env=environment, check=True
    )
    before, inside, after = done.stdout.split()
    if before == "[1]":
        pytest.skip("one core: BLAS has one thread anyway")
    assert inside == "[1]"
    assert after == before
