"""The sentences of a comparison: one for each situation, with the numbers of its rows."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("pandas", reason="tables need the extra cli")

from compare.verdicts import around, blobs, recorded, saved, verdict_of

from marginfold.compare.comparison import conclude
from marginfold.compare.methods import LARGEST_CLASS, PERMUTED_GRAPH
from marginfold.compare.words import TREES, USUAL, choices
from marginfold.protocols.records import RecordStore

UNCLEAR = ("behind", "told apart", "holds 0", "head", "plainest", "-0.0 ")
"""Words that a stranger did not understand."""


@pytest.fixture
def table(tmp_path):
    return saved(blobs(40, 3, np.repeat(["a", "b"], 20)), tmp_path)


@pytest.fixture
def store(tmp_path):
    with RecordStore(tmp_path / "run") as opened:
        yield opened


def row_of(verdict, method):
    return next(row for row in verdict.rows if row.method == method)


def literal_interval(values, n_train=32, n_test=8):
    """The corrected resampled t interval (Nadeau and Bengio 2003), with half a row at least."""
    n = len(values)
    deviation = np.sqrt(np.sum((values - values.mean()) ** 2) / (n - 1))
    deviation = max(deviation, 100 / n_test / 2)
    half = stats.t.ppf(0.975, n - 1) * deviation * np.sqrt(1 / n + n_test / n_train)
    return values.mean() - half, values.mean() + half


def test_the_answer_has_the_error_with_its_interval_and_that_of_guessing(table, store):
    errors = {"LDA": around(0.2, 0.08), "PCA": around(0.4, 0.08, 1), LARGEST_CLASS: around(0.5)}
    verdict, _ = verdict_of(table, store, errors)
    first, second = verdict.answer
    low, high = literal_interval(100 * errors["LDA"])
    assert first.startswith("LDA (linear discriminants) makes the fewest errors: it is wrong on ")
    assert (
        f"20.0 % of the rows it was not trained on (95 % interval {low:.1f} to {high:.1f} %)"
        in (first)
    )
    low, high = literal_interval(100 * (errors[LARGEST_CLASS] - errors["LDA"]))
    assert "always answering the largest class is wrong on 50.0 %" in first
    assert f"30.0 points more (95 % interval {low:.1f} to {high:.1f})" in first
    low, high = literal_interval(100 * (errors["PCA"] - errors["LDA"]))
    gap = f"+20.0 points (95 % interval {low:+.1f} to {high:+.1f})"
    assert second == f"The other method, PCA, makes more errors, by {gap}."
    assert list(verdict.sentences[:2]) == list(verdict.answer)
    assert "--method lda" in verdict.command


def test_each_of_many_is_worse(table, store):
    errors = {"PCA": around(0.4, seed=1), "LDA": around(0.1), "MMDA": around(0.35, seed=2)}
    verdict, words = verdict_of(table, store, errors)
    assert verdict.answer[1].startswith(
        "Each of the 2 other methods makes more errors (95 % intervals, not corrected for their "
        "number); the next, MMDA, by +25.0 points (95 % interval "
    )
    assert "May be as good" not in words
    assert "LDA was picked from 3 methods" in words


def test_ties_are_said_to_be_ties(table, store):
    errors = {"PCA": around(0.12, 0.05, 1), "MMDA": around(0.1, 0.05, 2), "LDA": around(0.11, 0.05)}
    verdict, words = verdict_of(table, store, errors)
    assert verdict.best == "MMDA"
    assert verdict.answer[1].startswith(
        "Whether it is better than the next, LDA, cannot be said: their errors differ by +1.0 "
    )
    assert verdict.answer[1].endswith("the same holds for 1 more of the 2 other methods.")
    assert "May be as good as MMDA (the interval of the difference contains 0): LDA, PCA." in words


def test_a_next_that_is_worse_does_not_hide_one_that_may_be_as_good(table, store):
    """PCA differs much from fold to fold, LDA always by the same."""
    base = around(0.1, 0.01)
    errors = {"MMDA": base, "LDA": base + 0.1, "PCA": base + around(0.15, 0.4, 1)}
    verdict, _ = verdict_of(table, store, errors)
    assert list(verdict.as_good) == ["PCA"]
    assert verdict.answer[1].startswith("The next, LDA, makes more errors, by +10.0 points")
    assert (
        "1 of the 2 other methods, measured less exactly, may be as good as the best"
        in (verdict.answer[1])
    )


def test_a_model_is_advised_against_only_if_the_interval_leaves_it_no_use(table, store):
    errors = {"LDA": around(0.2, 0.0005), LARGEST_CLASS: around(0.05, 0.0005, 1)}
    _, words = verdict_of(table, store, errors)
    assert "Do not use a model of this table" in words
    assert "do not decide" not in words


@pytest.mark.parametrize(("guess", "nothing"), [(0.21, True), (0.15, True), (0.5, False)])
def test_when_nothing_was_learnt_that_is_the_answer_and_nothing_is_to_be_kept(
    guess, nothing, table, store
):
    errors = {"LDA": around(0.2, 0.05), LARGEST_CLASS: around(guess, 0.001, 1)}
    verdict, words = verdict_of(table, store, errors)
    assert verdict.best == "LDA"
    assert words.startswith("No evidence that anything can be predicted here") is nothing
    assert ("These rows do not decide it: a model may save up to" in words) is nothing
    assert bool(verdict.command) is not nothing
    if nothing:
        low, high = literal_interval(100 * (errors["LDA"] - errors[LARGEST_CLASS]))
        mean = 100 * (0.2 - guess)
        assert (
            f"difference is {mean:+.1f} points (95 % interval {low:+.1f} to {high:+.1f})" in words
        )
        assert len(verdict.answer) == 2


@pytest.mark.parametrize(("area", "known"), [(0.98, True), (0.75, True), (0.52, False)])
def test_scores_that_tell_classes_apart_are_told_though_guessing_makes_as_few_errors(
    area, known, table, store
):
    errors = {"LDA": around(0.02, 0.01), "PCA": around(0.03, 0.01), LARGEST_CLASS: around(0.02)}
    areas = {
        "LDA": around(0.5, 0.05, 2),
        "PCA": around(area, 0.02),
        LARGEST_CLASS: np.full(10, 0.5),
    }
    verdict, words = verdict_of(table, store, errors, areas=areas)
    assert ("No evidence that anything can be predicted here" in words) is not known
    low, high = literal_interval(100 * areas["PCA"])
    said = f"AUC is {area:.3f} (95 % interval {low / 100:.3f} to {min(high / 100, 1):.3f}; 0.5 is"
    assert (said in words) is known
    assert not verdict.command
    assert len(verdict.answer) == 2
    assert not any(word in words for word in UNCLEAR)


@pytest.mark.parametrize("lead", [0.1, 0.001])
def test_a_tree_ensemble_that_wins_is_called_so(lead, table, store):
    tree = TREES[0]
    errors = {tree: around(0.1), "SVC rbf": around(0.1 + lead, seed=1), "LDA": around(0.3, seed=2)}
    verdict, words = verdict_of(table, store, errors)
    assert verdict.best == tree
    assert verdict.answer[0].startswith(f"A tree ensemble wins: {tree} (boosted trees) makes the")
    gap = row_of(verdict, "SVC rbf").behind
    said = (
        f"Of the methods without trees, SVC rbf is wrong on {100 * (0.1 + lead):.1f} %: "
        f"{gap.mean:+.1f} points (95 % interval {gap.low:+.1f} to {gap.high:+.1f}) against {tree}"
    )
    assert said in words
    assert (f"{said}, which may be chance." in words) is (gap.low <= 0)


def test_a_usual_choice_that_wins_is_called_so(table, store):
    errors = {"logistic regression": around(0.1), "LDA": around(0.12, seed=1)}
    _, words = verdict_of(table, store, errors)
    assert "Logistic regression is a usual choice, and no other method makes fewer errors" in words


def test_the_best_is_never_worse_than_the_usual_choices_and_says_by_how_much(table, store):
    """Whatever the errors: the method that is kept has the least of all."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        names = [*USUAL, TREES[0], "LDA", "MMDA"]
        errors = {name: around(rng.uniform(0.1, 0.2), 0.03, k) for k, name in enumerate(names)}
        verdict, words = verdict_of(table, store, errors)
        means = {name: errors[name].mean() for name in names}
        assert means[verdict.best] == min(means.values())
        better = min(USUAL, key=means.__getitem__)
        if verdict.best not in (*USUAL, *TREES):
            gap = row_of(verdict, better).behind
            number = f"{gap.mean:+.1f} points (95 % interval {gap.low:+.1f} to {gap.high:+.1f})"
            usual = (
                f"Of the usual choices, {better} is wrong on {100 * means[better]:.1f} %: {number}"
            )
            simplest = f"The simplest of these is {better}; its error differs from that of "
            assert usual in words or f"{simplest}{verdict.best} by {number}" in words
            assert f"The tree ensemble {TREES[0]} is wrong on" in words


def test_a_simpler_method_is_offered_only_if_it_costs_no_more_than_a_point(table, store):
    for spread in (0.001, 0.003, 0.01, 0.03):
        errors = {"LDA": around(0.101, spread, 1), "KDA": around(0.1, spread, 2)}
        verdict, words = verdict_of(table, store, errors, n_folds=2, n_repeats=5)
        gap = row_of(verdict, "LDA").behind
        assert ("The simplest of these, LDA, will do" in words) is (gap.high <= 1.0)
        assert ("The simplest of these is LDA; its error differs" in words) is (gap.high > 1.0)


def test_few_folds_give_no_interval(table, store):
    errors = {"PCA": 0.5, "LDA": 0.1, "LSVA": 0.2, PERMUTED_GRAPH: 0.1}
    verdict, words = verdict_of(table, store, errors, n_folds=2, n_repeats=1)
    assert "2 folds are too few to say whether one method is better than another" in words
    assert "interval" not in words
    assert not re.search(r"\b[+-]?(inf|nan)\b", words)
    assert len(verdict.answer) == 1


@pytest.mark.parametrize(
    ("graph", "permuted", "said"),
    [
        (0.1, 0.3, "The neighbor graph helps LSVA: with the graph on permuted rows its error ch"),
        (0.3, 0.1, "The neighbor graph hurts LSVA: with the graph on permuted rows its error ch"),
        (0.2, 0.2, "The neighbor graph does nothing for LSVA that these folds can show: "),
    ],
)
def test_the_graph_is_judged_by_its_permutation(graph, permuted, said, table, store):
    errors = {"LSVA": around(graph), PERMUTED_GRAPH: around(permuted, seed=1)}
    verdict, words = verdict_of(table, store, errors)
    assert said in words
    assert f"changes by {100 * (permuted - graph):+.1f} points" in words
    assert verdict.best == "LSVA"  # a control is never recommended, whatever its error
    assert PERMUTED_GRAPH not in verdict.as_good
    assert "picked from" not in words  # nothing was chosen
    assert "other" not in words


def test_the_clock_is_said(table, store):
    errors = {"LDA": [0.1] * 4 + [None] * 6, "PCA": [0.2] * 4 + [None] * 6}
    errors[LARGEST_CLASS] = [0.5] * 4 + [None] * 6
    made = recorded(table, store, errors)
    racing = dataclasses.replace(made, budget=1.0)
    words = " ".join(conclude(racing, store, stopped=61.7).sentences)
    assert "STOPPED BY THE CLOCK after 62 s" in words
    assert "of 10 folds and depends on the speed of this machine" in words
    empty = conclude(dataclasses.replace(made, n_folds=3), store, stopped=61.7)
    assert (empty.best, empty.command, list(empty.answer)) == ("", "", list(empty.sentences))
    assert empty.sentences[0].startswith("STOPPED BY THE CLOCK after 62 s, before any method")


def test_a_sample_is_said(tmp_path, store):
    source = saved(blobs(90, 3, np.repeat(["a", "b"], 45)), tmp_path)
    source = dataclasses.replace(source, n_taken=40)
    _, words = verdict_of(source, store, {"LDA": around(0.1)})
    assert "Compared on a sample of 40 of the 90 rows" in words


SITUATIONS = {
    "winner": {"LDA": 0.1, "PCA": 0.4, "LSVA": 0.3, PERMUTED_GRAPH: 0.3},
    "ties": {"LDA": 0.1, "PCA": 0.11, "SVC rbf": 0.1, TREES[0]: 0.105},
    "tree": {TREES[0]: 0.1, "SVC rbf": 0.2, "LDA": 0.3},
    "nothing": {"LDA": 0.5, "PCA": 0.52, LARGEST_CLASS: 0.5},
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_sentence_has_words_that_strangers_did_not_understand(name, table, store):
    errors = {m: around(e, 0.03, k) for k, (m, e) in enumerate(SITUATIONS[name].items())}
    verdict, words = verdict_of(table, store, errors)
    assert [word for word in UNCLEAR if word in words] == []
    assert all(sentence.endswith(".") for sentence in verdict.sentences)
    assert len(verdict.answer) == 2


def test_choices_are_words():
    assert choices({"n_neighbors": 1, "graph_weight": 10.0}) == "1 neighbor, graph weight 10.0"
    assert choices({}) == ""
