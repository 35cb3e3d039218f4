"""Paper 004: its figures against plain NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA, KernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from marginfold import SVMPCA, ExactKernel
from marginfold.data import noisy_sine
from marginfold.errors import InvalidParameterError
from marginfold.papers import svmpca
from marginfold.papers.svmpca import FIGURE_WIDTH, READINGS, WIDTHS, measure, rows_of, study_tasks
from marginfold.protocols.records import RecordStore
from marginfold.protocols.run import run_tasks
from marginfold.protocols.studies import StudySize, Task, study_size

SMALL = StudySize("small", 2, 1, 1, 1, controls=False)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with RecordStore(tmp_path_factory.mktemp("run")) as store:
        assert run_tasks(study_tasks(SMALL), store).failed == 0
        yield store


@pytest.fixture(scope="module")
def shown(store):
    return {figure.number: figure for figure in svmpca.figures(store, SMALL)}


def points(panel, name):
    series = next(series for series in panel.series if series.name == name)
    return np.column_stack([series.x, series.y])


@pytest.mark.parametrize("name", ["quick", "full"])
def test_the_plan(name):
    size = study_size(name)
    n = size.n_seeds
    sizes = {"figure 2": 1 + n, "figure 4": 1 + n * len(WIDTHS) * len(READINGS), "figure 5": n}
    assert {figure: len(study_tasks(size, figure)) for figure in sizes} == sizes
    assert len(study_tasks(size)) == sum(sizes.values())


def test_an_unknown_figure_is_refused():
    with pytest.raises(InvalidParameterError, match="figure 3"):
        study_tasks(SMALL, "figure 3")


def test_figure_2_is_principal_component_analysis(shown):
    figure = shown["2"]
    titles = ["from score 1", "from score 2", "from both scores", "scores"]
    assert [panel.title for panel in figure.panels] == titles
    X = points(figure.panels[0], "rows")
    pca = PCA().fit(X)
    scores = pca.transform(X)
    for k, panel in enumerate(figure.panels[:2]):
        along = np.outer(scores[:, k], pca.components_[k]) + pca.mean_
        assert_allclose(points(panel, "rebuilt"), along, atol=1e-9)
    assert_allclose(points(figure.panels[2], "rebuilt"), X, atol=1e-9)
    assert_allclose(np.abs(points(figure.panels[3], "")), np.abs(scores), atol=1e-9)


def test_figure_2_is_eq_28(shown):
    """The least-squares map of each score by itself, written out."""
    figure = shown["2"]
    X, Z = points(figure.panels[0], "rows"), points(figure.panels[3], "")
    for k, panel in enumerate(figure.panels[:2]):
        design = np.column_stack([Z[:, k], np.ones(len(Z))])
        coefficients = np.linalg.lstsq(design, X, rcond=None)[0]
        assert_allclose(points(panel, "rebuilt"), design @ coefficients, atol=1e-9)


def test_numbers_of_figure_2(store):
    table = svmpca.tables(store, SMALL)[0]
    tasks = [task for task in study_tasks(SMALL, "figure 2") if task.protocol == "measure"]
    smaller = [np.linalg.eigvalsh(np.cov(rows_of(task).T, bias=True)) for task in tasks]
    left, right = np.mean(smaller, axis=0)
    cell = table.cell("cloud", "rows from score 1")
    assert cell.value == pytest.approx(left, rel=1e-9)
    assert cell.n_seeds == 2
    assert table.cell("cloud", "rows from score 2").value == pytest.approx(right, rel=1e-9)
    assert table.cell("cloud", "rows from both scores").value == pytest.approx(0.0, abs=1e-12)
    assert table.cell("cloud", "correlation of scores").value < 1e-9


def test_figure_4_scores_are_kernel_pca(shown):
    figure = shown["4"]
    X = points(figure.panels[0], "rows")
    assert_allclose(X, noisy_sine(random_state=0).X, atol=1e-12)
    reference = KernelPCA(2, kernel="rbf", gamma=1 / FIGURE_WIDTH, eigen_solver="dense")
    Z = points(figure.panels[3], "")
    assert_allclose(np.abs(Z), np.abs(reference.fit_transform(X)), atol=1e-7)


def test_the_first_score_denoises_and_the_second_does_not(store, shown):
    """The caption's claim for one score; the text has the second, which here fails."""
    table = svmpca.tables(store, SMALL)[1]
    row = f"sigma^2 = {FIGURE_WIDTH:g}"
    noisy = table.cell(row, "rows from curve").value
    assert table.cell(row, "score 1 from curve").value < noisy / 4
    assert table.cell(row, "score 2 from curve").value > noisy
    rebuilt = points(shown["4"].panels[0], "rebuilt")
    t = np.linspace(-1.2, 1.2, 20001)
    curve = np.column_stack([3 * t, np.sin(np.pi * t)])
    squared = ((rebuilt[:, None, :] - curve[::20]) ** 2).sum(axis=2).min(axis=1)
    assert squared.mean() < noisy / 4


def test_the_remark_counts_the_widths_at_which_the_second_score_denoises(store):
    table = svmpca.tables(store, SMALL)[1]
    rows = dict.fromkeys(cell.row for cell in table.cells)
    centred, not_centred = (
        sum(
            table.cell(row, column).value < table.cell(row, "rows from curve").value for row in rows
        )
        for column in ("score 2 from curve", "score 2 from curve, not centred")
    )
    assert not_centred > centred
    assert f"at {centred} of {len(WIDTHS)} widths" in table.remark
    assert f"at {not_centred} of {len(WIDTHS)} if the kernel is not centred" in table.remark


def test_the_second_score_that_is_not_centred_is_the_first_that_is():
    """By the eigenvectors of both kernel matrices, written out."""
    X = noisy_sine(svmpca.SINE_ROWS, random_state=0).X
    K = rbf_kernel(X, gamma=1 / FIGURE_WIDTH)
    H = np.eye(len(X)) - 1 / len(X)
    first, second = np.linalg.eigh(K)[1][:, ::-1][:, :2].T
    centred = np.linalg.eigh(H @ K @ H)[1][:, -1]
    assert abs(np.corrcoef(second, centred)[0, 1]) > 0.99
    assert first.std() < 0.35 * abs(first.mean())
    options = {"width": FIGURE_WIDTH, "bias": False}
    task = Task("svmpca", svmpca.SINE, "SVMPCA not centred", "", 0, -1, options, work=print)
    scores = svmpca.model_of(task).fit(X).transform(X)
    for own, literal in zip(scores.T, (first, second), strict=True):
        assert_allclose(np.abs(own / np.linalg.norm(own)), np.abs(literal), atol=1e-7)


def test_the_stated_numbers_of_rows_are_those_drawn(store, shown):
    for number, table in zip(("2", "4"), svmpca.tables(store, SMALL), strict=True):
        assert f" {len(shown[number].panels[0].series[0].x)} rows" in table.protocol
        assert table.remark.count(".") >= 1


def test_figure_5_has_the_eigenvalues_of_the_centred_kernel_matrix(shown):
    series = shown["5"].panels[0].series[0]
    expected = []
    for seed in SMALL.seeds:
        X = noisy_sine(random_state=seed).X
        K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / FIGURE_WIDTH)
        M = np.eye(len(K)) - 1 / len(K)
        expected.append(np.linalg.eigvalsh(M @ K @ M)[::-1][: len(series.y)])
    assert_allclose(series.y, np.mean(expected, axis=0), atol=1e-8)
    assert_allclose(series.spread, np.std(expected, axis=0, ddof=1), atol=1e-8)
    assert series.kind == "bars"


def test_every_cell_names_its_records(store):
    for table in svmpca.tables(store, SMALL):
        for cell in table.cells:
            query = {k: v for k, v in cell.source.items() if k != "records"}
            assert len(store.read(**query)) >= cell.source["records"] == SMALL.n_seeds


def test_the_measured_errors_are_those_of_the_library():
    task = next(task for task in study_tasks(SMALL, "figure 4") if task.protocol == "width 16")
    errors = {
        r.params["from"]: r.value for r in measure(task) if r.metric == "reconstruction_error"
    }
    X = noisy_sine(random_state=task.seed).X
    model = SVMPCA(2, kernel=ExactKernel("rbf", gamma=1 / 16), reconstruct="kernel_ridge").fit(X)
    assert errors["both scores"] == pytest.approx(model.reconstruction_error(X))
    assert errors["score 2"] == pytest.approx(model.reconstruction_error(X, [1]))


def test_without_records_there_is_neither_table_nor_figure(tmp_path):
    with RecordStore(tmp_path) as store:
        assert svmpca.tables(store, SMALL) == []
        assert svmpca.figures(store, SMALL) == []
