"""What is computed for paper 003: accuracies, times, digits and planes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
from sklearn.base import clone

from marginfold.data import cross_planes
from marginfold.estimators.lpp import LPP
from marginfold.feature_maps import ExactKernel
from marginfold.graphs import NeighborGraph
from marginfold.linalg.tall import Array
from marginfold.papers import ABSENT_FIGURES
from marginfold.papers.mrgepsvm import methods
from marginfold.papers.paper_data import rows_and_labels, scaled_fold, split_scaled
from marginfold.protocols.embeddings import EmbeddingMethod, best_selection
from marginfold.protocols.records import Result
from marginfold.protocols.results import coordinate_results
from marginfold.protocols.splits import Fold, folds
from marginfold.protocols.studies import Skip, StudySize, Task, select_tasks, study_size

KERNELS = {"1": "linear", "2": "rbf"}
"""The kernel of each table of accuracies."""

DATASETS = {
    "1": ("hepatitis", "ionosphere", "heart", "votes", "sonar", "diabetes"),
    "2": ("hepatitis", "liver", "wpbc"),
}
"""The rows of these tables."""

N_FOLDS = 5
"""Folds on which accuracy is measured; the paper has none."""

TUNING_FOLDS = 10
"""One of these folds is the paper's tuning set of 10 percent."""

INNER_FOLDS = 3
"""Folds of the training rows on which the nested protocol chooses."""

TIMED_DATASETS = (
    *("votes", "sonar", "diabetes", "ida_flare_solar", "ida_waveform"),
    *("ida_thyroid", "ida_heart", "ida_banana", "ida_breast_cancer"),
)
"""Rows of Tables 3 and 4."""

KERNEL_ROWS = 1000
"""More rows than this are subsampled for the rbf kernel, whose cost is the cube of them."""

TIMED_REPEATS = {"quick": 3, "standard": 5, "full": 11}
"""Fits of each method, of which the median counts, by scale."""

TIMED_PARAMS = {"ridge": 1.0, "graph_weight": 1.0, "C": 1.0}
"""What is timed: the middle of the grids."""

ALL_METHODS = "all methods"
"""The method of a task that times them side by side."""

DIGITS, RENDERING = "usps", "usps_roweis8"
"""All ten digits; and the images that the paper used, of which the digits 6 and 7 are lost."""

PER_CLASS = 110
"""Images drawn of each digit (003 section 6)."""

LABELLED = (10, 20, 30, 40, 50)
"""Of these, training images of each digit: the rows of Table 5."""

DIGIT_METHODS = ("SVM", "LPP", "TSVM", "GEPSVM", "MRGEPSVM")
"""Columns of Table 5."""

DIGIT_VARIANTS = ("SVM defaults", "GEPSVM one against rest")
"""Columns beside them: an SVM whose parameters are not chosen, and the other use of planes."""

DIGIT_DEFAULTS = {"C": 1.0, "gamma": 2.0**-10}
"""The defaults of LIBSVM, C = 1 and gamma = 1/d, of grey values in [0, 1]: ours are in [-1, 1]."""

GAMMA_EXPONENT = -8
"""gamma = 2^-8 = 1/d of the rbf kernel; with planes of pixels GEPSVM is right on half the rows."""

DIGIT_GRID = {"C": [-3, 3], "ridge": [-6, -3, 0, 3], "graph_weight": [-6, 0, 6]}
QUICK_DIGIT_GRID = {"C": [0], "ridge": [-3, 0], "graph_weight": [0]}
"""Exponents of what is tried."""

DIGIT_SETTING = methods.Setting(tikhonov="rkhs", width="auto", multiclass="one_vs_one")
"""Images are too far apart for the heat width 2, and the printed Tikhonov term fails on them."""

LPP_COMPONENTS = 60
"""Most components of LPP."""

HEAD = "1-nn"
"""The classifier on the components of LPP."""

PLANES = "cross_planes"

PLANE_METHODS = ("GEPSVM", "MRGEPSVM")
"""The panels."""

PLANE_PARAMS = {"ridge": 2.0**-3, "graph_weight": 1.0}
"""Weights of the figure; the paper gives none."""


def study_tasks(size: StudySize, table: str | None = None) -> list[Task]:
    """Return the tasks of all tables and figures, or of one ("1", "figure 5").

    Examples
    --------
    >>> from marginfold.papers import mrgepsvm
    >>> from marginfold.protocols.studies import STUDY_SIZES
    >>> print(mrgepsvm.study_tasks(STUDY_SIZES["quick"], "2")[0])
    mrgepsvm hepatitis MRGEPSVM rbf, tuning set seed 0
    """
    makers: dict[str, Callable[[], Iterable[Task]]] = {
        "1": lambda: _tasks("1", size),
        "2": lambda: _tasks("2", size),
        "3": lambda: time_tasks("rbf", size),
        "4": lambda: time_tasks("linear", size),
        "5": lambda: digit_tasks(size),
        "figure 5": plane_tasks,
        "figure 6": lambda: [Task(methods.STUDY, "drivers", "GEPSVM", "figure 6", work=no_drivers)],
    }
    return select_tasks(methods.STUDY, table, [*makers], lambda name: makers[name]())


def _tasks(number: str, size: StudySize) -> Iterable[Task]:
    kernel = KERNELS[number]
    options = {"grid": methods.grid(kernel, size.name), "folds": N_FOLDS}
    inner = options | {"inner_folds": INNER_FOLDS}
    controls = methods.CONTROLS[kernel] if size.controls else ()
    for dataset in DATASETS[number]:
        for method, seed in product(methods.PRINTED, size.seeds):
            what = (methods.STUDY, dataset, method, tuned(kernel))
            yield Task(*what, seed, options=options, work=measure_tuned)
        for (method, params), seed in product(methods.UNTUNED[kernel].items(), size.seeds):
            what = (methods.STUDY, dataset, method, tuned(kernel))
            fixed = {"params": params, "folds": N_FOLDS}
            yield Task(*what, seed, options=fixed, work=measure_tuned)
        for method, seed, fold in product(controls, size.seeds, range(N_FOLDS)):
            what = (methods.STUDY, dataset, method, nested(kernel))
            yield Task(*what, seed, fold, inner, work=measure_nested)


def tuned(kernel: str) -> str:
    """Return the name of the paper's protocol."""
    return f"{kernel}, tuning set"


def nested(kernel: str) -> str:
    """Return the name of the honest protocol."""
    return f"{kernel}, nested"


def measure_tuned(task: Task) -> list[Result]:
    """Choose parameters on a tenth of all rows, trained on the others; measure on all folds.

    A task with parameters of its own leaves out the choice.
    """
    X, y = rows_and_labels(task.dataset)
    params = task.options.get("params")
    if params is None:
        rest, tuning = folds(y, TUNING_FOLDS, task.seed)[0]
        splits = [scaled_fold(X, y, rest, tuning, "whole")]
        params = methods.chosen(task.method, task.options["grid"], splits)
    results = []
    for fold, (train, test) in enumerate(folds(y, task.options["folds"], task.seed)):
        error = methods.error(task.method, params, scaled_fold(X, y, train, test, "whole"))
        results.append(Result("error", error, params | {"test_fold": fold}))
    return results


def measure_nested(task: Task) -> list[Result]:
    """Choose parameters by folds of the training rows; measure on the test rows."""
    X, y = rows_and_labels(task.dataset)
    train, test = folds(y, task.options["folds"], task.seed)[task.fold]
    inner = [
        scaled_fold(X, y, train[own], train[other], "train")
        for own, other in folds(y[train], task.options["inner_folds"], task.seed)
    ]
    params = methods.chosen(task.method, task.options["grid"], inner)
    error = methods.error(task.method, params, scaled_fold(X, y, train, test, "train"))
    return [Result("error", error, params)]


def no_drivers(task: Task) -> list[Result]:
    """Say why Figure 6 is not measured."""
    raise Skip(f"003 Figure 6: {ABSENT_FIGURES[methods.STUDY]['6']}")


def time_tasks(kernel: str, size: StudySize) -> Iterable[Task]:
    """Return one task for each row of a table of times."""
    options = {"repeats": repeats(size), "largest": KERNEL_ROWS}
    for dataset in TIMED_DATASETS:
        what = (methods.STUDY, dataset, ALL_METHODS, f"{kernel}, times")
        yield Task(*what, 0, options=options, work=measure_times)


def repeats(size: StudySize) -> int:
    """Return how often each method is fitted at a scale."""
    return TIMED_REPEATS[study_size(size.name).name]


def measure_times(task: Task) -> list[Result]:
    """Return the median CPU seconds of fitting each method; turns alternate between them."""
    X, y = rows_and_labels(task.dataset)
    kernel = task.protocol.split(",")[0]
    kept = np.arange(len(y))
    if kernel == "rbf" and len(y) > task.options["largest"]:
        drawn = np.random.default_rng(task.seed).choice(len(y), task.options["largest"], False)
        kept = np.sort(drawn)
    rows, _ = split_scaled(X[kept], np.arange(len(kept)), np.zeros(0, dtype=int), "whole")
    params = TIMED_PARAMS | ({"gamma": 1.0 / rows.shape[1]} if kernel == "rbf" else {})
    models = {name: methods.estimator(name, params) for name in methods.PRINTED}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for repeat in range(task.options["repeats"] + 1):
        for name, model in models.items():
            start = time.process_time()
            clone(model).fit(rows, y[kept])
            if repeat:  # the first turn warms up
                seconds[name].append(time.process_time() - start)
    return [
        Result("seconds", float(np.median(taken)), {"method": name, "rows": len(kept)})
        for name, taken in seconds.items()
    ]


def digit_tasks(size: StudySize) -> Iterable[Task]:
    """Return the tasks of Table 5; the other rendering of the digits is a control."""
    options = {"grid": digit_grid(size), "per_class": PER_CLASS, "inner_folds": INNER_FOLDS}
    for dataset, n_labelled in product(renderings(size), LABELLED):
        chosen = options | {"labelled": n_labelled, "planes": DIGIT_SETTING.multiclass}
        for method, seed in product((*DIGIT_METHODS, *DIGIT_VARIANTS), size.seeds):
            what = (methods.STUDY, dataset, method, row_name(n_labelled))
            yield Task(*what, seed, options=chosen, work=measure_digits)


def digit_grid(size: StudySize) -> dict[str, list[int]]:
    """Return the exponents that are tried at a scale."""
    return (QUICK_DIGIT_GRID if size.name == "quick" else DIGIT_GRID) | {"gamma": [GAMMA_EXPONENT]}


def renderings(size: StudySize) -> tuple[str, ...]:
    """Return the data sets: the second one costs as much again, and is for the full scale."""
    return (DIGITS, RENDERING) if size.name == "full" else (DIGITS,)


def row_name(n_labelled: int) -> str:
    """Return the name of a row of Table 5."""
    return f"l = {n_labelled}"


def measure_digits(task: Task) -> list[Result]:
    """Draw images, choose parameters by folds of the training images, measure on the others."""
    X, y = rows_and_labels(task.dataset)
    train, test = drawn(y, task.options["per_class"], task.options["labelled"], task.seed)
    outer = scaled_fold(X, y, train, test, "global")
    inner = outer.inner(task.options["inner_folds"], task.seed)
    if task.method == "LPP":
        return _measure_lpp(task, inner, outer)
    params: methods.Params = DIGIT_DEFAULTS
    if task.method != "SVM defaults":
        params = methods.chosen(task.method, task.options["grid"], inner, DIGIT_SETTING)
    error = methods.error(task.method, params, outer, DIGIT_SETTING)
    return [Result("error", error, params)]


def drawn(y: Array, per_class: int, n_labelled: int, seed: int) -> tuple[Array, Array]:
    """Return training and test rows: of each class so many, of which the first are labelled.

    The rows of a seed are the same for all numbers of labels, and training rows are nested.
    """
    rng = np.random.default_rng(seed)
    train, test = [], []
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        if len(members) < per_class:
            raise Skip(f"{per_class} rows of each class are needed; class {label} has fewer")
        chosen = rng.permutation(members)[:per_class]
        train.append(chosen[:n_labelled])
        test.append(chosen[n_labelled:])
    return np.concatenate(train), np.concatenate(test)


def _measure_lpp(task: Task, inner: list[Fold], outer: Fold) -> list[Result]:
    """Choose ridge and dimension of LPP with 1-NN; return the test error."""
    choices = []
    for ridge in (2.0**i for i in task.options["grid"]["ridge"]):
        choice = best_selection([_lpp(ridge).curves(part, [HEAD]) for part in inner], HEAD)
        if choice is not None:
            choices.append((choice.error, choice.dimension, ridge))
    if not choices:
        raise Skip("LPP finds no direction in some fold")
    _, dimension, ridge = min(choices)
    errors = _lpp(ridge).curves(outer, [HEAD])[HEAD, None]
    k = min(dimension, len(errors))
    return [Result("error", float(errors[k - 1]), {"head": HEAD, "ridge": ridge}, k)]


def _lpp(ridge: float) -> EmbeddingMethod:
    graph = NeighborGraph(methods.NEIGHBORS, within_class=True)
    kernel = ExactKernel("rbf", gamma=2.0**GAMMA_EXPONENT)
    return EmbeddingMethod(LPP(LPP_COMPONENTS, graph=graph, ridge=ridge, kernel=kernel))


def plane_tasks() -> Iterable[Task]:
    """Return one task for each panel."""
    for method in PLANE_METHODS:
        what = (methods.STUDY, PLANES, method, "picture")
        yield Task(*what, 0, options=dict(PLANE_PARAMS), work=learn_planes)


def learn_planes(task: Task) -> list[Result]:
    """Return the rows, the planes (normal, then offset) and the training error."""
    data = cross_planes(random_state=task.seed)
    X, y = data.X, np.asarray(data.y)
    model = methods.estimator(task.method, task.options).fit(X, y)
    results = coordinate_results(X, y.tolist())
    for plane in model.planes_:
        values = (*plane.normal, plane.offset)
        results += [
            Result("plane", float(value), {"label": int(plane.label)}, dimension=k)
            for k, value in enumerate(values, start=1)
        ]
    wrong = float(np.mean(model.predict(X) != y))
    return [*results, Result("error", wrong, dict(PLANE_PARAMS))]
