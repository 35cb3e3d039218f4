"""Exported models answer as ours do, run by onnxruntime: every estimator with every kernel."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from estimator_families import CLASSIFIERS, PLANES, TRANSFORMERS, every
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from marginfold import (
    GEPSVC,
    GESVC,
    KDA,
    LDA,
    LSVA,
    MMDA,
    SVMPCA,
    ExactKernel,
    LaplacianEigenmaps,
    LapSVC,
    Linear,
    LocallyLinearEmbedding,
    LowRankKernel,
    MarginMap,
    NeighborsClassifier,
    PathSearchCV,
    SubspaceSearchCV,
    TwinSVC,
    to_onnx,
)
from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
skl2onnx = pytest.importorskip("skl2onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from marginfold.onnx import register_converters  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::marginfold.errors.MarginfoldWarning")

TOLERANCES = {np.float32: 1e-5, np.float64: 1e-9}
"""Largest difference from our own answer, relative to the largest number of that."""

KERNELS = {
    "linear": "linear",
    "rbf": "rbf",
    "poly": "poly",
    "exact linear": ExactKernel("linear"),
    "some coordinates": ExactKernel("rbf", gamma=0.05, rank=20),
    "uncentred": ExactKernel("poly", degree=2, coef0=0.5, center=False),
    "low rank": LowRankKernel("rbf", rank=30),
    "low-rank polynomial": LowRankKernel("poly", degree=2, rank=30, center=False),
}

WINE = load_wine()
CULTIVARS = np.array(["barolo", "grignolino", "barbéra"])[WINE.target]
TWO = WINE.target != 1
DIGITS = load_digits()
SOME = slice(0, 300)

DATA = {
    "wine": (StandardScaler().fit_transform(WINE.data), CULTIVARS),
    "two cultivars": (StandardScaler().fit_transform(WINE.data[TWO]), CULTIVARS[TWO]),
    "digits": (DIGITS.data[SOME] / 16, DIGITS.target[SOME]),
}


def each_kernel(function):
    return pytest.mark.parametrize("kernel", KERNELS)(function)


def each_data(function):
    return pytest.mark.parametrize("data", DATA)(function)


def fitted(model, data):
    """Fit on two rows of three; return all rows, and some that are far from them."""
    X, y = DATA[data]
    model.fit(X[np.arange(len(X)) % 3 > 0], y[np.arange(len(X)) % 3 > 0])
    return model, np.concatenate([X, 3.0 * X[::7]])


def run(exported, X):
    """Return the outputs of an exported model by their names."""
    onnx.checker.check_model(exported, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    feed = X if isinstance(X, dict) else {"X": X}
    return dict(zip(names, session.run(None, feed), strict=True))


def assert_near(found, wanted, dtype):
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= TOLERANCES[dtype] * np.abs(wanted).max()


def assert_same_answers(model, X):
    """Both types of numbers, each with our own answer to the rows as that type holds them."""
    for dtype in TOLERANCES:
        rows = X.astype(dtype)
        found, rows = run(to_onnx(model, dtype=dtype), rows), rows.astype(np.float64)
        if hasattr(model, "classes_") and hasattr(model, "predict"):
            np.testing.assert_array_equal(found["label"], model.predict(rows))
        if "scores" in found:
            assert_near(found["scores"], model.decision_function(rows), dtype)
        if hasattr(model, "distances"):
            assert_near(found["distances"], model.distances(rows), dtype)
        if "probabilities" in found:
            assert_near(found["probabilities"], model.predict_proba(rows), dtype)
        if "variable" in found:
            assert_near(found["variable"], np.asarray(model.transform(rows)), dtype)
    return found.keys()


# ------------------------------------------------------------------------ every estimator, kernel


@each_data
@each_kernel
@every(TRANSFORMERS)
def test_images_are_those_of_transform(cls, kernel, data):
    model = cls(**parameters(cls, kernel))
    assert assert_same_answers(*fitted(model, data)) == {"variable"}


@each_data
@each_kernel
@every(CLASSIFIERS)
def test_classes_and_scores_are_those_of_the_classifier(cls, kernel, data):
    model = cls(**parameters(cls, kernel))
    planes = {"distances"} if cls in PLANES else set()
    assert assert_same_answers(*fitted(model, data)) == {"label", "scores"} | planes


def parameters(cls, kernel):
    return {"kernel": KERNELS[kernel]} if "kernel" in cls().get_params() else {}


@pytest.mark.parametrize("feature_map", [Linear(), *list(KERNELS.values())[3:]], ids=repr)
def test_feature_maps_have_their_coordinates(feature_map):
    assert_same_answers(*fitted(feature_map, "wine"))


@pytest.mark.parametrize(
    "model",
    [
        *[cls(multiclass="one_vs_rest") for cls in CLASSIFIERS],
        *[cls(multiclass="one_vs_rest", kernel="rbf") for cls in CLASSIFIERS],
        TwinSVC(measure="distance", kernel="rbf"),
        LSVA(4, scaling="margin"),
        LSVA(2, deflation="uncorrelated", kernel="rbf"),
        SVMPCA(3, bias=False),
        SVMPCA(3, bias=False, kernel="rbf"),
        GESVC(graph_weight=0.0, kernel="rbf", C=100.0),
    ],
    ids=repr,
)
@each_data
def test_other_parameters(model, data):
    assert_same_answers(*fitted(model, data))


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param([-3, 7, 2], id="whole numbers"),
        pytest.param([False, True, True], id="truth values"),
        pytest.param([-1.0, 0.0, 2.0], id="floats"),
        pytest.param(np.array(["x", "y", "z"], dtype=object), id="objects"),
        pytest.param(np.array([0, 1, 2], dtype=np.uint8), id="small numbers"),
    ],
)
@pytest.mark.parametrize("model", [GESVC(), GEPSVC(), NeighborsClassifier()], ids=repr)
def test_labels_of_any_type(model, labels):
    X, _ = DATA["wine"]
    assert_same_answers(model.fit(X, np.asarray(labels)[WINE.target]), X)


# ------------------------------------------------------------------------------ ties and far rows


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("cls", [GESVC, LapSVC])
def test_tied_votes_go_to_the_same_class(cls, kernel):
    """Two classes with the same rows are tied wherever they are ahead of the others."""
    X, _ = DATA["wine"]
    rows = np.concatenate([X, X[WINE.target == 0]])
    labels = np.concatenate([WINE.target, np.full(int((WINE.target == 0).sum()), 3)])
    model = cls(kernel=kernel).fit(rows, labels)
    values = model.decision_function(X)
    assert (values[:, 0] == values[:, 3]).mean() > 0.2
    assert_same_answers(model, X)


@each_data
def test_rows_between_equal_planes_go_to_the_same_class(data):
    model, X = fitted(TwinSVC(kernel="rbf"), data)
    model.normals_[1:], model.offsets_[1:] = model.normals_[0], model.offsets_[0]
    model.margins_[1:] = model.margins_[0]
    assert len(np.unique(model.decision_function(X))) == 1
    assert_same_answers(model, X)


def test_a_pair_without_a_plane_has_no_vote():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + np.repeat([[0.0, 0.0], [4.0, 0.0], [8.0, 0.0]], 30, axis=0)
    model = TwinSVC().fit(X, np.repeat([0, 1, 2], 30))
    model.normals_[2] = 0.0  # what a pair has that no plane describes
    assert_same_answers(model, X)


def test_of_equally_near_rows_the_earlier_count():
    X = np.random.default_rng(0).integers(0, 3, size=(200, 3)).astype(float)
    y = np.random.default_rng(1).integers(0, 4, size=200)
    for k in (1, 2, 5, 300):
        assert_same_answers(NeighborsClassifier(k).fit(X, y), X + 0.0)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("cls", [LSVA, KDA, GESVC, GEPSVC])
def test_rows_far_from_the_origin_keep_their_digits(cls, kernel):
    X, y = DATA["wine"]
    far = X[:, :4] + 1e4
    assert_same_answers(cls(**parameters(cls, kernel)).fit(far, y), far)


def test_a_scaler_of_far_columns_keeps_its_digits():
    X, y = DATA["wine"]
    years = np.column_stack([X, np.round(2000 + 3 * X[:, 0] + X[:, 1])])
    assert_same_answers(make_pipeline(StandardScaler(), LSVA(2)).fit(years, y), years)
    plain = StandardScaler(with_mean=False, with_std=False)
    assert_same_answers(make_pipeline(plain, LSVA(2)).fit(years, y), years)


def test_more_columns_than_rows():
    X, y = DATA["digits"]
    for model in (LSVA(2), LDA(), GESVC(), GEPSVC(), SVMPCA(2)):
        assert_same_answers(model.fit(X[:40], y[:40]), X)


# ----------------------------------------------------------------------------- maps of many classes


@each_data
def test_a_margin_map(data):
    assert_same_answers(*fitted(MarginMap(), data))


def test_a_margin_map_of_principal_components():
    X, y = DATA["digits"]
    wide = np.column_stack([X, X**2])
    assert_same_answers(MarginMap(sharpness=2.0).fit(wide, y), wide)


@pytest.mark.parametrize(
    "classifier",
    [
        GEPSVC(),
        LapSVC(),
        GESVC(multiclass="one_vs_rest"),
        *(SVC(), SVC(kernel="linear"), SVC(C=10.0, kernel="poly", degree=2, coef0=1.0)),
    ],
    ids=repr,
)
def test_a_margin_map_of_another_classifier(classifier):
    for data in DATA:
        assert_same_answers(*fitted(MarginMap(classifier, sharpness=1.0), data))


# ------------------------------------------------------------------------- pipelines and searches


@pytest.mark.parametrize(
    "model",
    [
        SubspaceSearchCV(LSVA(4), n_neighbors=[1, 5]),
        SubspaceSearchCV(LDA(2)),
        PathSearchCV(GESVC(), C=[1.0, 10.0]),
        GridSearchCV(GEPSVC(), {"kernel": ["linear", "rbf"]}),
        CalibratedClassifierCV(GESVC(kernel="rbf")),
        CalibratedClassifierCV(TwinSVC(), ensemble=False),
        make_pipeline(make_union(LSVA(2), SVMPCA(3)), GESVC()),
        make_pipeline(SubspaceSearchCV(LSVA(3)), GESVC()),
        make_pipeline(LSVA(2, kernel="rbf"), LogisticRegression()),
        make_pipeline(
            make_column_transformer((LSVA(1), [0, 1, 2]), (StandardScaler(), [3, 4])), GESVC()
        ),
    ],
    ids=lambda model: repr(model)[:60],
)
@pytest.mark.parametrize("data", ["wine", "two cultivars"])
def test_beside_other_estimators(model, data):
    assert "label" in assert_same_answers(*fitted(make_pipeline(StandardScaler(), model), data))


@pytest.mark.filterwarnings("ignore:Field onnx:DeprecationWarning")
def test_boosted_trees():
    X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    X[::7, 1] = np.nan
    y = np.where(np.nan_to_num(X[:, 1]) > 0, "up", np.where(X[:, 0] > 0, "left", "right"))
    model = HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    found = run(to_onnx(model), X)
    np.testing.assert_array_equal(found["label"], model.predict(X))
    assert_near(found["probabilities"], model.predict_proba(X), np.float32)
    with pytest.raises(InvalidInputError, match="Try the other dtype"):
        to_onnx(model, dtype=np.float64)


def test_columns_of_a_frame_are_inputs_with_their_names():
    frame = pd.DataFrame(WINE.data[:, :2], columns=["alcohol", "malic acid"])
    frame["region"] = np.where(WINE.data[:, 4] > 100, "north", "south")
    columns = make_column_transformer(
        (StandardScaler(), ["alcohol", "malic acid"]),
        (OneHotEncoder(sparse_output=False), ["region"]),
    )
    model = make_pipeline(columns, GESVC()).fit(frame, CULTIVARS)
    for dtype in TOLERANCES:
        feed = {
            name.replace(" ", "_"): frame[[name]]
            .to_numpy()
            .astype(object if name == "region" else dtype)
            for name in frame
        }
        found = run(to_onnx(model, frame, dtype=dtype), feed)
        np.testing.assert_array_equal(found["label"], model.predict(frame))
        assert_near(found["scores"], model.decision_function(frame), dtype)


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
def test_frames_of_other_packages_name_the_inputs(frame):
    X, y = DATA["wine"][0][:, :2], DATA["wine"][1]
    columns = {"alcohol": X[:, 0], "acid": X[:, 1]}
    package = pytest.importorskip(frame)
    table = package.table(columns) if frame == "pyarrow" else package.DataFrame(columns)
    feed = {name: values[:, None] for name, values in columns.items()}
    model = GESVC().fit(X, y)
    found = run(to_onnx(model, table, dtype=np.float64), feed)
    np.testing.assert_array_equal(found["label"], model.predict(X))


@pytest.mark.parametrize("columns", [["b", "a"], ["a", "c"], ["a"], ["a", "a"]])
def test_columns_that_are_not_those_of_the_fit_are_refused(columns):
    X, y = DATA["wine"][0][:, :2], DATA["wine"][1]
    model = make_pipeline(StandardScaler(), GESVC()).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    given = pd.DataFrame(X[:, : len(columns)], columns=columns)
    with pytest.raises(InvalidInputError, match=r"X has (the columns|columns of equal names)"):
        to_onnx(model, given)


@pytest.mark.parametrize(
    "given", [np.zeros((3, 2)), np.zeros(13), "rows", pd.DataFrame({"a": [1]})]
)
def test_rows_of_another_shape_are_refused(given):
    model = GESVC().fit(*DATA["wine"])
    with pytest.raises(InvalidInputError, match=r"X (has \d columns; the model|must have rows)"):
        to_onnx(model, given)


@pytest.mark.parametrize("data", ["wine", "two cultivars"])
def test_a_calibrated_search_answers_by_its_best_estimators(data):
    search = PathSearchCV(GESVC(), C=[0.1, 1.0], cv=2)
    model, X = fitted(CalibratedClassifierCV(search, cv=2), data)
    assert "probabilities" in assert_same_answers(model, X)
    assert isinstance(model.calibrated_classifiers_[0].estimator, PathSearchCV)


def test_a_calibrated_search_for_a_pipeline_is_refused():
    X, y = DATA["wine"]
    model = CalibratedClassifierCV(SubspaceSearchCV(LSVA(2), cv=2), cv=2).fit(X, y)
    with pytest.raises(InvalidInputError, match="put its first steps before"):
        to_onnx(model)


def test_steps_that_pass_rows_through_are_left_out():
    X, y = DATA["wine"]
    steps = [("none", None), ("scaler", StandardScaler()), ("same", "passthrough")]
    model = Pipeline([*steps, ("method", GESVC())]).fit(X, y)
    found = run(to_onnx(model, X, dtype=np.float64), X)
    assert_near(found["scores"], model.decision_function(X), np.float64)


def test_a_model_that_no_runtime_loads_is_refused():
    X, y = DATA["wine"]
    model = make_pipeline(PolynomialFeatures(), GESVC()).fit(X, y)  # skl2onnx mixes its types
    assert run(to_onnx(model), X.astype(np.float32))["label"].shape == y.shape
    try:
        run(to_onnx(model, dtype=np.float64), X)  # a version of skl2onnx that does not
    except InvalidInputError as error:
        assert "Try the other dtype" in str(error)  # noqa: PT017


def test_the_converters_serve_skl2onnx_itself():
    X, y = DATA["wine"]
    register_converters()
    model = make_pipeline(StandardScaler(), GESVC()).fit(X, y)
    found = run(skl2onnx.to_onnx(model, X[:1]), X)
    np.testing.assert_array_equal(found["label"], model.predict(X))
    assert_near(found["scores"], model.decision_function(X), np.float64)


@pytest.mark.parametrize(
    "model", [GESVC(kernel="rbf"), TwinSVC(kernel="poly"), MarginMap(), NeighborsClassifier()]
)
def test_another_runtime_gives_the_same(model):
    """The evaluator of the standard itself, in NumPy."""
    from onnx.reference import ReferenceEvaluator

    X, y = DATA["wine"]
    exported = to_onnx(model.fit(X, y), dtype=np.float64)
    wanted = run(exported, X)
    found = ReferenceEvaluator(exported).run(None, {"X": X})
    for own, other in zip(wanted.values(), found, strict=True):
        if own.dtype == np.float64:
            assert_near(np.asarray(other), own, np.float64)
        else:
            np.testing.assert_array_equal(np.asarray(other).astype(own.dtype), own)


# -------------------------------------------------------------------------------------- refusals


class Strange(TransformerMixin, BaseEstimator):
    """A step that skl2onnx does not know."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


class Torn(Strange):
    """A step whose converter fails."""


def own_kernel(X, Y):
    return X @ Y.T


REFUSED = {
    "sigmoid": (MMDA(kernel="sigmoid"), "kernels linear, rbf, poly, .* got 'sigmoid'"),
    "cosine": (SVMPCA(kernel="cosine"), "got 'cosine'. Fit the method with one of them"),
    "laplacian": (GESVC(kernel="laplacian"), "got 'laplacian'"),
    "function": (GESVC(kernel=own_kernel), "got <function own_kernel"),
    "transformer": (LSVA(kernel=Nystroem(n_components=9)), "Put it into the pipeline"),
    "eigenmaps": (LaplacianEigenmaps(), "by a search for their neighbors. Use LPP or NPE"),
    "lle": (LocallyLinearEmbedding(), "a search for their neighbors"),
    "foreign map": (MarginMap(LogisticRegression()), "needs SVC or a classifier of marginfold"),
    "map of a pipeline": (
        MarginMap(make_pipeline(StandardScaler(), GESVC()), sharpness=1.0),
        "Put scalers and encoders into the pipeline before the map",
    ),
    "map of SVC": (MarginMap(SVC(kernel="sigmoid"), sharpness=1.0), "got 'sigmoid'"),
    "foreign step": (make_pipeline(Strange(), LDA()), "skl2onnx does not convert .*Strange"),
    "map of a kernel": (MarginMap(GESVC(kernel="cosine"), sharpness=1.0), "got 'cosine'"),
    "isotonic": (CalibratedClassifierCV(GESVC(), method="isotonic"), "knows method='sigmoid'"),
    "calibrated pipeline": (
        CalibratedClassifierCV(make_pipeline(StandardScaler(), GESVC())),
        "put its first steps before",
    ),
    "vote": (VotingClassifier([("own", GESVC())]), "they convert alone, in Pipeline"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_nodes_is_refused(case):
    model, message = REFUSED[case]
    X, y = DATA["wine"]
    with pytest.raises(InvalidInputError, match=message):
        to_onnx(make_pipeline(model).fit(X, y))


def test_an_error_inside_a_foreign_converter_is_told_with_its_source():
    def convert(scope, operator, container):
        try:
            raise TypeError("expected an int")
        except TypeError as error:
            raise ValueError(f"no node with values {list(range(1000))}\nmore") from error

    skl2onnx.update_registered_converter(Torn, "Torn", lambda operator: None, convert)
    X, y = DATA["wine"]
    with pytest.raises(InvalidInputError) as raised:
        to_onnx(make_pipeline(Torn(), LDA()).fit(X, y))
    assert "no node with values [0," in str(raised.value)
    assert "(expected an int) Replace the step" in str(raised.value)
    assert len(str(raised.value)) < 300


def test_a_precomputed_kernel_is_refused():
    X, y = DATA["wine"]
    model = GESVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(InvalidInputError, match="got 'precomputed'"):
        to_onnx(model)


def test_sparse_training_rows_are_refused_where_the_model_keeps_them():
    import scipy.sparse as sp

    X, y = sp.csr_array(DATA["digits"][0]), DATA["digits"][1]
    assert_same_answers(GESVC().fit(X, y), X.toarray())
    with pytest.raises(InvalidInputError, match=r"Fit it to X.toarray\(\)"):
        to_onnx(GESVC(kernel="rbf").fit(X, y))


def test_dates_are_no_labels_of_onnx():
    X, _ = DATA["wine"]
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], dtype="datetime64[D]")
    model = NeighborsClassifier().fit(X, WINE.target)
    model.classes_ = days
    with pytest.raises(InvalidInputError, match="words, whole numbers or truth values"):
        to_onnx(model)


def test_other_mistakes():
    X, y = DATA["wine"]
    with pytest.raises(NotFittedError):
        to_onnx(GESVC())
    with pytest.raises(InvalidParameterError, match="dtype must be np"):
        to_onnx(GESVC().fit(X, y), dtype=np.int64)
    register_converters()
    with pytest.raises(InvalidInputError, match="target_opset=12 is too old"):
        skl2onnx.to_onnx(GESVC().fit(X, y), X[:1], target_opset=12)


def test_nothing_of_the_model_is_changed():
    X, y = DATA["wine"]
    model = make_pipeline(StandardScaler(), SubspaceSearchCV(LSVA(2))).fit(X, y)
    before = repr(model), model.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MarginfoldWarning)
        to_onnx(model)
    assert isinstance(model[0], StandardScaler)
    assert repr(model) == before[0]
    np.testing.assert_array_equal(model.predict(X), before[1])
