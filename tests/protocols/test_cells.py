"""From records to cells: literal means, choices on the test folds, notes of what is empty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from marginfold.protocols.cells import (
    NOT_COMPUTED,
    Evidence,
    SeedValue,
    best_by_seed,
    cell,
    mean_by_seed,
    nested_means,
)
from marginfold.protocols.published_numbers import Printed
from marginfold.protocols.records import Record, RecordStore, Result
from marginfold.protocols.results import Cell, mark
from marginfold.protocols.studies import Task

WEIGHTS = (0.1, 1.0, 10.0)


def record(seed=0, fold=0, value=None, params=None, dimension=None, **other):
    given = {
        "study": "demo",
        "dataset": "wine",
        "method": "LSVA",
        "protocol": "plain",
        "options": {},
        "metric": "error",
        "seconds": 0.0,
        "status": "done",
        "reason": "",
        "task": f"{seed}/{fold}",
        "versions": "",
    } | other
    return Record(
        seed=seed, fold=fold, value=value, params=params or {}, dimension=dimension, **given
    )


def grid(values):
    """Records of an array of seeds x folds x weights x dimensions; NaN has no record."""
    return [
        record(seed, fold, float(value), {"graph_weight": WEIGHTS[w]}, k + 1)
        for (seed, fold, w, k), value in np.ndenumerate(values)
        if not np.isnan(value)
    ]


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_best_of_each_seed_is_that_of_plain_means(order):
    rng = np.random.default_rng(order)
    values = rng.random((3, 5, 3, 4))
    records = grid(values)
    rng.shuffle(records)
    found = best_by_seed(records)
    assert [v.seed for v in found] == [0, 1, 2]
    for choice, means in zip(found, values.mean(axis=1), strict=True):
        w, k = np.unravel_index(means.argmin(), means.shape)
        assert choice.value == pytest.approx(means[w, k], rel=1e-14)
        assert choice.params == (("graph_weight", WEIGHTS[w]),)
        assert choice.dimension == k + 1


def test_parameters_that_some_fold_lacks_do_not_count():
    rng = np.random.default_rng(5)
    values = rng.uniform(0.4, 1.0, (2, 4, 3, 5))
    values[:, :3, 0, 4] = 0.0  # by far the least, were it not for the fold that lacks it
    values[:, 3, 0, 4] = np.nan
    values[1, 2, 1, :] = np.nan
    for choice, folds in zip(best_by_seed(grid(values)), values, strict=True):
        means = folds.mean(axis=0)  # NaN where a fold is missing
        w, k = np.unravel_index(np.nanargmin(means), means.shape)
        assert choice == SeedValue(
            choice.seed, pytest.approx(means[w, k]), (("graph_weight", WEIGHTS[w]),), k + 1
        )


def test_a_fold_that_failed_counts_as_lacking_all():
    failed = record(0, 1, None, status="failed", metric="none", reason="SolverError: no")
    good = [record(0, 0, 0.1, {}, 1), record(1, 0, 0.2, {}, 1), record(1, 1, 0.4, {}, 1)]
    assert best_by_seed([*good, failed]) == [SeedValue(1, pytest.approx(0.3), (), 1)]
    assert best_by_seed([failed]) == []
    assert best_by_seed([]) == []


def test_of_equal_values_the_fewest_dimensions_win():
    records = [
        record(0, fold, value, {"graph_weight": w}, k)
        for fold in (0, 1)
        for value, w, k in ((0.25, 1.0, 3), (0.25, 2.0, 2), (0.25, 4.0, 5))
    ]
    (choice,) = best_by_seed(records)
    assert (choice.dimension, dict(choice.params)) == (2, {"graph_weight": 2.0})


def test_values_are_equal_in_whatever_order_the_folds_have_them():
    errors = {1: (0.1, 0.2, 0.3), 2: (0.3, 0.2, 0.1)}
    records = [record(0, f, v, {}, k) for k in errors for f, v in enumerate(errors[k])]
    assert best_by_seed(records)[0].dimension == 1


def test_a_seed_with_a_fold_without_value_has_no_mean():
    records = [
        *(record(1, fold, value, {"C": fold}, k) for fold, value, k in ((0, 0.1, 2), (1, 0.4, 7))),
        record(1, 2, 0.7, {}, 3),
        record(0, 0, 0.25),
        record(0, 1, None, status="skipped", reason="none"),
        record(2, 0, None, status="failed", reason="none"),
    ]
    assert mean_by_seed(records) == [SeedValue(1, pytest.approx(0.4), (), 3.0)]
    assert mean_by_seed(records[3:4]) == [SeedValue(0, 0.25, (), None)]


def seeds(*shares, dimensions=None):
    dims = dimensions or [None] * len(shares)
    return [SeedValue(i, s, (), k) for i, (s, k) in enumerate(zip(shares, dims, strict=True))]


PRINTED = Printed("000", "I", "wine", "LSVA", 3.1, 0.4, 6, "error %")


@pytest.mark.parametrize("accuracy", [False, True])
def test_a_cell_is_mean_and_spread_over_seeds_in_percent(accuracy):
    shares = [0.02, 0.05, 0.03]
    made = cell(
        "wine",
        "LSVA",
        [record(value=0.02)],
        seeds(*shares, dimensions=[4, 9, 5]),
        n_rows=178,
        printed=PRINTED,
        accuracy=accuracy,
    )
    percent = 100 - 100 * np.array(shares) if accuracy else 100 * np.array(shares)
    assert made.value == pytest.approx(percent.mean())
    assert made.spread == pytest.approx(np.sqrt(np.sum((percent - percent.mean()) ** 2) / 2))
    assert (made.n_seeds, made.dimension) == (3, 5.0)
    assert (made.printed, made.printed_spread, made.printed_dimension) == (3.1, 0.4, 6)
    assert (
        made.mark
        == mark(made.value, made.spread, 3.1, 178)
        == ("differs" if accuracy else "agrees")
    )
    assert made.note == ""


def test_one_seed_has_no_spread_and_no_print_no_mark():
    made = cell("wine", "LSVA", [record(value=0.1)], seeds(0.1), n_rows=178)
    assert (made.value, made.spread, made.n_seeds) == (pytest.approx(10.0), None, 1)
    assert (made.printed, made.dimension, made.mark) == (None, None, "")


def test_a_cell_without_records_says_so_and_keeps_the_print():
    made = cell("wine", "LSVA", [], [], n_rows=178, printed=PRINTED)
    assert (made.value, made.n_seeds, made.mark) == (None, 0, "")
    assert (made.note, made.printed, made.source) == (NOT_COMPUTED, 3.1, {})


def test_a_cell_gives_each_reason_once_with_a_value_or_without():
    lost = [
        record(0, 0, status="skipped", reason="no file"),
        record(0, 1, status="failed", reason="SolverError: x"),
        record(0, 2, status="skipped", reason="no file"),
    ]
    assert cell("wine", "LSVA", lost, [], n_rows=178).note == "SolverError: x; no file"
    partly = cell("wine", "LSVA", [*lost, record(1, 0, 0.1)], seeds(0.1), n_rows=178)
    assert partly.note == "SolverError: x; no file"
    assert partly.value == pytest.approx(10.0)


def test_a_done_task_without_a_value_gives_its_reason_too():
    lost = [record(0, fold, None, reason="no direction carries anything") for fold in range(2)]
    assert cell("wine", "LSVA", lost, [], n_rows=178).note == "no direction carries anything"


def test_a_cell_names_the_records_it_rests_on():
    records = [record(method=m, seed=s, value=0.1) for m in ("LSVA", "1-NN") for s in range(2)]
    assert cell("wine", "x", records, seeds(0.1), n_rows=178).source == {
        "study": "demo",
        "dataset": "wine",
        "method": ["1-NN", "LSVA"],
        "protocol": "plain",
        "metric": "error",
        "records": 4,
    }


def test_evidence_is_of_the_planned_tasks_only(tmp_path):
    planned = [
        Task("demo", d, "LSVA", seed=s, work=print) for d in ("wine", "iris") for s in (0, 1)
    ]
    other = [replace(task, options={"grid": "finer"}) for task in planned]
    with RecordStore(tmp_path) as store:
        for value, tasks in ((0.1, planned[:3]), (0.9, other)):
            for task in tasks:
                store.write(task, [Result("error", value), Result("loss", value)], seconds=0.0)
        evidence = Evidence(store, iter(planned))
        assert [(r.dataset, r.seed) for r in evidence.records(metric="error")] == [
            ("iris", 0),
            ("wine", 0),
            ("wine", 1),
        ]
        assert {r.value for r in evidence.records()} == {0.1}
        assert evidence.records(dataset="iris", seed=1) == []
        assert len(evidence.records(dataset=["wine"], metric=["error", "loss"])) == 4
        assert Evidence(store, []).records() == []
        assert len(Evidence(store, planned + other).records()) == len(store.read())


def test_from_a_store_to_a_cell_is_what_numpy_says(tmp_path):
    values = np.random.default_rng(3).integers(0, 36, (3, 5, 3, 4)) / 36
    tasks = [
        Task("demo", "wine", "LSVA", seed=s, fold=f, work=print) for s in range(3) for f in range(5)
    ]
    with RecordStore(tmp_path) as store:
        for task in tasks:
            results = [
                Result("error", v, {"graph_weight": WEIGHTS[w]}, k + 1)
                for (w, k), v in np.ndenumerate(values[task.seed, task.fold])
            ]
            store.write(task, results, seconds=0.0)
        records = Evidence(store, tasks).records(metric="error")
    made = cell("wine", "LSVA", records, best_by_seed(records), n_rows=178)
    least = 100 * values.mean(axis=1).reshape(3, -1).min(axis=1)
    assert made.value == pytest.approx(least.mean())
    assert made.spread == pytest.approx(least.std(ddof=1))
    assert made.source["records"] == values.size


def test_reasons_of_incomplete_seeds_are_still_found(tmp_path):
    tasks = [Task("demo", "wine", "LSVA", seed=0, fold=fold, work=print) for fold in range(3)]
    with RecordStore(tmp_path) as store:
        store.write(tasks[0], [Result("error", 0.1)], seconds=0.0)
        store.write(tasks[1], [Result("none", None, reason="no")], seconds=0.0, status="failed")
        evidence = Evidence(store, tasks)
        assert [r.reason for r in evidence.any_records(status="failed")] == ["no"]
        assert evidence.records() == []  # a fold is missing


def test_nested_means_are_over_the_rows_that_both_columns_have():
    cells = [
        *(Cell("wine", "LDA", 1.0), Cell("iris", "LDA", 5.0), Cell("sonar", "LDA", 30.0)),
        *(Cell("wine", "LDA (nested)", 2.0), Cell("iris", "LDA (nested)", 6.0)),
        *(
            Cell("wine", "PCA", 3.0),
            Cell("wine", "MMDA (nested)", 3.0),
            Cell("iris", "PCA (nested)"),
        ),
    ]
    assert nested_means(cells) == "LDA 4.00 instead of 3.00"
    assert nested_means(cells[:3]) == ""
