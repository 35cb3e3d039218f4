"""Confusions and rows that are always wrong, against scikit-learn and plain loops."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import confusion_matrix, recall_score

from marginfold.compare.mistakes import MOST_ROWS, find_mistakes


def answers_at_random(n_rows, n_repeats, seed):
    rng = np.random.default_rng(seed)
    truth = rng.choice(["a", "b", "c"], n_rows, p=[0.6, 0.3, 0.1])
    rows = np.concatenate([rng.permutation(n_rows) for _ in range(n_repeats)])
    return rows + 1, truth[rows], rng.choice(["a", "b", "c"], len(rows))


def test_the_counts_are_those_of_scikit_learn():
    rows, labels, answers = answers_at_random(200, 3, seed=0)
    found = find_mistakes("LDA", rows.tolist(), labels.tolist(), answers.tolist())
    assert np.array_equal(found.counts, confusion_matrix(labels, answers))
    np.testing.assert_allclose(found.errors, 1 - recall_score(labels, answers, average=None))
    assert found.counts.sum() == len(rows)


def test_rows_are_listed_that_no_repeat_got_right():
    rows, labels, answers = answers_at_random(200, 3, seed=1)
    found = find_mistakes("LDA", rows.tolist(), labels.tolist(), answers.tolist())
    expected = []
    for row in range(1, 201):
        mine = rows == row
        if not np.any(labels[mine] == answers[mine]):
            values, counts = np.unique(answers[mine], return_counts=True)
            expected.append((row, labels[mine][0], values[counts.argmax()], 3))
    assert found.n_always == len(expected) > MOST_ROWS
    shown = [(w.row, w.label, w.answer, w.times) for w in found.always]
    assert shown == expected[:MOST_ROWS]


def test_an_answer_that_is_no_label_and_a_class_that_was_never_held_out_have_places():
    found = find_mistakes("LDA", [1, 2], [0, 0], [0, 7])
    assert list(found.classes) == [0, 7]
    assert found.errors[0] == 0.5
    assert np.isnan(found.errors[1])
