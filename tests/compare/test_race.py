"""The race over folds: who is measured further, and that stops and budgets change nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginfold.compare.comparison import conclude
from marginfold.compare.methods import LARGEST_CLASS, METHODS, PERMUTED_GRAPH
from marginfold.compare.plan import fold_seconds, planned_rows, planned_seconds, without_the_dearest
from marginfold.compare.race import Standing, behind, leader, rounds, run_race, standings
from marginfold.compare.runs import Comparison
from marginfold.compare.table import Source, sample_rows
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.run import run_tasks

pd = pytest.importorskip("pandas", reason="tables need the extra cli")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two classes of 400 rows in a plane: large enough for narrow intervals."""
    rng = np.random.default_rng(0)
    kind = np.repeat(["a", "b"], 200)
    frame = pd.DataFrame(rng.standard_normal((400, 3)) + 1.5 * (kind == "a")[:, None])
    path = tmp_path_factory.mktemp("table") / "t.csv"
    frame.assign(kind=kind).to_csv(path, index=False)
    return Source(str(path), "kind")


@pytest.fixture
def hasty(monkeypatch):
    """A look is worth it however little work is left."""
    monkeypatch.setattr("marginfold.compare.race.WORTH", 0.0)


NAMES = ["PCA", "LDA", "MMDA", "LSVA", PERMUTED_GRAPH, "SVC rbf", LARGEST_CLASS]


def planned(table, names=NAMES, **options):
    return Comparison.of(table, names, **({"budget": 60.0} | options))


def errors_of(seed, comparison):
    """Errors of all methods on all folds, some of them close and some far apart."""
    rng = np.random.default_rng(seed)
    return {
        method: np.clip(
            rng.choice([0.1, 0.12, 0.2, 0.4]) + 0.02 * rng.standard_normal(10), 0.0, 1.0
        )
        for method in comparison.methods
    }


def write(tasks, errors, store):
    for task in tasks:
        value = errors[task.method][5 * task.seed + task.fold]
        store.write(task, [Result("error", float(value))], seconds=0.1)


def finish(comparison, errors, store):
    """Give the race the errors that it asks for; return how many of each method these were."""
    asked = dict.fromkeys(comparison.methods, 0)
    for race in rounds(comparison, store):
        write(race.missing, errors, store)
        for task in race.missing:
            asked[task.method] += 1
    return asked


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("seed", range(8))
def test_whoever_is_not_measured_on_all_folds_is_behind_the_best(seed, table, tmp_path):
    comparison = planned(table)
    errors = errors_of(seed, comparison)
    with RecordStore(tmp_path) as store:
        finish(comparison, errors, store)
        known = standings(comparison, store)
    best = leader(known)
    assert known[best].n_measured == comparison.n_measurements
    for method, standing in known.items():
        if standing.n_measured < comparison.n_measurements and not METHODS[method].control:
            assert behind(standing, known[best], comparison).low > 0
    its_control = min(known["LSVA"].n_measured, comparison.n_folds)
    assert known[PERMUTED_GRAPH].n_measured == its_control
    assert known[LARGEST_CLASS].n_measured == comparison.n_measurements


@pytest.mark.usefixtures("hasty")
def test_a_hopeless_method_is_given_three_folds_and_a_level_one_all(table, tmp_path):
    comparison = planned(table, ["PCA", "LDA", "MMDA"])
    noise = 0.01 * np.random.default_rng(0).standard_normal(10)
    errors = {"PCA": 0.4 + noise, "LDA": 0.1 + noise[::-1], "MMDA": 0.1 + noise}
    errors[LARGEST_CLASS] = np.full(10, 0.5)
    with RecordStore(tmp_path) as store:
        asked = finish(comparison, errors, store)
        verdict = conclude(comparison, store)
    assert asked == {"PCA": 3, "LDA": 10, "MMDA": 10, LARGEST_CLASS: 10}
    rows = {row.method: row for row in verdict.rows}
    assert rows["PCA"].n_folds == 3
    assert rows["PCA"].error == pytest.approx(100 * errors["PCA"][:3].mean())
    gap = errors["PCA"][:3] - errors[verdict.best][:3]
    assert rows["PCA"].behind.mean == pytest.approx(100 * gap.mean())
    words = " ".join(verdict.sentences)
    assert "1 of 3 methods made clearly more errors than the best" in words  # no control among them
    assert "after 3 of 10 folds and were not measured on the others; --thorough" in words


@pytest.mark.usefixtures("hasty")
def test_a_method_stopped_too_early_is_taken_up_again(table, tmp_path):
    """PCA is behind LDA after three folds, but not behind MMDA, which leads later."""
    comparison = planned(table, ["PCA", "LDA", "MMDA"])
    errors = {
        "PCA": np.full(10, 0.2),
        "LDA": np.array([0.1] * 3 + [0.9] * 7),
        "MMDA": np.array([0.1, 0.22, 0.16] + [0.16] * 7),
        LARGEST_CLASS: np.full(10, 0.5),
    }
    with RecordStore(tmp_path) as store:
        going_on = []
        for race in rounds(comparison, store):
            going_on.append("PCA" in race.going_on)
            write(race.missing, errors, store)
        verdict = conclude(comparison, store)
    assert going_on[:3] == [True, False, True]
    assert verdict.best == "MMDA"
    assert {row.method: row.n_folds for row in verdict.rows}["PCA"] == 10


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_race_that_was_stopped_goes_on_to_the_same_end(share, table, tmp_path):
    comparison = planned(table)
    errors = errors_of(1, comparison)
    rng = np.random.default_rng(0)
    with RecordStore(tmp_path / "whole") as whole, RecordStore(tmp_path / "part") as part:
        finish(comparison, errors, whole)
        for race in rounds(comparison, part):  # stopped in the midst of every round
            some = [task for task in race.missing if rng.random() < share]
            write(some, errors, part)
        finish(comparison, errors, part)
        assert conclude(comparison, part) == conclude(comparison, whole)


@pytest.mark.usefixtures("hasty")
def test_records_that_the_race_does_not_ask_for_change_nothing(table, tmp_path):
    """A thorough comparison in the same folder has measured all before."""
    comparison = planned(table)
    errors = errors_of(2, comparison)
    with RecordStore(tmp_path / "new") as new, RecordStore(tmp_path / "full") as full:
        finish(comparison, errors, new)
        write(comparison.fold_tasks(), errors, full)
        assert run_race(comparison, standings(comparison, full)).missing == []
        assert conclude(comparison, full) == conclude(comparison, new)


def test_thorough_measures_everything_in_one_round(table, tmp_path):
    comparison = planned(table, budget=None)
    errors = errors_of(3, comparison)
    with RecordStore(tmp_path) as store:
        asked = finish(comparison, errors, store)
    assert set(asked.values()) == {10}


def test_a_method_that_fails_is_tried_once_a_run_and_not_raced(table, tmp_path):
    comparison = planned(table, ["PCA", "LDA"], budget=None)
    with RecordStore(tmp_path) as store:
        for _ in range(2):
            n_rounds = 0
            for race in rounds(comparison, store):
                n_rounds += 1
                for task in race.missing:
                    if task.method == "LDA" and task.fold == 1:
                        failure = [Result("none", None, reason="it broke")]
                        store.write(task, failure, seconds=0.1, status="failed")
                    else:
                        write([task], {m: np.full(10, 0.2) for m in comparison.methods}, store)
            assert n_rounds == 1
        verdict = conclude(comparison, store)
    rows = {row.method: row for row in verdict.rows}
    assert (verdict.best, rows["LDA"].error, rows["LDA"].reason) == ("PCA", None, "it broke")


def test_the_clock_leaves_the_answer_of_the_last_look(table, tmp_path):
    """One method of a round is not measured: none is judged by more folds than the others."""
    comparison = planned(table, ["PCA", "LDA"])
    errors = {"PCA": np.full(10, 0.3), "LDA": np.full(10, 0.2), LARGEST_CLASS: np.full(10, 0.5)}
    with RecordStore(tmp_path) as store:
        race = next(rounds(comparison, store))
        later = [t for t in race.missing if (t.method, t.seed, t.fold) == ("PCA", 1, 4)]
        write([t for t in race.missing if t not in later], errors, store)
        verdict = conclude(comparison, store, stopped=61.0)
    assert {row.n_folds for row in verdict.rows} == {1}
    words = " ".join(verdict.sentences)
    assert "STOPPED BY THE CLOCK after 61 s" in words
    assert "1 fold is too few to say whether one method is better" in words
    assert "The same command goes on from here." in words


def test_real_fits_raced_and_resumed_give_the_same_table(table, tmp_path, monkeypatch):
    monkeypatch.setattr("marginfold.compare.race.WORTH", 0.0)
    comparison = planned(table, ["PCA", "LDA", "GEPSVC"])
    verdicts = []
    for name, n_first in (("whole", 10**6), ("part", 2)):
        with RecordStore(tmp_path / name) as store:
            first = next(rounds(comparison, store)).missing[:n_first]
            run_tasks(first, store)
            for race in rounds(comparison, store):
                run_tasks(race.missing, store)
            verdict = conclude(comparison, store)
        verdicts.append([dataclasses.replace(row, seconds=None) for row in verdict.rows])
    assert verdicts[0] == verdicts[1]


@given(
    counts=st.lists(st.integers(1, 400), min_size=2, max_size=6),
    share=st.floats(0.05, 1.0),
)
def test_a_sample_has_the_proportions_of_the_classes(counts, share):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    wanted = max(1, int(share * len(labels)))
    taken = sample_rows(labels, wanted)
    assert len(set(taken.tolist())) == len(taken)
    assert np.array_equal(taken, np.sort(taken))
    found = np.bincount(labels[taken], minlength=len(counts))
    for n, k in zip(counts, found, strict=True):
        exact = n * wanted / len(labels)
        assert k == min(n, max(10, round(exact)))
    assert np.array_equal(taken, sample_rows(labels, wanted))


def test_a_large_table_is_sampled_and_the_answer_says_so(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    kind = np.repeat(["a", "b"], [900, 300])
    frame = pd.DataFrame(rng.standard_normal((1200, 2)) + 2.0 * (kind == "a")[:, None])
    frame.assign(kind=kind).to_csv(tmp_path / "t.csv", index=False)
    source = Source(str(tmp_path / "t.csv"), "kind")
    whole, few = (Comparison.of(source, ["lda"], budget=seconds) for seconds in (None, 1e-3))
    assert (whole.n_rows, few.n_rows) == (1200, 500)
    labels = few.source.read().labels
    assert np.count_nonzero(labels == "a") == 375
    assert {t.key for t in whole.tasks()}.isdisjoint(t.key for t in few.tasks())
    with RecordStore(tmp_path / "run") as store:
        for race in rounds(few, store):
            run_tasks(race.missing, store)
        words = " ".join(conclude(few, store).sentences)
    assert "Compared on a sample of 500 of the 1,200 rows" in words
    assert "--thorough" in words


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_what_the_budget_cannot_pay_waits_and_the_least_errors_go_on(share, table, tmp_path):
    """All are level; between three folds of all and ten of all the plan is never exceeded."""
    prices = {m: planned(table).fold_seconds(m) for m in planned(table).methods}
    low, high = 3 * sum(prices.values()), 10 * sum(prices.values())
    budget = (low + share * (high - low)) / planned_seconds(1.0)
    comparison = planned(table, budget=budget)
    by_rank = {m: 0.1 + 0.001 * k for k, m in enumerate(comparison.methods)}
    noise = 0.02 * np.random.default_rng(0).standard_normal((len(by_rank), 10))
    errors = {m: by_rank[m] + noise[k] for k, m in enumerate(by_rank)} | {
        LARGEST_CLASS: np.full(10, 0.5)
    }
    with RecordStore(tmp_path) as store:
        finish(comparison, errors, store)
        known = standings(comparison, store)
        verdict = conclude(comparison, store)
    measured = {m: standing.n_measured for m, standing in known.items()}
    spent = sum(n * prices[m] for m, n in measured.items())
    assert spent <= planned_seconds(budget) + 10 * (prices[verdict.best] + prices[LARGEST_CLASS])
    assert min(measured.values()) >= 3
    assert measured[verdict.best] == 10
    assert measured[LARGEST_CLASS] == 10  # both errors of the answer are of the same folds
    waiting = [
        row.method
        for row in verdict.rows
        if row.n_folds < 10 and row.behind.low <= 0 and row.method != PERMUTED_GRAPH
    ]
    assert bool(waiting) == any("To answer within the budget" in s for s in verdict.sentences)
    assert bool(waiting) == (share < 1.0)
    beside = [
        s for s in verdict.sentences if " is wrong on " in s and f"against {verdict.best}" in s
    ]
    assert beside
    for said in beside:
        (method,) = (m for m in measured if f" {m} is wrong on " in said)
        n_folds = measured[method]
        assert (f"% in the first {n_folds} folds: " in said) is (n_folds < 10)
        assert (f"against {verdict.best} in the same" in said) is (n_folds < 10)


def test_the_plan_grows_with_the_budget_and_never_with_the_table():
    methods = [name for name in METHODS if name != "NCA"]
    sizes = [planned_rows(methods, 10**6, 20, 5, budget) for budget in (1e-9, 10, 60, 600, 6e4)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 500
    assert planned_rows(methods, 300, 20, 5, 1e-9) == 300
    assert planned_rows(methods, 10**6, 20, 5, 60) == planned_rows(methods, 10**5, 20, 5, 60)
    wide, narrow = (planned_rows(methods, 10**6, d, 5, 60) for d in (500, 5))
    assert wide < narrow
    spent = sum(fold_seconds(m, sizes[2], 20, 5) for m in methods)
    assert 5 * spent <= 60 * 2  # what it plans, it can pay


def test_the_plan_knows_that_pairs_of_many_classes_take_time_however_few_the_rows():
    few, many = (fold_seconds("GESVC", 300, 4, n_classes) for n_classes in (6, 60))
    assert many > 50 * few
    assert fold_seconds("PCA", 300, 4, 60) < 3 * fold_seconds("PCA", 300, 4, 6)


def test_of_many_classes_the_dearest_methods_are_left_out_and_the_rest_fits_the_budget():
    methods = [name for name, method in METHODS.items() if method.by_default]
    kept, left_out = without_the_dearest(methods, 750, 8, 60, budget=60.0)
    assert sorted([*kept, *left_out]) == sorted(methods)
    assert {"GESVC", "SVC linear"} <= set(left_out)
    seconds = {m: fold_seconds(m, 500, 8, 60) for m in methods}
    assert 5 * sum(seconds[m] for m in kept) <= 60 * 2
    assert max(seconds[m] for m in kept) <= min(seconds[m] for m in left_out)
    assert "60 classes" in left_out["GESVC"]
    assert without_the_dearest(methods, 10**6, 20, 5, budget=60.0) == (methods, {})
    assert without_the_dearest(["GESVC"], 750, 8, 60, budget=1.0)[0] == ["GESVC"]  # one is kept


def test_methods_that_were_named_are_measured_however_dear(tmp_path):
    rng = np.random.default_rng(0)
    kind = np.repeat([f"c{i:02d}" for i in range(60)], 6)
    frame = pd.DataFrame(rng.standard_normal((360, 3))).assign(kind=kind)
    frame.to_csv(tmp_path / "t.csv", index=False)
    source = Source(str(tmp_path / "t.csv"), "kind")
    default, named, thorough = (
        Comparison.of(source, names, budget=budget)
        for names, budget in ((None, 60.0), (["gesvc"], 60.0), (None, None))
    )
    assert "GESVC" in default.left_out
    assert "GESVC" in named.methods
    assert "GESVC" in thorough.methods


def test_an_unmeasured_method_leads_nobody():
    nothing, all_failed = np.full(4, np.nan), Standing(np.full(4, 0.1), [], "it broke")
    assert leader({"PCA": Standing(nothing, []), "LDA": all_failed}) == ""
    shares = {"PCA": np.full(4, 0.2), LARGEST_CLASS: np.zeros(4)}
    assert leader({m: Standing(s, []) for m, s in shares.items()}) == "PCA"  # no control leads
