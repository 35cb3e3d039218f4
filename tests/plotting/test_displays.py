"""Displays: what is drawn is what the estimator or the result says, on whatever rows and axes."""

from __future__ import annotations

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from matplotlib.colors import to_rgba
from scipy.stats import beta
from sklearn.datasets import load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import marginfold
from marginfold import (
    GEPSVC,
    GESVC,
    KDA,
    LDA,
    LPP,
    LSVA,
    EmbeddingDisplay,
    GainDisplay,
    GraphTestDisplay,
    LapSVC,
    LoadingsDisplay,
    MarginMap,
    MarginMapDisplay,
    PathDisplay,
    PathSearchCV,
    PlanesDisplay,
    SubspaceSearchCV,
    TwinSVC,
    graph_permutation_test,
    path,
)
from marginfold.errors import InvalidInputError
from marginfold.plotting.drawing import style
from marginfold.protocols.statistics import share_interval

WINE = load_wine()
X, y = StandardScaler().fit_transform(WINE.data), WINE.target_names[WINE.target]
SEEN, NEW = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
HELD_OUT = (X[NEW], y[NEW])
MODEL = LSVA(4).fit(X[SEEN], y[SEEN])


@pytest.fixture(autouse=True)
def _no_open_figures():
    yield
    plt.close("all")


def sorted_rows(points):
    points = np.asarray(points)
    return points[np.lexsort(points.T)]


def hollow_and_filled(display):
    """The scatters of rows that the fit has seen, and of the others."""
    scatters = [
        c for c in display.ax_.collections if hasattr(c, "get_sizes") and len(c.get_sizes())
    ]
    hollow = [c for c in scatters if not len(c.get_facecolors())]
    return hollow, [c for c in scatters if len(c.get_facecolors())]


def legend_names(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


# Embeddings


def test_points_stand_where_transform_puts_them_hollow_if_seen_and_filled_if_not():
    display = EmbeddingDisplay.from_estimator(MODEL, X[SEEN], y[SEEN], held_out=HELD_OUT)
    (hollow,), (filled,) = hollow_and_filled(display)
    for scatter, rows in ((hollow, X[SEEN]), (filled, X[NEW])):
        expected = MODEL.transform(rows)[:, :2]
        assert np.array_equal(sorted_rows(scatter.get_offsets()), sorted_rows(expected))
    assert sorted(legend_names(display)) == sorted([*WINE.target_names, "held out", "training"])


def test_every_point_has_the_colour_of_its_class():
    display = EmbeddingDisplay.from_estimator(MODEL, X[SEEN], y[SEEN], held_out=HELD_OUT)
    _, (filled,) = hollow_and_filled(display)
    colours = {name: style(k).color for k, name in enumerate(WINE.target_names)}
    expected = {
        (*xy, to_rgba(colours[label], filled.get_alpha()))
        for xy, label in zip(MODEL.transform(X[NEW])[:, :2], y[NEW], strict=True)
    }
    drawn = zip(filled.get_offsets(), filled.get_facecolors(), strict=True)
    assert {(*xy, tuple(colour)) for xy, colour in drawn} == expected


def test_other_components_and_held_out_rows_alone_can_be_drawn():
    display = EmbeddingDisplay.from_estimator(
        MODEL, X[SEEN], y[SEEN], held_out=HELD_OUT, components=(3, 1), seen=False
    )
    hollow, (filled,) = hollow_and_filled(display)
    assert not hollow
    expected = MODEL.transform(X[NEW])[:, [3, 1]]
    assert np.array_equal(sorted_rows(filled.get_offsets()), sorted_rows(expected))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("component 4", "component 2")
    assert "training" not in legend_names(display)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, sp.csr_array, sp.csc_matrix])
def test_rows_of_any_type_are_drawn_alike(frame):
    wrapped = [frame(part) for part in (X[SEEN], X[NEW])]
    if frame in (pd.DataFrame, pl.DataFrame):
        series = pd.Series if frame is pd.DataFrame else pl.Series
        labels = [series(part.tolist()) for part in (y[SEEN], y[NEW])]
    else:
        labels = [y[SEEN], y[NEW]]
    model = LSVA(2).fit(wrapped[0], labels[0])
    display = EmbeddingDisplay.from_estimator(
        model, wrapped[0], labels[0], held_out=(wrapped[1], labels[1])
    )
    _, (filled,) = hollow_and_filled(display)
    expected = np.asarray(model.transform(wrapped[1]))
    assert np.array_equal(sorted_rows(filled.get_offsets()), sorted_rows(expected))


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_a_pipeline_with_any_output_and_a_search_are_drawn(output):
    pipeline = make_pipeline(StandardScaler(), PCA(3)).set_output(transform=output).fit(X)
    (hollow,), _ = hollow_and_filled(EmbeddingDisplay.from_estimator(pipeline, X, y))
    expected = np.asarray(pipeline.transform(X))[:, :2]
    assert np.array_equal(sorted_rows(hollow.get_offsets()), sorted_rows(expected))
    search = SubspaceSearchCV(LSVA(3), n_components=[2, 3], cv=2).fit(X, y)
    (hollow,), _ = hollow_and_filled(EmbeddingDisplay.from_estimator(search, X, y))
    assert np.array_equal(
        sorted_rows(hollow.get_offsets()), sorted_rows(search.transform(X)[:, :2])
    )


def test_errors_are_those_of_the_nearest_training_row():
    display = EmbeddingDisplay.from_estimator(
        LDA(2).fit(X[SEEN, :3], y[SEEN]),
        X[SEEN, :3],
        y[SEEN],
        held_out=(X[NEW, :3], y[NEW]),
        errors=True,
    )
    Z = display.coordinates
    neighbors = KNeighborsClassifier(1).fit(Z[: SEEN.sum()], y[SEEN])
    errors = display.neighbor_errors()
    assert errors["held out"].share == pytest.approx(1 - neighbors.score(Z[SEEN.sum() :], y[NEW]))
    distances = np.linalg.norm(Z[: SEEN.sum(), None] - Z[None, : SEEN.sum()], axis=2)
    np.fill_diagonal(distances, np.inf)
    wrong = y[SEEN][distances.argmin(axis=1)] != y[SEEN]
    assert (errors["training"].wrong, errors["training"].n_rows) == (wrong.sum(), SEEN.sum())
    assert 0 < errors["held out"].wrong
    title = display.ax_.get_title(loc="left")
    assert f"{100 * errors['held out'].share:.1f} % wrong" in title.splitlines()[0]


@pytest.mark.parametrize(("count", "n"), [(0, 20), (3, 50), (40, 80), (7, 7)])
def test_the_interval_of_a_share_holds_it_and_is_near_the_exact_one(count, n):
    low, high = share_interval(count, n)
    assert 0 <= low <= count / n <= high <= 1
    exact = beta.ppf([0.025, 0.975], [count or 1e-9, count + 1], [n - count + 1, n - count or 1e-9])
    assert np.allclose([low, high], exact, atol=1.5 / n)


def test_random_labels_part_training_rows_and_no_others():
    """What the open markers warn of."""
    rng = np.random.default_rng(0)
    noise, labels = rng.standard_normal((200, 80)), rng.integers(0, 2, 200)
    model = LDA(1, shrinkage=1e-3).fit(noise[:100], labels[:100])
    display = EmbeddingDisplay.from_estimator(
        model, noise[:100], labels[:100], held_out=(noise[100:], labels[100:])
    )
    errors = display.neighbor_errors()
    assert errors["training"].share < 0.1
    assert errors["held out"].share > 0.3


def test_of_one_component_each_class_has_a_line():
    two = np.where(y == "class_0", "yes", "no")
    model = LDA(1).fit(X, two)
    display = EmbeddingDisplay.from_estimator(model, X, two)
    (hollow,), _ = hollow_and_filled(display)
    offsets = np.asarray(hollow.get_offsets())
    order = np.argsort(offsets[:, 0])
    expected = np.argsort(model.transform(X)[:, 0])
    assert np.array_equal(offsets[order, 0], model.transform(X)[expected, 0])
    assert np.array_equal(np.round(offsets[order, 1]), (two == "yes")[expected])
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["no", "yes"]


def test_rows_without_a_label_are_grey_and_named_so():
    few = np.where(np.arange(len(y)) % 5 == 0, WINE.target, -1)
    model = LSVA(2, unlabeled=-1).fit(X, few)
    display = EmbeddingDisplay.from_estimator(model, X, few, errors=True)
    assert sorted(legend_names(display)) == ["0", "1", "2", "no label", "training"]
    assert display.neighbor_errors()["training"].n_rows == np.count_nonzero(few != -1)
    plain = EmbeddingDisplay.from_embedding(model.transform(X))
    assert legend_names(plain) == ["training"]


def test_fifty_thousand_points_are_pixels_and_do_not_hide_each_other():
    rows, labels = make_blobs(50_000, 4, centers=3, random_state=0)
    display = EmbeddingDisplay.from_embedding(rows, labels, held_out=labels == 0)
    small = EmbeddingDisplay.from_embedding(rows[:200], labels[:200], held_out=labels[:200] == 0)
    for many, few in zip(hollow_and_filled(display), hollow_and_filled(small), strict=True):
        assert many[0].get_rasterized()
        assert not few[0].get_rasterized()
        assert many[0].get_sizes()[0] < few[0].get_sizes()[0] / 5
        assert many[0].get_alpha() < few[0].get_alpha()


def test_a_hundred_classes_have_a_legend_that_says_how_many_it_leaves_out():
    rng = np.random.default_rng(0)
    labels = np.repeat([f"{k:03d} {'long name' * 3}" for k in range(100)], 3)
    display = EmbeddingDisplay.from_embedding(rng.standard_normal((300, 2)), labels)
    display.figure_.canvas.draw()
    names = legend_names(display)
    classes = [name for name in names if name[:3].isdigit()]
    assert f"and {100 - len(classes)} more" in names
    assert "training" in names
    assert display.figure_.get_size_inches()[1] < 6


@pytest.mark.parametrize("names", [["a", "b"], [f"class {k}" for k in range(12)]])
def test_the_legend_stays_in_the_figure_and_covers_no_label(names):
    rng = np.random.default_rng(0)
    labels = np.repeat(names, 5)
    display = EmbeddingDisplay.from_embedding(rng.standard_normal((len(labels), 2)), labels)
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend().get_window_extent()
    label = display.ax_.xaxis.label.get_window_extent()
    assert legend.y1 <= label.y0 + 1
    assert legend.x0 >= 0
    assert legend.y0 >= 0
    assert legend.x1 <= display.figure_.bbox.x1
    heights = {round(text.get_window_extent().y0) for text in display.ax_.get_legend().get_texts()}
    assert len(heights) == 1 or len(names) > 2


def test_names_are_shown_as_they_are():
    odd = np.array(["_private", "costs $5 or $x^{", "<b>"])
    labels = np.repeat(odd, 4)
    rows = np.random.default_rng(0).standard_normal((12, 2))
    display = EmbeddingDisplay.from_embedding(rows, labels)
    display.figure_.canvas.draw()
    assert set(odd) <= set(legend_names(display))


# Axes, figures, missing packages


@pytest.mark.parametrize("given", [True, False])
def test_a_display_draws_on_given_axes_and_leaves_no_setting_behind(given):
    before = dict(plt.rcParams)
    ax = plt.figure().add_subplot() if given else None
    display = GainDisplay([0.5, 0.2], [0.5, 0.1])
    assert not hasattr(display, "ax_")
    assert display.plot(ax) is display
    assert display.figure_ is display.ax_.figure
    assert not given or display.ax_ is ax
    assert len(plt.get_fignums()) == 1
    assert dict(plt.rcParams) == before


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
from marginfold import *
from marginfold.plotting import EmbeddingDisplay as same
assert same is EmbeddingDisplay
made = [
    EmbeddingDisplay([[0.0, 1.0]]),
    GainDisplay([0.5]),
    GraphTestDisplay(None),
    LoadingsDisplay([0.5]),
    MarginMapDisplay([[0.0, 1.0]], [1], [[0.0, 1.0]], [1]),
    PathDisplay([1], [2]),
    PlanesDisplay([[0.0, 1.0]], [1], [[0]], (0, 1, 0, 1), [1]),
]
for display in made:
    try:
        display.plot()
    except ModuleNotFoundError as error:
        assert str(error) == 'matplotlib is not installed: pip install "marginfold[plot]"', error
    else:
        raise AssertionError(display)
"""


def test_without_matplotlib_displays_can_be_made_and_say_what_drawing_needs():
    program = [sys.executable, "-c", WITHOUT_MATPLOTLIB]
    done = subprocess.run(program, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_axes_of_a_part_of_a_figure_will_do():
    part = plt.figure(layout="constrained").subfigures(1, 2)[1]
    display = EmbeddingDisplay.from_estimator(MODEL, X, y, ax=part.subplots())
    display.figure_.figure.canvas.draw()
    assert display.figure_ is part


def test_a_picture_is_as_wide_as_a_column():
    assert GainDisplay([0.5]).plot().figure_.get_size_inches()[0] == 3.5


def test_a_display_that_fails_leaves_no_figure():
    display = PathDisplay([1, 2], [3, 4], chosen=7)
    with pytest.raises(InvalidInputError, match="chosen must be one of"):
        display.plot()
    assert plt.get_fignums() == []


# Gains and loadings


def test_bars_are_as_high_as_the_gains():
    model = make_pipeline(StandardScaler(), LSVA(3, deflation="orthogonal")).fit(X, y)
    display = GainDisplay.from_estimator(model)
    heights = [bar.get_height() for bar in display.ax_.patches]
    assert heights == [*model[-1].gain_, *model[-1].new_gain_]
    assert legend_names(display) == ["gain", "new gain"]


def test_gains_of_machines_and_of_the_best_of_a_search_are_found():
    machines = GESVC().fit(X, y)
    heights = [bar.get_height() for bar in GainDisplay.from_estimator(machines).ax_.patches]
    assert heights == machines.gain_.tolist()
    search = SubspaceSearchCV(LSVA(3), cv=2).fit(X, y)
    heights = [bar.get_height() for bar in GainDisplay.from_estimator(search).ax_.patches]
    assert heights[: len(heights) // 2] == search.best_estimator_["subspace"].gain_.tolist()


def test_the_longest_bars_are_the_columns_that_move_the_component_most():
    frame = pd.DataFrame(WINE.data, columns=WINE.feature_names)
    model = make_pipeline(StandardScaler(), LSVA(2)).fit(frame, y)
    display = LoadingsDisplay.from_estimator(model, component=1, n_columns=5)
    step = 1e-3 * model[0].scale_
    slopes = [
        (model.transform(frame + step * np.eye(13)[j]) - model.transform(frame))[0, 1] / 1e-3
        for j in range(13)
    ]
    order = np.argsort(-np.abs(slopes))[:5]
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == [WINE.feature_names[j] for j in order]
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == pytest.approx([slopes[j] for j in order], rel=1e-6)
    assert display.ax_.yaxis_inverted()


def test_with_rows_a_loading_is_per_standard_deviation_for_kernels_too():
    raw = WINE.data[:, :4]
    plain = LoadingsDisplay.from_estimator(PCA(2).fit(raw), raw)
    assert np.allclose(plain.loadings, PCA(2).fit(raw).components_[0] * raw.std(axis=0))
    linear = LSVA(2).fit(sp.csr_array(raw), y)
    sparse = LoadingsDisplay.from_estimator(linear, sp.csr_array(raw), component=1)
    assert np.allclose(sparse.loadings, linear.loadings(raw)[0, 1] * raw.std(axis=0))
    model = KDA(2).fit(X[:, :4], y)
    bent = LoadingsDisplay.from_estimator(model, X[:, :4], component=1)
    assert np.allclose(bent.loadings, model.loadings(X[:, :4])[:, 1].mean(axis=0))
    with pytest.raises(InvalidInputError, match=r"not linear.*Give X"):
        LoadingsDisplay.from_estimator(model)


# Paths


@pytest.mark.parametrize("kind", ["subspace", "path", "grid"])
def test_a_search_is_drawn_as_its_errors_with_the_other_parameters_as_chosen(kind):
    weights = [0.0, 0.1, 10.0, 1.0]
    if kind == "subspace":
        search = SubspaceSearchCV(LSVA(3), graph_weight=weights, C=[0.01, 1], cv=3)
    elif kind == "path":
        search = PathSearchCV(GESVC(), graph_weight=weights, C=[0.01, 1], cv=3)
    else:
        pipeline = make_pipeline(StandardScaler(), GESVC())
        grid = {"gesvc__graph_weight": weights, "gesvc__C": [0.01, 1]}
        search = GridSearchCV(pipeline, grid, cv=3)
    search.fit(X, y)
    display = PathDisplay.from_estimator(search)
    prefix = "gesvc__" if kind == "grid" else ""
    errors = {}
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        if params | {f"{prefix}graph_weight": 0} == search.best_params_ | {
            f"{prefix}graph_weight": 0
        }:
            errors[params[f"{prefix}graph_weight"]] = 100 * (1 - score)
    curve, chosen = display.ax_.lines
    assert np.allclose(curve.get_xdata(), sorted(weights))
    assert np.allclose(curve.get_ydata(), [errors[weight] for weight in sorted(weights)])
    assert chosen.get_xdata()[0] == search.best_params_[f"{prefix}graph_weight"]
    assert chosen.get_ydata()[0] == pytest.approx(100 * (1 - search.best_score_))


def test_a_search_for_another_score_is_drawn_as_that():
    search = PathSearchCV(GESVC(), C=[0.01, 1, 3], scoring="balanced_accuracy", cv=3).fit(X, y)
    display = PathDisplay.from_estimator(search, parameter="C")
    assert display.ax_.get_ylabel() == "held-out score"
    assert np.array_equal(display.measured, search.cv_results_["mean_test_score"])
    with pytest.raises(InvalidInputError, match=r"graph_weight was not varied.*C"):
        PathDisplay.from_estimator(search)


def test_a_path_is_drawn_as_the_errors_on_held_out_rows():
    weights = [0.1, 1.0, 10.0]
    seen = (X[SEEN, :2], y[SEEN])
    new = (X[NEW, :2], y[NEW])
    classifiers = path(GESVC(), *seen, C=[0.01, 1], graph_weight=weights)
    display = PathDisplay.from_path(classifiers, *seen, held_out=new)
    scores = {(fit.C, fit.graph_weight): fit.score(*new) for fit in classifiers}
    cost = max(scores, key=scores.get)[0]
    assert np.allclose(display.measured, [100 * (1 - scores[cost, w]) for w in weights])
    maps = LSVA(2).fit_path(*seen, graph_weight=weights)
    display = PathDisplay.from_path(maps, *seen, held_out=new)
    heads = [KNeighborsClassifier(1).fit(fit.transform(seen[0]), seen[1]) for fit in maps]
    expected = [
        100 * (1 - head.score(fit.transform(new[0]), new[1]))
        for fit, head in zip(maps, heads, strict=True)
    ]
    assert np.allclose(display.measured, expected)
    assert display.chosen == weights[int(np.argmin(expected))]


# Maps with anchors


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame])
def test_a_margin_map_has_its_anchors_with_names_and_rows_where_transform_puts_them(frame):
    seen, new = frame(X[SEEN]), frame(X[NEW])
    model = make_pipeline(StandardScaler(), MarginMap()).fit(seen, y[SEEN])
    display = MarginMapDisplay.from_estimator(model, seen, y[SEEN], held_out=(new, y[NEW]))
    (hollow,), (filled,) = hollow_and_filled(display)
    assert np.array_equal(sorted_rows(hollow.get_offsets()), sorted_rows(model.transform(seen)))
    assert np.array_equal(sorted_rows(filled.get_offsets()), sorted_rows(model.transform(new)))
    named = {text.get_text(): tuple(text.xy) for text in display.ax_.texts}
    anchors = model[-1].anchors_
    assert named == {name: tuple(a) for name, a in zip(model[-1].classes_, anchors, strict=True)}
    assert legend_names(display) == ["held out", "training"]


def test_names_of_many_anchors_do_not_overlap_and_stay_in_the_figure():
    angles = 2 * np.pi * np.arange(26) / 26
    anchors = np.column_stack([np.cos(angles), np.sin(angles)])
    names = [f"letter {chr(97 + k)}" for k in range(26)]
    display = MarginMapDisplay(0.5 * anchors, names, anchors, names).plot()
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.texts]
    figure = display.figure_.bbox
    assert all(figure.x0 - 2 <= box.x0 and box.x1 <= figure.x1 + 2 for box in boxes)
    assert all(figure.y0 - 2 <= box.y0 and box.y1 <= figure.y1 + 2 for box in boxes)
    top = display.ax_.get_legend().get_window_extent().y1
    assert top <= min(box.y0 for box in boxes) + 2


def test_colours_follow_the_anchors_where_a_class_has_no_row():
    model = MarginMap().fit(X, y)
    some = y != "class_0"
    display = MarginMapDisplay.from_estimator(model, X[some], y[some])
    (hollow,), _ = hollow_and_filled(display)
    colours = {tuple(colour[:3]) for colour in hollow.get_edgecolors()}
    assert colours == {to_rgba(style(k).color)[:3] for k in (1, 2)}


# The permutation test


@pytest.mark.parametrize("model", [LPP(1), GESVC()])
def test_the_distribution_holds_all_permutations_and_the_lines_are_the_scores(model):
    result = graph_permutation_test(model, X, y, cv=3, n_permutations=19)
    display = GraphTestDisplay.from_result(result)
    bars = display.ax_.patches
    assert sum(bar.get_height() for bar in bars) == 19
    for bar in bars:
        left, right = bar.get_x(), bar.get_x() + bar.get_width()
        inside = (left < result.permuted_scores) & (result.permuted_scores < right)
        assert np.count_nonzero(inside) <= bar.get_height()
    lines = [line.get_xdata()[0] for line in display.ax_.lines]
    scores = [result.score, result.without_graph]
    assert lines == [score for score in scores if score is not None]
    assert " ".join(display.ax_.get_title(loc="left").split()) == result.verdict


# Planes and regions

CROSS = np.random.default_rng(0).uniform(-1, 1, (120, 1))
CROSS = np.hstack([CROSS, np.where(np.arange(120)[:, None] < 60, CROSS, -CROSS)])
CROSS += 0.05 * np.random.default_rng(1).standard_normal(CROSS.shape)
WAYS = np.repeat(["rising", "falling"], 60)


def pixel_middles(display):
    (image,) = display.ax_.images
    left, right, bottom, top = image.get_extent()
    n_heights, n_widths = image.get_array().shape
    x = left + (right - left) * (np.arange(n_widths) + 0.5) / n_widths
    heights = bottom + (top - bottom) * (np.arange(n_heights) + 0.5) / n_heights
    return np.array([[a, b] for b in heights for a in x])


@pytest.mark.parametrize(
    "model",
    [
        GEPSVC(),
        TwinSVC(kernel="rbf"),
        GESVC(kernel="rbf"),
        LapSVC(kernel="rbf"),
        SVC(),
        make_pipeline(StandardScaler(), SVC(kernel="linear")),
    ],
    ids=lambda model: type(model).__name__,
)
def test_regions_are_what_the_classifier_predicts(model):
    model.fit(CROSS, WAYS)
    display = PlanesDisplay.from_estimator(model, CROSS, WAYS, size=23)
    drawn = np.asarray(display.ax_.images[0].get_array()).ravel()
    assert np.array_equal(model.classes_[drawn], model.predict(pixel_middles(display)))


def drawn_planes(display):
    lines = [
        c for c in display.ax_.collections if not hasattr(c, "get_sizes") or "Contour" in str(c)
    ]
    return [np.vstack([p.vertices for p in line.get_paths()]) for line in lines]


def test_every_plane_is_drawn_where_it_is():
    two = pd.DataFrame(WINE.data[:, [0, 6]], columns=["alcohol", "flavanoids"])
    model = make_pipeline(StandardScaler(), GEPSVC()).fit(two, y)
    display = PlanesDisplay.from_estimator(model, two, y, size=40)
    lines = drawn_planes(display)
    assert len(lines) == len(model[-1].planes_) == 6
    for k, line in enumerate(lines):
        frame = pd.DataFrame(line, columns=two.columns)
        distances = model[-1].distances(model[0].transform(frame))
        assert np.allclose(distances[:, k], 0, atol=1e-9)
        assert len(line) > 5
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("alcohol", "flavanoids")


def test_planes_of_the_best_classifier_of_a_search_are_drawn():
    search = GridSearchCV(GEPSVC(), {"ridge": [0.01, 0.1]}).fit(CROSS, WAYS)
    display = PlanesDisplay.from_estimator(search, CROSS, WAYS, size=20)
    assert len(drawn_planes(display)) == 2
    without = PlanesDisplay.from_estimator(search, CROSS, WAYS, size=20, planes=False)
    assert drawn_planes(without) == []


def test_planes_of_a_kernel_are_curves():
    model = TwinSVC(kernel="rbf").fit(CROSS, WAYS)
    display = PlanesDisplay.from_estimator(model, CROSS, WAYS)
    for k, line in enumerate(drawn_planes(display)):
        far = np.abs(model.distances(CROSS)[:, k]).max()
        assert np.abs(model.distances(line)[:, k]).max() < 0.01 * far


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, pl.DataFrame, sp.csr_array])
def test_of_more_columns_a_slice_at_the_means_is_drawn_and_said(frame):
    rows = frame(X[:, :4])
    model = GESVC().fit(rows, y)
    display = PlanesDisplay.from_estimator(model, rows, y, columns=(2, 0), size=11)
    full = np.tile(X[:, :4].mean(axis=0), (121, 1))
    full[:, [2, 0]] = pixel_middles(display)
    if frame in (pd.DataFrame, pl.DataFrame):
        full = frame(full, **{"columns" if frame is pd.DataFrame else "schema": list(rows.columns)})
    drawn = np.asarray(display.ax_.images[0].get_array()).ravel()
    assert np.array_equal(model.classes_[drawn], model.predict(full))
    (hollow,), _ = hollow_and_filled(display)
    assert np.allclose(sorted_rows(hollow.get_offsets()), sorted_rows(X[:, [2, 0]]))
    assert display.ax_.get_title(loc="left") == "other columns at their means"


def test_other_columns_can_be_held_elsewhere():
    model = GESVC().fit(X[:, :3], y)
    at = X[10, :3]
    display = PlanesDisplay.from_estimator(model, X[:, :3], y, columns=(0, 1), at=at, size=9)
    full = np.column_stack([pixel_middles(display), np.full(81, at[2])])
    drawn = np.asarray(display.ax_.images[0].get_array()).ravel()
    assert np.array_equal(model.classes_[drawn], model.predict(full))


# What cannot be drawn


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: EmbeddingDisplay.from_estimator(GESVC().fit(X, y), X, y), "no transform"),
        (lambda: EmbeddingDisplay.from_embedding(X, y[:5]), "5 labels for 178 rows"),
        (lambda: EmbeddingDisplay.from_embedding(X, y, held_out=[1, 2]), "178 values True or"),
        (lambda: EmbeddingDisplay.from_embedding(X, y, components=(0, 99)), "0 to 12"),
        (lambda: EmbeddingDisplay.from_embedding(X, y, components=(0, 1, 2)), "two numbers"),
        (lambda: EmbeddingDisplay.from_embedding(X[:, 0], y), "rows and at least one column"),
        (lambda: EmbeddingDisplay.from_estimator(MODEL, X, y, held_out=X), "a pair"),
        (lambda: EmbeddingDisplay.from_estimator(MODEL, X, y, held_out=(X, None)), "some rows"),
        (lambda: GainDisplay.from_estimator(LDA().fit(X, y)), "no gain_"),
        (lambda: GainDisplay([[1.0]]).plot(), "one number for each component"),
        (lambda: LoadingsDisplay.from_estimator(MODEL, component=9), "0 to 3"),
        (lambda: LoadingsDisplay([1.0, 2.0], ["a"]).plot(), "1 names for 2 columns"),
        (lambda: PathDisplay.from_estimator(MODEL), "a fitted search"),
        (lambda: PathDisplay.from_path([], X, y, held_out=HELD_OUT), "0 fits"),
        (lambda: PathDisplay(["a"], [1.0]).plot(), "must have numbers"),
        (lambda: MarginMapDisplay(X, y, X[:, :2], [0]).plot(), "every class an anchor"),
        (lambda: PlanesDisplay.from_estimator(MODEL, X, y), "a fitted classifier"),
        (
            lambda: PlanesDisplay.from_estimator(SVC().fit(X, y), X, y, columns=(0, "ash")),
            "two different ones",
        ),
        (
            lambda: PlanesDisplay.from_estimator(SVC().fit(X, y), X, y, at=[1.0]),
            "each of 13 columns",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_reason(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
    assert plt.get_fignums() == []


def test_displays_are_public_in_both_places():
    names = [name for name in marginfold.__all__ if name.endswith("Display")]
    assert len(names) == 7
    for name in names:
        assert getattr(marginfold.plotting, name) is getattr(marginfold, name)
