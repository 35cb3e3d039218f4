"""The transform contract, for every transformer, kernel and scaling.

``fit_transform(X)`` is ``fit(X).transform(X)``; a row's image depends on that row alone, however
it is stored and whatever comes with it; nothing that is passed in is written to; the same data
gives the same numbers.
"""

from __future__ import annotations

import importlib
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import null_space
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

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
    ExactKernel,
    GraphEmbedding,
    LapSVC,
    Linear,
    LowRankKernel,
    NeighborGraph,
    ReconstructionGraph,
    TwinSVC,
)
from marginfold.feature_maps import Transformed

EXACT = 1e-10


def inverse_multiquadric(A, B):
    """A kernel of the caller's own; module level, so that it can be pickled."""
    A, B = (M.toarray() if sp.issparse(M) else np.asarray(M) for M in (A, B))
    return 1.0 / np.sqrt(1.0 + ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


KERNELS = {
    "linear": "linear",
    "rbf": "rbf",
    "poly": "poly",
    "precomputed": "precomputed",
    "callable": inverse_multiquadric,
    "map": ExactKernel("laplacian", gamma=0.2),
    "low rank": LowRankKernel("rbf", rank=15),
    "Nystroem": Nystroem(gamma=0.1, n_components=15, random_state=0),
    "RBFSampler": RBFSampler(gamma=0.1, n_components=15, random_state=0),
    "pipeline": make_pipeline(StandardScaler(with_mean=False), PolynomialFeatures(2)),
}
MARGINS = {"MMDA": MMDA(3), "LSVA": LSVA(3, graph=NeighborGraph(5)), "WSVDA": WSVDA(3)}
EMBEDDINGS = {
    "SVMPCA": SVMPCA(3),
    "SVMPCA bias": SVMPCA(3, bias=False),
    "GraphEmbedding": GraphEmbedding(3, intrinsic=NeighborGraph(5), scaling="unit"),
    "LDA": LDA(shrinkage=1e-3),  # 1e-8 would multiply rounding errors by its inverse
    "KDA": KDA(shrinkage="auto"),
    "LPP": LPP(3, graph=NeighborGraph(5)),
    "NPE": NPE(3, graph=ReconstructionGraph(5)),
}
METHODS = MARGINS | EMBEDDINGS
PLANES = {
    "GEPSVC": GEPSVC(),
    "MRGEPSVC": MRGEPSVC(graph=NeighborGraph(5)),
    "TwinSVC": TwinSVC(),
}
FEW_KERNELS = ("linear", "rbf", "precomputed", "Nystroem")
TWO_KERNELS = ("linear", "rbf")
PAIRS = [  # every kernel once: the way from rows to images is the same for all methods
    *[("LSVA", kernel) for kernel in KERNELS],
    *[("SVMPCA", kernel) for kernel in FEW_KERNELS],
    *[(method, kernel) for method in ("MMDA", "WSVDA") for kernel in ("linear", "precomputed")],
    *[(method, kernel) for method in EMBEDDINGS if method != "SVMPCA" for kernel in TWO_KERNELS],
]


def scalings(method, kernel):
    """Both for a few kernels: they multiply directions, in whatever coordinates these are."""
    if method not in MARGINS:
        return (None,)
    return ("unit", "margin") if kernel in FEW_KERNELS else ("margin",)


CASES = [
    (method, kernel, scaling) for method, kernel in PAIRS for scaling in scalings(method, kernel)
]
MAPS = {
    "Linear": Linear(),
    "ExactKernel": ExactKernel(),
    "ExactKernel poly": ExactKernel("poly"),
    "LowRankKernel": KERNELS["low rank"],
    "Transformed": Transformed(KERNELS["Nystroem"]),
}

each_case = pytest.mark.parametrize(("method", "kernel", "scaling"), CASES)
each_pair = pytest.mark.parametrize(("method", "kernel"), PAIRS)
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_method = pytest.mark.parametrize("method", METHODS)
each_margin = pytest.mark.parametrize("method", MARGINS)
each_plane = pytest.mark.parametrize("name", PLANES)


def training_data(n=36, d=5, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d)) + rng.standard_normal((3, d))[y]
    X[np.abs(X) < 0.3] = 0.0  # so that sparse storage has something to leave out
    return X, y


X, Y = training_data()
NEW, _ = training_data(n=19, seed=1)


def model_of(method, kernel="linear", scaling=None):
    parameters = {} if scaling is None else {"scaling": scaling}
    return clone(METHODS[method]).set_params(kernel=KERNELS[kernel], **parameters)


def rows_for(kernel, rows):
    """Return what this kernel takes as X: the rows, or their kernel with the training rows."""
    return rbf_kernel(rows, X, gamma=0.1) if kernel == "precomputed" else rows


@cache
def fitted(method, kernel="linear", scaling=None):
    """Return one fitted model of each kind, for the tests that only look at it."""
    return model_of(method, kernel, scaling).fit(rows_for(kernel, X), Y)


@cache
def fitted_planes(name, kernel="linear"):
    model = clone(PLANES[name]).set_params(kernel=KERNELS[kernel])
    return model.fit(rows_for(kernel, X), Y)


def n_components(method):
    """Return how many components these three classes have."""
    return 2 if method in ("LDA", "KDA") else 3


def assert_close(values, expected):
    size = np.maximum(np.abs(expected).max(axis=0), 1.0)
    assert_allclose(values / size, expected / size, rtol=0, atol=EXACT)


# -------------------------------------------------------------------------- one row, one image


@each_case
def test_fit_transform_is_fit_then_transform(method, kernel, scaling):
    rows = rows_for(kernel, X)
    together = model_of(method, kernel, scaling).fit_transform(rows, Y)
    assert together.shape == (len(X), n_components(method))
    assert_close(together, fitted(method, kernel, scaling).transform(rows))


@each_case
def test_an_image_does_not_depend_on_the_rows_that_come_with_it(method, kernel, scaling):
    model = fitted(method, kernel, scaling)
    rows = rows_for(kernel, np.vstack([NEW, X[:5]]))
    expected = model.transform(rows)
    one_by_one = np.vstack([model.transform(rows[i : i + 1]) for i in range(len(rows))])
    assert_close(one_by_one, expected)
    assert_close(model.transform(rows[::-1])[::-1], expected)
    order = np.random.default_rng(0).permutation(len(rows))
    for batch in np.split(order, [2, 9]):  # 2, 7 and 15 rows
        assert_close(model.transform(rows[batch]), expected[batch])


@each_kernel
def test_batches_do_not_change_decision_values(kernel):
    classifier = GESVC(kernel=KERNELS[kernel], graph="within").fit(rows_for(kernel, X), Y)
    planes = [fitted_planes(name, kernel) for name in PLANES]
    for model in (fitted("MMDA", kernel), classifier, *planes):
        rows = rows_for(kernel, NEW)
        expected = model.decision_function(rows)
        parts = [model.decision_function(part) for part in np.array_split(rows, 6)]
        assert_close(np.concatenate(parts), expected)


@pytest.mark.parametrize("name", MAPS)
def test_feature_maps_keep_the_contract_too(name):
    feature_map = clone(MAPS[name]).fit(X)
    assert_close(clone(MAPS[name]).fit_transform(X), feature_map.transform(X))
    expected = feature_map.transform(NEW)
    parts = [feature_map.transform(part) for part in np.array_split(NEW, 8)]
    assert_close(np.vstack(parts), expected)
    W = np.random.default_rng(0).standard_normal((expected.shape[1], 2))
    assert_close(feature_map.project(NEW, W), expected @ W)


def test_blocks_of_kernel_rows_do_not_change_the_images(monkeypatch):
    sizes = []

    def recorded(A, B):
        sizes.append(len(A))
        return inverse_multiquadric(A, B)

    model = MMDA(kernel=recorded).fit(X, Y)
    expected = model.transform(NEW)
    monkeypatch.setattr("marginfold.feature_maps.kernel_map.PROJECT_BYTES", 8 * len(X) * 4)
    sizes.clear()
    assert_close(model.transform(NEW), expected)
    assert max(sizes) == 4
    assert sum(sizes) == len(NEW) > 4


def test_rows_far_from_the_training_rows_do_not_disturb_others():
    far = np.vstack([NEW, 1e6 * np.ones((1, X.shape[1]))])
    for method in METHODS:
        for kernel in ("linear", "rbf", "callable"):
            model = fitted(method, kernel)
            assert_close(model.transform(far)[:-1], model.transform(NEW))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "map"])
def test_a_distant_origin_does_not_let_other_rows_in(kernel):
    # A kernel of differences does not see where the origin is.  Distances from inner products of
    # rows far from it lose digits, and which ones depends on the shape of the batch.
    model = model_of("MMDA", kernel).fit(X + 1e4, Y)
    expected = model.transform(NEW + 1e4)
    one_by_one = [model.transform(row[None] + 1e4) for row in NEW]
    assert_close(np.vstack(one_by_one), expected)


@each_pair
def test_threads_change_nothing(method, kernel):
    new, images = rows_for(kernel, NEW), []
    for limit in (1, 2):
        with threadpool_limits(limit):
            images.append(model_of(method, kernel).fit(rows_for(kernel, X), Y).transform(new))
    assert_close(images[1], images[0])


def test_threads_change_nothing_in_products_large_enough_to_use_them():
    rows, y = training_data(700, 40)
    nystroem = Nystroem(n_components=120, random_state=0)
    for model in (LSVA(4), MMDA(2, kernel=nystroem), LPP(4), KDA(kernel=nystroem)):
        images = []
        for limit in (1, 2):
            with threadpool_limits(limit):
                images.append(clone(model).fit(rows, y).transform(rows))
        assert_close(images[1], images[0])


# ------------------------------------------------------------------------------ storage of X

STORED = {
    "Fortran": np.asfortranarray,
    "list": lambda A: A.tolist(),
    "read-only": lambda A: _read_only(A),
    "strided": lambda A: np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3],
    "data frame": lambda A: pd.DataFrame(A, columns=[f"c{j}" for j in range(A.shape[1])]),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr matrix": sp.csr_matrix,
    "coo": sp.coo_array,
}


def _read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


@each_kernel
@pytest.mark.parametrize("storage", STORED)
def test_storage_does_not_matter(kernel, storage):
    store = STORED[storage]
    rows, new = store(rows_for(kernel, X)), store(rows_for(kernel, NEW))
    some = ["LSVA", "SVMPCA", "LPP"] if kernel in TWO_KERNELS else ["LSVA"]
    for method in some:
        model = model_of(method, kernel).fit(rows, Y)
        assert_close(model.transform(new), fitted(method, kernel).transform(rows_for(kernel, NEW)))
    planes = clone(PLANES["MRGEPSVC"]).set_params(kernel=KERNELS[kernel]).fit(rows, Y)
    expected = fitted_planes("MRGEPSVC", kernel).distances(rows_for(kernel, NEW))
    assert_close(planes.distances(new), expected)


@each_method
@pytest.mark.parametrize("kernel", ["linear", "rbf", "Nystroem"])
def test_single_precision_and_whole_numbers_are_read_exactly(method, kernel):
    # the images are those of the same numbers in double precision
    for dtype in (np.float32, np.int64):
        rows, new = (10 * X).astype(dtype), (10 * NEW).astype(dtype)
        expected = model_of(method, kernel).fit(rows.astype(np.float64), Y)
        images = model_of(method, kernel).fit(rows, Y).transform(new)
        assert images.dtype == np.float64
        assert_close(images, expected.transform(new.astype(np.float64)))


@each_method
def test_storage_of_the_labels_does_not_matter(method):
    expected = fitted(method).transform(NEW)
    names = np.array(["a", "b", "c"])[Y]
    for y in (Y.tolist(), Y.astype(float), names, names.astype(object), pd.Series(names)):
        assert_array_equal(model_of(method).fit(X, y).transform(NEW), expected)


# ------------------------------------------------------------------------- there and back again


@pytest.mark.parametrize(
    ("method", "scaling"),
    [(method, scaling) for method, kernel, scaling in CASES if kernel == "rbf"],
)
@pytest.mark.parametrize("shape", [(36, 5), (10, 25)])
def test_there_and_back_is_the_orthogonal_projection(method, scaling, shape):
    rows, y = training_data(*shape)
    model = model_of(method, scaling=scaling).fit(rows, y)
    away = training_data(9, shape[1], seed=2)[0]
    back = model.inverse_transform(model.transform(away))
    # the nearest point of the affine span, by least squares
    span, _ = np.linalg.qr(model.components_.T)
    centre = 0.0 if method == "SVMPCA bias" else rows.mean(axis=0)
    coefficients = np.linalg.lstsq(span, (away - centre).T, rcond=None)[0]
    assert_allclose(back, centre + (span @ coefficients).T, rtol=0, atol=EXACT)
    assert_allclose((away - back) @ span, 0.0, atol=EXACT)
    assert_close(model.transform(back), model.transform(away))
    assert_allclose(model.denoise(away), back, rtol=0, atol=EXACT)
    error = ((away - back) ** 2).sum(axis=1).mean()
    assert_allclose(model.reconstruction_error(away), error, rtol=1e-9)


@pytest.mark.parametrize("method", ["SVMPCA", "GraphEmbedding", "LPP", "NPE"])
def test_with_all_directions_of_an_embedding_there_and_back_is_the_identity(method):
    rows, _ = training_data(60, 4)
    model = model_of(method).set_params(n_components=None).fit(rows)
    assert model.n_components_ == 4
    assert_allclose(model.inverse_transform(model.transform(rows)), rows, rtol=0, atol=1e-9)
    assert model.reconstruction_error(rows) < 1e-16


@each_method
def test_some_components_rebuild_what_they_alone_say(method):
    model, away = fitted(method), NEW
    scores = model.transform(away)
    for chosen in ([0], [1, 0], [1]):
        back = model.denoise(away, chosen)
        assert_allclose(model.inverse_transform(scores[:, chosen], chosen), back, atol=EXACT)
        assert_close(model.transform(back)[:, chosen], scores[:, chosen])
    whole = list(range(n_components(method)))
    assert_allclose(model.denoise(away, whole), model.denoise(away), rtol=0, atol=EXACT)


@each_margin
@pytest.mark.parametrize("scaling", ["unit", "margin"])
def test_with_all_components_there_and_back_is_the_identity(method, scaling):
    model = model_of(method, scaling=scaling)
    model.set_params(n_components=4, C=10.0, deflation="orthogonal", on_exhausted="pca")
    rows, y = training_data(60, 4)
    model.fit(rows, y)
    assert model.n_components_ == 4
    assert null_space(model.components_).size == 0
    assert_allclose(model.inverse_transform(model.transform(rows)), rows, rtol=0, atol=1e-9)
    if scaling == "unit":  # an isometry
        Z = model.transform(rows)
        assert_allclose(
            np.linalg.norm(Z[0] - Z[1:], axis=1), np.linalg.norm(rows[0] - rows[1:], axis=1)
        )


@each_method
@each_kernel
def test_only_linear_directions_can_be_inverted(method, kernel):
    assert hasattr(model_of(method, kernel), "inverse_transform") == (kernel == "linear")


def test_the_linear_map_itself_can_be_inverted_and_its_kernel_cannot():
    model = MMDA(2, kernel=Linear()).fit(X, Y)
    assert_array_equal(model.transform(NEW), MMDA(2).fit(X, Y).transform(NEW))
    assert hasattr(model, "inverse_transform")
    assert not hasattr(MMDA(kernel=ExactKernel("linear")), "inverse_transform")


@each_method
def test_the_linear_kernel_gives_the_images_of_the_linear_map(method):
    # rank-deficient WSVDA would see another mean eigenvalue; these rows have full rank
    kernel = clone(METHODS[method]).set_params(kernel=ExactKernel("linear")).fit(X, Y)
    assert_allclose(kernel.transform(NEW), fitted(method).transform(NEW), rtol=0, atol=1e-8)


# --------------------------------------------------------------------------- names and frames


@each_method
def test_names_of_the_columns(method):
    model = model_of(method).fit(X, Y)
    names = [f"{type(model).__name__.lower()}{j}" for j in range(n_components(method))]
    assert list(model.get_feature_names_out()) == names
    expected = model.transform(NEW)
    for library in ("pandas", "polars"):
        module = importlib.import_module(library)
        frame = model.set_output(transform=library).transform(NEW)
        assert isinstance(frame, module.DataFrame)
        assert list(frame.columns) == names
        assert_array_equal(frame.to_numpy(), expected)


def test_frames_keep_their_index_and_check_their_columns():
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(len(X)) + 100)
    model = MMDA(2).set_output(transform="pandas").fit(frame, Y)
    assert_array_equal(model.transform(frame).index, frame.index)
    assert_array_equal(model.feature_names_in_, list("abcde"))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[list("edcba")])


def test_as_many_names_as_components_were_found():
    with pytest.warns(UserWarning, match="found"):
        model = MMDA(5, C=1e-6, deflation="orthogonal").fit(X, Y)
    assert model.n_components_ == 2
    assert list(model.get_feature_names_out()) == ["mmda0", "mmda1"]


# ---------------------------------------------------------------- copies, repeats, side effects


@each_pair
def test_a_pickled_model_gives_the_same_images(method, kernel):
    model, rows = fitted(method, kernel), rows_for(kernel, NEW)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.transform(rows), model.transform(rows))
    assert vars(copy).keys() == vars(model).keys()
    if method in MARGINS:
        assert copy.tasks_ == model.tasks_


@each_plane
@each_kernel
def test_a_pickled_model_has_the_same_planes(name, kernel):
    model, rows = fitted_planes(name, kernel), rows_for(kernel, NEW)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.distances(rows), model.distances(rows))
    assert [str(plane) for plane in copy.planes_] == [str(plane) for plane in model.planes_]


@each_pair
def test_two_fits_are_equal_to_the_last_bit(method, kernel):
    first = fitted(method, kernel, "margin" if method in MARGINS else None)
    rows = rows_for(kernel, X)
    second = clone(first).fit(rows, Y[::-1]).fit(rows, Y)  # the second fit starts afresh
    assert_array_equal(second.transform(rows), first.transform(rows))
    assert_array_equal(second.components_, first.components_)
    for name in ("intercepts_", "eigenvalues_", "scores_", "explained_variance_ratio_"):
        if hasattr(first, name):
            assert_array_equal(getattr(second, name), getattr(first, name))


@pytest.mark.parametrize(
    "model",
    [
        GESVC(),
        GESVC(kernel="rbf"),
        LapSVC(kernel="poly"),
        GEPSVC(),
        MRGEPSVC(kernel="rbf", tikhonov="dual"),
        MRGEPSVC(kernel=KERNELS["Nystroem"], manifold="numerator"),
        TwinSVC(kernel="poly"),
        TwinSVC(kernel="rbf", loss="least_squares"),
    ],
    ids=str,
)
def test_classifiers_repeat_themselves_too(model):
    first, second = (clone(model).fit(X, Y).decision_function(NEW) for _ in range(2))
    assert_array_equal(first, second)
    assert_array_equal(
        pickle.loads(pickle.dumps(clone(model).fit(X, Y))).decision_function(NEW), first
    )


def test_the_global_random_state_is_neither_used_nor_moved():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one = LSVA(2).fit(X, Y).transform(NEW)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert_array_equal(LSVA(2).fit(X, Y).transform(NEW), one)


@each_kernel
@pytest.mark.parametrize("store", [np.array, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_nothing_that_is_passed_in_is_written_to(kernel, store):
    rows, new, y = store(rows_for(kernel, X)), store(rows_for(kernel, NEW)), Y.copy()
    weights = np.linspace(0.0, 2.0, len(Y))
    if isinstance(rows, np.ndarray):
        for array in (rows, new, y, weights):
            array.flags.writeable = False
    models = [METHODS["LSVA"], METHODS["WSVDA"], GESVC(graph="lle"), PLANES["MRGEPSVC"]]
    if kernel in ("linear", "precomputed"):
        models += [*EMBEDDINGS.values(), PLANES["TwinSVC"]]
    for model in models:
        model = clone(model).set_params(kernel=KERNELS[kernel])
        model.fit(rows, y, sample_weight=weights)
        (model.transform if hasattr(model, "transform") else model.predict)(new)
    dense = [A.toarray() if sp.issparse(A) else A for A in (rows, new)]
    assert_array_equal(dense[0], rows_for(kernel, X))
    assert_array_equal(dense[1], rows_for(kernel, NEW))
    assert_array_equal(y, Y)
    assert_array_equal(weights, np.linspace(0.0, 2.0, len(Y)))


def test_images_do_not_share_memory_with_the_rows_or_the_model():
    for method in METHODS:
        for kernel in ("linear", "rbf"):
            model = model_of(method, kernel).fit(X, Y)
            before = model.transform(NEW)
            model.transform(NEW)[:] = 0.0
            model.components_[:] = 0.0  # a view of what transform uses would spoil it
            assert_array_equal(model.transform(NEW), before)
    for name in PLANES:
        model = clone(PLANES[name]).fit(X, Y)
        before = model.distances(NEW)
        model.coef_[:] = 0.0
        model.intercept_[:] = 0.0
        assert_array_equal(model.distances(NEW), before)


def test_fit_does_not_change_parameters():
    transformer = Nystroem(gamma=0.1, n_components=15, random_state=0)
    graph = NeighborGraph(5)
    model = LSVA(2, kernel=transformer, graph=graph).fit(X, Y)
    assert model.kernel is transformer
    assert model.graph is graph
    assert not hasattr(transformer, "components_")


@each_method
def test_before_fit(method):
    model = model_of(method)
    calls = [model.transform, model.inverse_transform, model.denoise, model.loadings]
    if method in MARGINS:
        calls.append(model.decision_function)
    for call in calls:
        with pytest.raises(NotFittedError):
            call(X)


@each_method
def test_another_number_of_columns_is_refused(method):
    model = model_of(method).fit(X, Y)
    with pytest.raises(ValueError, match="4 features"):
        model.transform(X[:, :4])
    with pytest.raises(ValueError, match="4 columns"):
        model.inverse_transform(np.zeros((4, 4)))
