"""What is computed for paper 004: Figures 2, 4 and 5, and their numbers over several seeds.

The paper prints neither its data nor the width of its kernel: both are ours, and several widths
are measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.spatial import cKDTree

from marginfold.data import noisy_sine
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.feature_maps import ExactKernel
from marginfold.linalg.tall import Array
from marginfold.papers import check_table
from marginfold.protocols.records import Result
from marginfold.protocols.study_size import Scale
from marginfold.protocols.study_tasks import Task

STUDY = "svmpca"

CLOUD, SINE = "cloud", "noisy sine"
"""The data of Figure 2, and that of Figures 4 and 5."""

CLOUD_ROWS, CLOUD_MEAN, CLOUD_MIXING = 100, (1.0, 2.0), ((2.0, 0.0), (1.0, 0.5))
"""A normal cloud off the origin, so that the bias matters: x = mean + mixing g."""

SINE_ROWS = 120
"""Rows of the noisy sine."""

COMPONENTS: dict[str, tuple[int, ...]] = {"score 1": (0,), "score 2": (1,), "both scores": (0, 1)}
"""What rows are rebuilt from."""

WIDTHS = (1.0, 4.0, 16.0, 50.0, 200.0)
"""sigma^2 of the kernel exp(-|x - y|^2 / sigma^2), 004 below eq. (37)."""

FIGURE_WIDTH = 50.0
"""The width of Figures 4 and 5."""

N_EIGENVALUES = 20
"""Eigenvalues shown in Figure 5."""

CURVE_POINTS = 5000
"""Points of the curve without noise, to which distances are taken."""

FIGURES = ("figure 2", "figure 4", "figure 5")


def plan(scale: Scale, table: str | None = None) -> list[Task]:
    """Return the tasks of all figures, or of one ("figure 2")."""
    check_table(STUDY, table, FIGURES)
    wanted = FIGURES if table is None else (table,)
    tasks = [task for name in wanted for task in _tasks(name, scale)]
    return list({task.key: task for task in tasks}.values())


def _tasks(name: str, scale: Scale) -> Iterable[Task]:
    seeds = scale.seeds
    if name == "figure 2":
        options: dict[str, object] = {"rows": CLOUD_ROWS}
        yield Task(STUDY, CLOUD, "SVMPCA", "picture", 0, -1, options, work=draw)
        for seed in seeds:
            yield Task(STUDY, CLOUD, "SVMPCA", "measure", seed, -1, options, work=measure)
    elif name == "figure 4":
        yield Task(STUDY, SINE, "SVMPCA", "picture", 0, -1, {"width": FIGURE_WIDTH}, work=draw)
        for width in WIDTHS:
            for seed in seeds:
                options = {"width": width}
                protocol = width_protocol(width)
                yield Task(STUDY, SINE, "SVMPCA", protocol, seed, -1, options, work=measure)
    else:
        for seed in seeds:
            options = {"width": FIGURE_WIDTH}
            yield Task(STUDY, SINE, "SVMPCA", "spectrum", seed, -1, options, work=spectrum)


def width_protocol(width: float) -> str:
    """Return the name of the measurements with a width of the kernel."""
    return f"width {width:g}"


def rows_of(task: Task) -> Array:
    """Return the rows that a task is about."""
    if task.dataset == SINE:
        return np.asarray(noisy_sine(SINE_ROWS, random_state=task.seed).X)
    rng = np.random.default_rng(task.seed)
    normal = rng.standard_normal((int(task.options["rows"]), 2))
    return np.asarray(normal @ np.array(CLOUD_MIXING).T + np.array(CLOUD_MEAN))


def model_of(task: Task, n_components: int | None = 2) -> SVMPCA:
    """Return the components of the figure: linear with a bias, or of an rbf kernel."""
    if task.dataset == SINE:
        kernel = ExactKernel("rbf", gamma=1.0 / task.options["width"])
        return SVMPCA(n_components, kernel=kernel, reconstruct="kernel_ridge")
    return SVMPCA(n_components, reconstruct="linear")


def draw(task: Task) -> list[Result]:
    """Return the rows, what is rebuilt from one and from both scores, and the scores."""
    X = rows_of(task)
    model = model_of(task).fit(X)
    sets = {"data": X, "scores": model.transform(X)}
    sets |= {name: model.denoise(X, list(chosen)) for name, chosen in COMPONENTS.items()}
    return [result for label, points in sets.items() for result in _coordinates(label, points)]


def _coordinates(label: str, points: Array) -> Iterable[Result]:
    for row, point in enumerate(points):
        for k, value in enumerate(point, start=1):
            yield Result("coordinate", float(value), {"row": row, "label": label}, dimension=k)


def measure(task: Task) -> list[Result]:
    """Return the correlation of the scores and the errors of what is rebuilt from them."""
    X = rows_of(task)
    model = model_of(task).fit(X)
    correlation = float(np.corrcoef(model.transform(X).T)[0, 1])
    results = [Result("correlation", abs(correlation))]
    rebuilt = {name: model.denoise(X, list(chosen)) for name, chosen in COMPONENTS.items()}
    for name, rows in rebuilt.items():
        error = float(((rows - X) ** 2).sum(axis=1).mean())
        results.append(Result("reconstruction_error", error, {"from": name}))
    return results + (_from_the_curve({"data": X} | rebuilt) if task.dataset == SINE else [])


def _from_the_curve(sets: Mapping[str, Array]) -> list[Result]:
    """Return mean squared distances to the sine without noise: what denoising should make small."""
    curve = cKDTree(noisy_sine(CURVE_POINTS, noise=0.0).X)
    return [
        Result("curve_error", float((curve.query(rows)[0] ** 2).mean()), {"from": name})
        for name, rows in sets.items()
    ]


def spectrum(task: Task) -> list[Result]:
    """Return the largest eigenvalues of the centred kernel matrix (004 eq. (34))."""
    model = model_of(task, N_EIGENVALUES).fit(rows_of(task))
    return [
        Result("eigenvalue", float(value), dimension=k)
        for k, value in enumerate(model.eigenvalues_, start=1)
    ]
