"""Costs per task and the order of tasks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine

from marginfold import LSVA, MMDA
from marginfold.errors import InvalidParameterError
from marginfold.geometry.one_vs_rest import (
    SCHEDULES,
    AtRandom,
    BySize,
    ClassMeans,
    Greedy,
    LabelledRows,
    RoundRobin,
    Splits,
    class_factors,
    one_vs_rest_tasks,
    resolved_schedule,
)

CODES = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 1.0, 0.1, 1.0])


def labelled(*, balanced=False, factors=(1.0, 1.0, 1.0)):
    return LabelledRows(CODES, WEIGHTS, 3, balanced, np.array(factors))


def no_means():
    raise AssertionError("this schedule does not need the class means")


# ---------------------------------------------------------------- rows


def test_signs_of_a_task():
    assert (labelled().signs((1,)) == np.where(CODES == 1, 1, -1)).all()
    assert (labelled().signs((0, 2)) == np.where(CODES == 1, -1, 1)).all()


def test_plain_costs_are_weights_times_the_cost():
    assert_allclose(labelled().costs((1,), 7.0), 7.0 * WEIGHTS)


def test_factors_belong_to_classes():
    assert_allclose(labelled(factors=(1.0, 5.0, 0.1)).costs((0,), 2.0)[3:5], 10.0)


@pytest.mark.parametrize("task", [(0,), (1,), (2,), (0, 1)])
def test_balanced_sides_cost_the_same_and_the_total_stays(task):
    rows = labelled(balanced=True)
    costs, positive = rows.costs(task, 3.0), rows.signs(task) > 0
    assert costs[positive].sum() == pytest.approx(costs[~positive].sum())
    assert costs.sum() == pytest.approx(3.0 * WEIGHTS.sum())
    assert_allclose(costs[positive] / WEIGHTS[positive], costs[positive][0] / WEIGHTS[positive][0])


def test_class_means_are_weighted():
    rows = np.random.default_rng(0).standard_normal((9, 4))
    means = labelled().class_means(rows)
    for code in range(3):
        members = code == CODES
        assert_allclose(means[code], np.average(rows[members], axis=0, weights=WEIGHTS[members]))


# ---------------------------------------------------------------- class_weight


def test_class_weight_none_balanced_and_dict():
    classes = np.array(["a", "b", "c"])
    assert class_factors(None, classes)[0] is False
    assert class_factors("balanced", classes)[0] is True
    assert_allclose(class_factors(None, classes)[1], 1)
    balanced, factors = class_factors({"b": 3, "a": 0.5}, classes)
    assert balanced is False
    assert_allclose(factors, [0.5, 3.0, 1.0])


def test_class_weight_of_whole_number_classes():
    assert_allclose(class_factors({2: 4.0}, np.array([1, 2]))[1], [1.0, 4.0])


@pytest.mark.parametrize(
    ("class_weight", "says"),
    [
        ("Balanced", "None, 'balanced' or a dict"),
        ([1, 2, 3], "None, 'balanced' or a dict"),
        (2.0, "None, 'balanced' or a dict"),
        ({"z": 1.0}, "'z'"),
        ({"a": 0.0}, "> 0"),
        ({"a": -1.0}, "> 0"),
        ({"a": np.nan}, "finite"),
        ({"a": np.inf}, "finite"),
    ],
)
def test_class_weight_refusals(class_weight, says):
    with pytest.raises(InvalidParameterError, match=says):
        class_factors(class_weight, np.array(["a", "b", "c"]))


# ---------------------------------------------------------------- one against the rest


def test_two_classes_are_one_task():
    assert one_vs_rest_tasks(2) == [(1,)]
    assert one_vs_rest_tasks(3) == [(0,), (1,), (2,)]


def run(schedule, gains, n_steps, means=no_means):
    """Return the kept tasks when the k-th kept direction finds the gains ``gains(task, k)``."""
    kept, fresh, solved = [], set(), 0
    while len(kept) < n_steps and (tasks := schedule.propose(means)):
        for task in tasks:
            assert task not in fresh  # nothing is solved twice in one subspace
            gain = gains(task, len(kept))
            solved += 1
            schedule.report(task, gain, gain > 0)
            fresh |= {task} if gain > 0 else set()
        if (chosen := schedule.choose(fresh)) is not None:
            kept.append(chosen)
            fresh.clear()
    return kept, solved


def test_round_robin_goes_around():
    kept, solved = run(RoundRobin(3), lambda task, k: 1.0, 7)
    assert kept == [(0,), (1,), (2,), (0,), (1,), (2,), (0,)]
    assert solved == 7


def test_round_robin_drops_exhausted_tasks_for_good():
    alive = {(0,): 2, (1,): 0, (2,): 5}
    kept, solved = run(RoundRobin(3), lambda task, k: float(k < alive[task]), 10)
    assert kept == [(0,), (2,), (2,), (2,), (2,)]
    assert solved == len(kept) + 3  # each task is refused once


def test_the_heaviest_class_is_first_and_equal_ones_keep_their_order():
    kept, solved = run(BySize(np.array([2.0, 5.0, 2.0, 7.5])), lambda task, k: 1.0, 6)
    assert kept == [(3,), (1,), (0,), (2,), (3,), (1,)]
    assert solved == 6
    assert run(BySize(np.array([9.0, 1.0])), lambda task, k: 1.0, 2)[0] == [(1,), (1,)]


@pytest.mark.parametrize("weighted", [False, True])
def test_by_size_is_the_round_robin_of_classes_renamed_by_their_weight(weighted):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = np.where(y == 2, 3.0, 1.0) if weighted else np.ones(len(y))
    order = np.argsort(-np.bincount(y, weights))
    assert order.tolist() == ([2, 1, 0] if weighted else [1, 0, 2])
    renamed = np.argsort(order)[y]
    model = MMDA(5, C=1.0, tasks="by_size").fit(X, y, sample_weight=weights)
    other = MMDA(5, C=1.0, tasks="one_vs_rest").fit(X, renamed, sample_weight=weights)
    assert [order[task] for task in other.tasks_] == model.tasks_
    assert_allclose(model.transform(X), other.transform(X), atol=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_at_random_each_class_comes_once_and_then_any_until_all_are_exhausted(seed):
    lives = np.random.default_rng(100 + seed).integers(0, 9, 5)

    def gain(task, k):
        return float(k < lives[task[0]])

    kept, solved = run(AtRandom(5, seed), gain, 40)
    first = [(code,) for code in range(5)]
    for k, task in enumerate(kept):  # whoever has a gain in its first turn is kept
        first = [code for code in first if gain(code, k) > 0]
        assert task == first.pop(0) if first else gain(task, k) > 0
    assert len(kept) == lives.max()  # the class that lives longest is drawn to its end
    assert solved == len(kept) + 5  # each task is refused once
    assert run(AtRandom(5, seed), gain, 3)[0] == kept[:3]


def test_at_random_all_classes_are_drawn_about_equally_often():
    kept, solved = run(AtRandom(4, 0), lambda task, k: 1.0, 4004)
    assert kept[:4] == [(0,), (1,), (2,), (3,)]
    assert solved == 4004
    counts = np.bincount([task[0] for task in kept[4:]])
    assert (abs(counts - 1000) < 5 * np.sqrt(750)).all()  # five standard deviations


def test_random_tasks_depend_on_the_seed_alone():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    models = [MMDA(8, C=1.0, tasks="random", random_state=seed).fit(X, y) for seed in (3, 3, 4)]
    assert_allclose(models[0].transform(X), models[1].transform(X), rtol=0, atol=0)
    assert models[0].tasks_[:3] == models[2].tasks_[:3] == [0, 1, 2]
    assert models[0].tasks_ != models[2].tasks_
    lsva = LSVA(8, C=1.0, tasks="random", random_state=3)
    path = lsva.fit_path(X, y, graph_weight=[0.1, 1.0])
    assert path[1].tasks_ == lsva.fit(X, y).tasks_
    fewer = MMDA(5, C=1.0, tasks="random", random_state=3).fit(X, y)
    assert_allclose(fewer.transform(X), models[0].transform(X)[:, :5], atol=1e-7)
    with pytest.raises(InvalidParameterError, match="random_state must be a whole number >= 0"):
        MMDA(tasks="random", random_state=None).fit(X, y)


@pytest.mark.parametrize("seed", range(20))
def test_lazy_greedy_is_greedy_when_gains_only_fall(seed):
    """Against an eager loop that looks at all gains each time."""
    rng = np.random.default_rng(seed)
    n_classes, n_steps = 5, 12
    table = np.sort(rng.random((n_classes, n_steps + 1)), axis=1)[:, ::-1]
    table[rng.random(table.shape).cumsum(axis=1) > 7] = 0.0
    eager, alive = [], set(range(n_classes))
    while len(eager) < n_steps:
        alive = {code for code in alive if table[code, len(eager)] > 0}
        if not alive:
            break
        eager.append((max(alive, key=lambda code: table[code, len(eager)]),))
    lazy, solved = run(Greedy(n_classes), lambda task, k: table[task[0], k], n_steps)
    assert lazy == eager
    assert solved <= n_classes * (n_steps + 1)


def test_of_equal_gains_the_earlier_class_goes_first():
    kept, _ = run(Greedy(3), lambda task, k: 1.0, 3)
    assert kept == [(0,), (0,), (0,)]
    kept, _ = run(Greedy(3), lambda task, k: {(0,): 0.5}.get(task, 1.0 - 1e-12 * task[0]), 1)
    assert kept == [(1,)]


def test_gains_close_to_one_are_told_apart_by_what_they_lack():
    gains = {(0,): 1.0 - 1e-10, (1,): 1.0 - 1e-12, (2,): 0.5}
    kept, _ = run(Greedy(3), lambda task, k: gains[task], 1)
    assert kept == [(1,)]


def test_greedy_asks_for_all_unknown_tasks_at_once():
    assert Greedy(4).propose(no_means) == [(0,), (1,), (2,), (3,)]


def test_lazy_greedy_solves_less_than_an_eager_loop():
    gains = {(code,): 1.0 / (1 + code) for code in range(6)}
    kept, solved = run(Greedy(6), lambda task, k: gains[task] if task != (0,) else 1.0, 5)
    assert kept == [(0,)] * 5
    assert solved < 6 * 5


# ---------------------------------------------------------------- splits


def at(left, found=None):
    """Return what a schedule asks for: class means in what is left, and along what was found."""
    left = np.asarray(left, dtype=float)
    found = np.zeros((len(left), 1)) if found is None else np.asarray(found, dtype=float)
    return lambda: ClassMeans(left, found)


def line_means(n_classes):
    return np.column_stack([np.arange(n_classes, dtype=float), np.zeros(n_classes)])


def sides_of(task, n_classes):
    return np.where(np.isin(np.arange(n_classes), task), 1.0, -1.0)


def parted_pairs(task, means, overlaps):
    """Return the length of the sum that the schedule maximises, pair by pair."""
    total = np.zeros(means.shape[1])
    for i in task:
        for j in set(range(len(means))) - set(task):
            difference = means[i] - means[j]
            total += overlaps[i, j] * difference / np.linalg.norm(difference)
    return np.linalg.norm(total)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 8, 11, 26])
def test_splits_part_all_pairs_in_about_log2_tasks(n_classes, seed):
    """Every task puts its classes on the margins and takes the direction of their means."""
    means = np.random.default_rng(seed).standard_normal((n_classes, n_classes))
    schedule, found = Splits(n_classes), np.zeros((n_classes, 0))
    for _ in range(int(np.ceil(np.log2(n_classes))) + (n_classes > 3)):
        (task,) = schedule.propose(at(means, np.column_stack([np.zeros(n_classes), found])))
        schedule.report(task, 1.0, True)
        sides = sides_of(task, n_classes)
        found = np.column_stack([found, sides])
        direction = means[sides > 0].mean(axis=0) - means[sides < 0].mean(axis=0)
        direction /= np.linalg.norm(direction)
        means = means - np.outer(means @ direction, direction)
    assert len(np.unique(found, axis=0)) == n_classes


@pytest.mark.parametrize("seed", range(20))
def test_no_class_of_a_split_would_rather_be_on_the_other_side(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(3, 9))
    means, found = rng.standard_normal((n_classes, 5)), rng.standard_normal((n_classes, 2))
    (task,) = Splits(n_classes).propose(at(means, found))
    overlaps = np.exp(-0.5 * ((found[:, None] - found[None]) ** 2).sum(axis=2))
    reached = parted_pairs(task, means, overlaps)
    for code in range(n_classes):
        other = set(task) ^ {code}
        assert parted_pairs(other, means, overlaps) <= reached * (1 + 1e-9)


def test_splits_halve_classes_on_a_line():
    assert Splits(4).propose(at(line_means(4))) == [(2, 3)]
    assert Splits(2).propose(at(line_means(2))) == [(1,)]


def test_splits_part_what_is_still_confused():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 0.0], [3.0, 1.0]])
    assert Splits(4).propose(at(square)) == [(2, 3)]
    assert Splits(4).propose(at(square, [[-3.0], [-3.0], [3.0], [3.0]])) == [(1, 3)]


def test_a_class_that_is_parted_for_good_stays_where_it_lies():
    means = np.array([[0.0], [1.0], [9.0]])
    for value in (3.0, 30.0, 3e4):
        assert Splits(3).propose(at(means, [[0.0], [0.0], [value]])) == [(1, 2)]


def test_splits_do_not_depend_on_the_sign_of_the_means():
    tied = np.array([[0.0], [1.0], [1.0], [2.0], [5.0]])
    for means in (tied, line_means(5), line_means(6)):
        assert Splits(len(means)).propose(at(means)) == Splits(len(means)).propose(at(-means))


@pytest.mark.parametrize("seed", range(20))
def test_splits_do_not_depend_on_the_order_of_the_classes(seed):
    rng = np.random.default_rng(seed)
    means, found = rng.standard_normal((7, 4)), rng.standard_normal((7, 2))
    order = rng.permutation(7)
    ((task,), (other,)) = (
        Splits(7).propose(at(means, found)),
        Splits(7).propose(at(means[order], found[order])),
    )
    assert {*order[list(other)]} in ({*task}, {*range(7)} - {*task})


def test_a_split_never_has_the_first_class_on_its_positive_side():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        (task,) = Splits(6).propose(at(rng.standard_normal((6, 3)), rng.standard_normal((6, 2))))
        assert 0 not in task
        assert 0 < len(task) < 6


def test_splits_go_on_while_there_is_gain():
    kept, _ = run(Splits(4), lambda task, k: float(k < 5), 20, at(line_means(4)))
    assert len(kept) == 5


@pytest.mark.parametrize("means", [np.eye(8), line_means(8), np.zeros((8, 3))])
def test_splits_without_gain_are_tried_once_each_and_end(means):
    kept, solved = run(Splits(8), lambda task, k: 0.0, 20, at(means))
    assert kept == []
    assert 1 <= solved <= 8


def test_a_split_without_gain_gives_way_to_another():
    first = Splits(4).propose(at(np.eye(4)[:, :3]))
    kept, solved = run(Splits(4), lambda task, k: float(task != first[0]), 1, at(np.eye(4)[:, :3]))
    assert kept
    assert kept != first
    assert solved == 2


def test_corners_of_a_rectangle_are_split_along_one_side_then_along_the_other():
    """These are the eigenvectors: what brings nothing gives way to the next one."""
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 0.0], [3.0, 1.0]])
    schedule, found = Splits(4), []
    for _ in range(2):
        (task,) = schedule.propose(at(corners))
        schedule.report(task, 0.0, False)
        found.append(task)
    assert found == [(2, 3), (1, 3)]


def test_means_that_coincide_up_to_rounding_decide_nothing():
    """Once the spread of the means is taken, noise of the order of rounding has no say."""
    proposals = []
    for seed in range(5):
        schedule = Splits(5)
        schedule.propose(at(line_means(5)))
        noise = 1e-9 * np.random.default_rng(seed).standard_normal((5, 2))
        proposals.append(schedule.propose(at(noise)))
    assert all(proposal == proposals[0] for proposal in proposals)


# ---------------------------------------------------------------- names


def test_names_of_schedules():
    assert set(SCHEDULES) == {"one_vs_rest", "by_size", "random", "greedy", "splits"}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_named_schedule_is_itself(name):
    assert {resolved_schedule(name, c, k) for c in (2, 3, 9) for k in (1, 5, 20)} == {name}


def test_auto_splits_when_fewer_components_than_tasks_are_asked_for():
    assert [resolved_schedule("auto", 5, k) for k in (1, 4)] == ["splits"] * 2
    assert [resolved_schedule("auto", 5, k) for k in (5, 6)] == ["one_vs_rest"] * 2
    assert resolved_schedule("auto", 2, 1) == "one_vs_rest"  # two classes are one task
