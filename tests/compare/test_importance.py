"""The importance of columns against the loop that it abbreviates, and where it is known."""

from __future__ import annotations

import numpy as np
import pytest

from marginfold.compare.importance import (
    LEAST_ROWS,
    MOST_ANSWERS,
    REPEATS,
    added_errors,
    held_out_rows,
)
from marginfold.protocols.studies import Skip

pd = pytest.importorskip("pandas", reason="tables need the extra cli")


def by_rule(frame):
    """A classifier that looks at a number and a word, and at nothing else."""
    return np.where((frame["size"] > 0) & (frame["hue"] == "red"), "a", "b")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(300),
            "noise": rng.standard_normal(300),
            "hue": rng.choice(["red", "blue"], 300),
        },
        index=rng.permutation(300),
    )
    labels = by_rule(frame)
    labels[:20] = "b"  # it is not always right
    return frame, labels


def test_it_is_the_literal_loop(rows):
    frame, labels = rows
    rng = np.random.default_rng(5)
    before = np.mean(by_rule(frame) != labels)
    expected = np.empty((3, REPEATS))
    for j, name in enumerate(frame.columns):
        for shuffle in range(REPEATS):
            changed = frame.copy()
            changed[name] = frame[name].to_numpy()[rng.permutation(len(frame))]
            expected[j, shuffle] = np.mean(by_rule(changed) != labels) - before
    assert added_errors(by_rule, frame, labels, seed=5) == pytest.approx(expected, abs=1e-12)


def test_a_column_that_is_not_looked_at_adds_nothing_and_rows_are_left_as_they_were(rows):
    frame, labels = rows
    copy = frame.copy()
    added = added_errors(by_rule, frame, labels, seed=0)
    assert np.array_equal(added[1], np.zeros(REPEATS))
    assert added[[0, 2]].min() > 0.1
    pd.testing.assert_frame_equal(frame, copy)


@pytest.mark.parametrize("n_columns", [1, 7, 40, 150])
def test_no_more_answers_are_asked_for_than_are_allowed(n_columns):
    for n_rows in (30, 500, 100_000):
        taken = held_out_rows(n_rows, n_columns)
        assert taken * n_columns * REPEATS <= MOST_ANSWERS
        assert min(n_rows, LEAST_ROWS) <= taken <= n_rows


def test_very_many_columns_are_a_reason_to_leave_it_out():
    with pytest.raises(Skip, match="201 columns: shuffling each of more than 200 takes too long"):
        held_out_rows(1000, 201)
