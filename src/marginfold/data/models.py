"""Saved models: skops files that hold known types only, written whole, refused with a reason."""

from __future__ import annotations

import io
import json
import os
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    jaccard_score,
    log_loss,
    matthews_corrcoef,
    precision_score,
    recall_score,
    roc_auc_score,
    top_k_accuracy_score,
)
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from marginfold._version import __version__
from marginfold.data.reading import Reading
from marginfold.data.sound import BOOSTED_TREE, as_written, restore, unsound
from marginfold.data.table_model import TableModel
from marginfold.data.written import DateStyle, NumberStyle
from marginfold.errors import InvalidInputError, MarginfoldWarning, TooLargeError, warn
from marginfold.estimators.discriminant import KDA, LDA
from marginfold.estimators.eigenmaps import LaplacianEigenmaps
from marginfold.estimators.gesvm import GESVC, LapSVC
from marginfold.estimators.graph_embedding import GraphEmbedding
from marginfold.estimators.locally_linear import LocallyLinearEmbedding
from marginfold.estimators.lpp import LPP, NPE
from marginfold.estimators.lsva import LSVA
from marginfold.estimators.margin_map import MarginMap
from marginfold.estimators.mmda import MMDA
from marginfold.estimators.mrgepsvm import GEPSVC, MRGEPSVC
from marginfold.estimators.projection import AffineSubspace, FixedPoint, Learned, LeastSquares
from marginfold.estimators.second_axis import SecondAxis
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.estimators.twinsvm import TwinSVC
from marginfold.estimators.wsvda import WSVDA
from marginfold.feature_maps import ExactKernel, Linear, LowRankKernel, Transformed
from marginfold.feature_maps.kernel_expansion import KernelExpansion
from marginfold.graphs import SHORTHANDS, PermutedGraph, PrecomputedGraph, ScaledGraph, SumGraph
from marginfold.graphs.neighbors import HeatLink, InverseDistanceLink
from marginfold.graphs.reconstruction import BarycentricLink
from marginfold.model_selection.neighbors_classifier import NeighborsClassifier
from marginfold.model_selection.path_search import PathSearchCV
from marginfold.model_selection.subspace_search import SubspaceSearchCV
from marginfold.runtime.extras import require
from marginfold.runtime.files import check_writable, write_file
from marginfold.svm import Automatic, InteriorPoint, LibSVM
from marginfold.validation.parameters import shown
from marginfold.validation.types import Estimator

SCHEMA = 1
"""Number of the layout of a model file; a larger one was written by a later marginfold."""

HEADER = "marginfold.json"
"""Member of the archive with the schema and the versions, read before anything else."""

LIBRARIES = ("numpy", "scipy", "scikit-learn", "skops")
"""Distributions whose versions are noted in a model file."""

COMPARED = ("marginfold", "numpy", "scikit-learn")
"""Versions whose difference is worth a warning."""

LOSSY_KEYS = frozenset({"bool", "bool_"})
"""Types of dictionary keys that the format reads back as something else."""

TYPES = (
    *(GEPSVC, GESVC, KDA, LDA, LPP, LSVA, MMDA, MRGEPSVC, NPE, SVMPCA, WSVDA, GraphEmbedding),
    *(LapSVC, LaplacianEigenmaps, LocallyLinearEmbedding, MarginMap, TwinSVC),
    *(ExactKernel, KernelExpansion, Linear, LowRankKernel, Transformed),
    *(Automatic, InteriorPoint, LibSVM),
    *(*SHORTHANDS.values(), PermutedGraph, PrecomputedGraph, ScaledGraph, SumGraph),
    *(BarycentricLink, HeatLink, InverseDistanceLink, AffineSubspace, FixedPoint),
    *(Learned, LeastSquares, SecondAxis),
    *(NeighborsClassifier, PathSearchCV, SubspaceSearchCV, TableModel),
    *(DateStyle, NumberStyle, Reading),
)
"""The public estimators, and what a fitted one may be made of."""

SPLITTERS = (
    *(GroupKFold, KFold, LeaveOneOut, RepeatedKFold, RepeatedStratifiedKFold, ShuffleSplit),
    *(StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit),
)
"""How scikit-learn's searches and calibrations part the rows."""

SCORES = (
    *(accuracy_score, average_precision_score, balanced_accuracy_score, brier_score_loss),
    *(f1_score, jaccard_score, log_loss, matthews_corrcoef, precision_score, recall_score),
    *(roc_auc_score, top_k_accuracy_score),
)
"""By what scikit-learn's searches score classifiers: functions of labels and predictions."""

FOREIGN = frozenset(
    {
        "numpy.dtype",
        "sklearn.compose._column_transformer._RemainderColsList",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        BOOSTED_TREE,
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
    }
)
"""Private types in fitted scikit-learn parts that skops does not trust by itself, all of them plain
values with attributes: the type of an encoder's output, the list of unused columns (before
scikit-learn 1.9), calibrated classifiers, boosted trees (`check_boosted_trees`), scorers, and what
those of scikit-learn 1.6 say of metadata."""

ALLOWED = FOREIGN | {
    f"{kind.__module__}.{kind.__qualname__}" for kind in (*TYPES, *SPLITTERS, *SCORES)
}
"""The types that a model file may hold beside those that skops itself trusts.  Nothing in a file
adds to this list."""


def save_model(
    model: Estimator | TableModel, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Save a fitted model to a skops file that `load_model` accepts.

    Parameters
    ----------
    model : estimator, pipeline or table model
        A fitted estimator of marginfold or a classifier of scikit-learn (logistic regression,
        support vectors, nearest neighbors with any ``algorithm``, HistGradientBoosting without
        categorical features), alone, in a pipeline, calibrated, or in a search over lists of
        values.  Forests and other trees of scikit-learn are refused.
    path : str or path
        The file; it is written completely or not at all.
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Raises
    ------
    InvalidInputError
        If the file exists, if the model is not fitted or not a model, or if it contains a type that
        `load_model` would refuse, such as your own function as a kernel.  Nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import LSVA
    >>> from marginfold.data.models import load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSVA().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "iris.skops")
    ...     loaded = load_model(Path(folder) / "iris.skops")
    >>> bool((loaded.transform(X) == model.transform(X)).all())
    True
    """
    check_writable(path, overwrite=overwrite)
    write_file(path, _serialized(model), overwrite=overwrite)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model that `save_model` wrote; no code of the file is run.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator, pipeline or table model

    Raises
    ------
    InvalidInputError
        If the file is not a model file, is damaged, was written by a later version of marginfold,
        or contains an unknown type, a model that is not fitted, or numbers that cannot come from a
        fit (not finite, or of shapes that do not match).  Nothing is loaded then.

    Warns
    -----
    MarginfoldWarning
        If the file was written with other versions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import GEPSVC
    >>> from marginfold.data.models import load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(GEPSVC().fit(X, y), Path(folder) / "iris.skops")
    ...     load_model(Path(folder) / "iris.skops")
    GEPSVC()
    """
    skops_io = _skops()
    content = _read(Path(path))
    header = _header(path, content)
    try:
        strange = set(skops_io.get_untrusted_types(data=content)) - ALLOWED
    except MemoryError as error:
        raise _too_large(path) from error
    except Exception as error:
        raise _damaged(path, error) from error
    if strange:
        raise InvalidInputError(
            f"{path} contains types that no marginfold model has: {_listed(strange)}; nothing was "
            "loaded. Use a file that save_model wrote, from a source you trust."
        )
    try:
        model = skops_io.loads(content, trusted=sorted(ALLOWED))
        restore(model)
    except MemoryError as error:
        raise _too_large(path) from error
    except Exception as error:
        raise _damaged(path, error) from error
    lack = _lack(model)
    if lack:
        raise InvalidInputError(f"{path} contains {lack}; nothing was loaded. Save a fitted model.")
    fault = unsound(model)
    if fault:
        raise InvalidInputError(
            f"{path} contains numbers that cannot come from a fit: {fault}; nothing was loaded. "
            "Save the model again, and take files from sources you trust."
        )
    _compare_versions(path, header)
    return model


def _serialized(model: Any) -> bytes:
    """Return the archive, after checking that it can be loaded again as it is."""
    skops_io = _skops()
    name = type(model).__name__
    lack = _lack(model)
    if lack:
        raise InvalidInputError(f"a fitted model is needed; got {lack}. Save what fit returns.")
    try:
        content: bytes = skops_io.dumps(as_written(model))
    except InvalidInputError:
        raise
    except Exception as error:
        raise InvalidInputError(
            f"this {name} cannot be saved: {_line(error)}. Use parts from marginfold and "
            "scikit-learn, and plain parameters."
        ) from error
    strange = set(skops_io.get_untrusted_types(data=content)) - ALLOWED
    if strange:
        raise InvalidInputError(
            f"this {name} cannot be saved: it contains {_listed(strange)}, which load_model would "
            "refuse. Functions and classes of your own are never saved: use named ones of "
            "marginfold or scikit-learn. Of scikit-learn's, forests and distributions of a "
            "randomized search are refused too: save the search's best_estimator_."
        )
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if _has_lossy_keys(json.loads(archive.read("schema.json"))):
            raise InvalidInputError(
                f"this {name} cannot be saved: a dictionary in it has True or False as key. Use "
                "numbers or strings as labels."
            )
    return _with_header(content)


def _lack(model: Any) -> str:
    """Return what something is that is no fitted model; nothing of one that is."""
    kind = type(model).__name__
    if not isinstance(model, (BaseEstimator, TableModel)):
        return f"no model but {kind} {shown(model)}"
    fitted = model.pipeline if isinstance(model, TableModel) else model
    if isinstance(model, TableModel) and not isinstance(fitted, Pipeline):
        return f"a table model whose pipeline is {type(fitted).__name__} {shown(fitted)}"
    try:
        check_is_fitted(fitted)
    except NotFittedError:
        return f"{kind} that was never fitted"
    return ""


def _with_header(content: bytes) -> bytes:
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(HEADER, json.dumps({"schema": SCHEMA, **_versions()}))
    return buffer.getvalue()


def _versions() -> dict[str, str]:
    return {"marginfold": __version__, **{name: version(name) for name in LIBRARIES}}


def _has_lossy_keys(node: Any) -> bool:
    """Return whether a node of the schema, or one below it, has keys that would change."""
    if isinstance(node, list):
        return any(_has_lossy_keys(child) for child in node)
    if not isinstance(node, dict):
        return False
    if node.get("__loader__") == "DictNode":
        kinds = {kind["__class__"] for kind in node["key_types"]["content"]}
        if kinds & LOSSY_KEYS:
            return True
    return any(_has_lossy_keys(child) for child in node.values())


def _read(path: Path) -> bytes:
    if not path.exists():
        raise InvalidInputError(
            f"there is no model file {path}; check the name and the folder, or write one with "
            "save_model ('marginfold fit --save' on the command line)."
        )
    if not path.is_file():
        raise InvalidInputError(f"{path} is not a regular file; a model file is needed.")
    return path.read_bytes()


def _header(path: str | os.PathLike[str], content: bytes) -> dict[str, Any]:
    """Return schema and versions; refuse what is no whole model file of a known schema."""
    if not content.startswith(b"PK"):
        raise InvalidInputError(
            f"{path} is not a model file (skops); pickle and joblib files are never loaded. Save "
            "the model again with save_model."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            found = HEADER in archive.namelist()
            header = json.loads(archive.read(HEADER)) if found else {}
            schema = int(header["schema"]) if found else 0
    except MemoryError as error:
        raise _too_large(path) from error
    except Exception as error:
        raise _damaged(path, error) from error
    if not found:
        raise InvalidInputError(
            f"{path} was not written by marginfold; nothing was loaded. Save the model with "
            "save_model."
        )
    if sum(member.file_size for member in members) > len(content):
        raise InvalidInputError(
            f"{path} unpacks to more than its size, which no marginfold model does; nothing was "
            "loaded."
        )
    if schema > SCHEMA:
        raise InvalidInputError(
            f"{path} has schema {schema} (marginfold {header.get('marginfold', 'unknown')}); "
            f"marginfold {__version__} reads up to {SCHEMA}. Update marginfold."
        )
    return dict(header)


def _compare_versions(path: str | os.PathLike[str], header: dict[str, Any]) -> None:
    ours = _versions()
    different = [
        f"{name} {header.get(name, 'unknown')} (here {ours[name]})"
        for name in COMPARED
        if header.get(name) != ours[name]
    ]
    if different:
        warn(
            f"{path} was saved with {', '.join(different)}; results may differ. Fit and save the "
            "model again to be sure.",
            MarginfoldWarning,
        )


def _too_large(path: str | os.PathLike[str]) -> TooLargeError:
    return TooLargeError(
        f"the memory ran out while {path} was loaded, which says nothing against the file; end "
        "other programs, or load it where there is more memory."
    )


def _damaged(path: str | os.PathLike[str], error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"{path} is damaged or no model file ({_line(error)}); nothing was loaded. Save the model "
        "again."
    )


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: " + " ".join(str(error).split()).rstrip(".")


def _skops() -> Any:
    require("skops")
    import skops.io

    return skops.io
