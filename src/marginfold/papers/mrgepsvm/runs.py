"""What is computed for paper 003; times, digits and planes have files of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from marginfold.linalg.tall import Array
from marginfold.papers import check_table
from marginfold.papers.mrgepsvm import methods
from marginfold.papers.mrgepsvm.digits import digit_tasks
from marginfold.papers.mrgepsvm.planes import plane_tasks
from marginfold.papers.mrgepsvm.times import time_tasks
from marginfold.papers.paper_data import rows_and_labels
from marginfold.protocols.feature_scaling import split_scaled
from marginfold.protocols.records import Result
from marginfold.protocols.splits import folds
from marginfold.protocols.study_size import Scale
from marginfold.protocols.study_tasks import Skip, Task

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

NO_DRIVERS = (
    "the recordings of drivers behind 003 Fig. 6 are not published: the paper names no source, "
    "and neither features nor rows are described"
)


def plan(scale: Scale, table: str | None = None) -> list[Task]:
    """Return the tasks of all tables and figures, or of one ("1", "figure 5").

    Examples
    --------
    >>> from marginfold.papers import mrgepsvm
    >>> from marginfold.protocols.study_size import SCALES
    >>> print(mrgepsvm.plan(SCALES["quick"], "2")[0])
    mrgepsvm hepatitis MRGEPSVM rbf, tuning set seed 0
    """
    makers: dict[str, Callable[[], Iterable[Task]]] = {
        "1": lambda: _tasks("1", scale),
        "2": lambda: _tasks("2", scale),
        "3": lambda: time_tasks("rbf", scale),
        "4": lambda: time_tasks("linear", scale),
        "5": lambda: digit_tasks(scale),
        "figure 5": plane_tasks,
        "figure 6": lambda: [Task(methods.STUDY, "drivers", "GEPSVM", "figure 6", work=no_drivers)],
    }
    check_table(methods.STUDY, table, [*makers])
    wanted = [*makers] if table is None else [table]
    return [task for name in wanted for task in makers[name]()]


def _tasks(number: str, scale: Scale) -> Iterable[Task]:
    kernel = KERNELS[number]
    options = {"grid": methods.grid(kernel, scale.name)}
    for dataset in DATASETS[number]:
        for method in methods.PRINTED:
            for seed in scale.seeds:
                yield Task(
                    methods.STUDY,
                    dataset,
                    method,
                    tuned(kernel),
                    seed,
                    options=options | {"folds": N_FOLDS},
                    work=measure_tuned,
                )
        for method in methods.CONTROLS[kernel] if scale.controls else ():
            for seed in scale.seeds:
                for fold in range(N_FOLDS):
                    yield Task(
                        methods.STUDY,
                        dataset,
                        method,
                        nested(kernel),
                        seed,
                        fold,
                        options | {"folds": N_FOLDS, "inner_folds": INNER_FOLDS},
                        work=measure_nested,
                    )


def tuned(kernel: str) -> str:
    """Return the name of the paper's protocol."""
    return f"{kernel}, tuning set"


def nested(kernel: str) -> str:
    """Return the name of the honest protocol."""
    return f"{kernel}, nested"


def measure_tuned(task: Task) -> list[Result]:
    """Choose parameters on a tenth of all rows, trained on the others; measure on all folds."""
    X, y = rows_and_labels(task.dataset)
    rest, tuning = folds(y, TUNING_FOLDS, task.seed)[0]
    splits = [_split(X, y, rest, tuning, "whole")]
    params = methods.chosen(task.method, task.options["grid"], splits)
    results = []
    for fold, (train, test) in enumerate(folds(y, task.options["folds"], task.seed)):
        error = methods.error(task.method, params, _split(X, y, train, test, "whole"))
        results.append(Result("error", error, params | {"test_fold": fold}))
    return results


def measure_nested(task: Task) -> list[Result]:
    """Choose parameters by folds of the training rows; measure on the test rows."""
    X, y = rows_and_labels(task.dataset)
    train, test = folds(y, task.options["folds"], task.seed)[task.fold]
    inner = [
        _split(X, y, train[own], train[other], "train")
        for own, other in folds(y[train], task.options["inner_folds"], task.seed)
    ]
    params = methods.chosen(task.method, task.options["grid"], inner)
    error = methods.error(task.method, params, _split(X, y, train, test, "train"))
    return [Result("error", error, params)]


def _split(X: Array, y: Array, train: Array, test: Array, scaling: str) -> methods.Split:
    rows, new = split_scaled(X, train, test, scaling)
    return rows, y[train], new, y[test]


def no_drivers(task: Task) -> list[Result]:
    """Say why Figure 6 is not measured."""
    raise Skip(NO_DRIVERS)
