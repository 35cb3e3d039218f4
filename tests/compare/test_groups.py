"""Rows of one person are never on both sides of a fold: the column that names them is --group."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
from sklearn.neighbors import KNeighborsClassifier

from marginfold.compare.comparison import conclude, how_to_keep, keep
from marginfold.compare.methods import NEIGHBORS, procedure
from marginfold.compare.mistakes import held_out_answers
from marginfold.compare.runs import Comparison
from marginfold.compare.table import Size, Source
from marginfold.errors import InvalidInputError
from marginfold.protocols.records import RecordStore
from marginfold.protocols.run import run_tasks
from marginfold.protocols.splits import folds

pd = pytest.importorskip("pandas", reason="tables need the extra cli")

METHODS = ["all features", "lda", "lsva", "gesvc", "svc rbf", "largest class"]


def people(n_people=24, n_rows=8, *, signal=0.0, seed=0):
    """Rows of people who differ much more than their classes do; each has one class."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n_people), n_rows)
    codes = who % 2
    X = 2.0 * rng.standard_normal((n_people, 6))[who] + 0.3 * rng.standard_normal((len(who), 6))
    X[:, 0] += signal * codes
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["person"] = [f"p{k:02d}" for k in who]
    frame["kind"] = np.where(codes, "ill", "well")
    return frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)


def source_of(frame, folder, **options):
    path = folder / "people.csv"
    frame.to_csv(path, index=False)
    return Source(str(path), "kind", **options)


def measured(source, folder, methods=METHODS):
    comparison = Comparison.of(source, methods, n_folds=4, n_repeats=1)
    store = RecordStore(folder / "run")
    assert run_tasks(comparison.fold_tasks(), store).failed == 0
    return comparison, store


def errors(source, folder):
    comparison, store = measured(source, folder)
    with store:
        return {row.method: row.error for row in conclude(comparison, store).rows}


def test_folds_keep_groups_together_and_hold_every_row_out_once():
    y, groups = np.arange(60) % 3, np.arange(60) // 4
    parts = folds(y, 5, seed=0, groups=groups)
    for train, test in parts:
        assert not set(groups[train]) & set(groups[test])
    every = np.sort(np.concatenate([test for _, test in parts]))
    np.testing.assert_array_equal(every, np.arange(60))


def test_who_was_seen_before_is_recognised_and_others_are_not(tmp_path):
    (tmp_path / "apart").mkdir()
    together = errors(source_of(people(), tmp_path, group="person"), tmp_path)
    divided = errors(source_of(people(), tmp_path, drop=("person",)), tmp_path / "apart")
    assert divided["all features"] < 2.0
    assert together["all features"] > 25.0
    signal = source_of(people(signal=12.0), tmp_path, group="person")
    (tmp_path / "signal").mkdir()
    assert errors(signal, tmp_path / "signal")["LDA"] < 15.0


def test_held_out_rows_are_of_people_who_were_not_seen(tmp_path):
    frame = people()
    comparison, store = measured(source_of(frame, tmp_path, group="person"), tmp_path)
    with store:
        rows = held_out_answers(comparison, store, "all features").rows
    np.testing.assert_array_equal(np.sort(rows), np.arange(len(frame)))
    table = comparison.source.read()
    for train, test in table.folds(4, 0):
        people_of = [set(frame["person"].iloc[side]) for side in (train, test)]
        assert not people_of[0] & people_of[1]
    assert list(table.frame.columns) == list("abcdef")


def test_parameters_are_chosen_by_people_who_were_not_seen():
    frame = people(signal=1.5)
    X, y = frame[list("abcdef")].to_numpy(), frame["kind"].to_numpy()
    groups = pd.factorize(frame["person"])[0]
    size = Size.of(y, 6, grouped=True)
    chosen = procedure("all features", size).fit(X, y, groups=groups)
    literal = GridSearchCV(
        KNeighborsClassifier(),
        {"n_neighbors": list(NEIGHBORS)},
        cv=StratifiedGroupKFold(3, shuffle=True, random_state=0),
    ).fit(X, y, groups=groups)
    np.testing.assert_allclose(
        chosen.cv_results_["mean_test_score"], literal.cv_results_["mean_test_score"]
    )
    assert literal.cv_results_["mean_test_score"].max() < 0.9
    apart = clone(literal).set_params(cv=3).fit(X, y)
    assert apart.best_score_ > 0.95


@pytest.mark.parametrize("method", ["all features", "LSVA", "GESVC"])
def test_what_is_kept_is_what_the_python_lines_fit(method, tmp_path):
    comparison = Comparison.of(source_of(people(signal=3.0), tmp_path, group="person"), [method])
    kept = keep(method, comparison)
    found = how_to_keep(method, comparison)
    assert "--group person" in found.command
    names: dict[str, object] = {}
    exec(found.snippet, names)
    np.testing.assert_array_equal(names["answers"], kept.predict(comparison.source.read().frame))
    assert repr(names["model"].method) == repr(kept.method)
    assert "person" not in kept.columns


def test_another_column_of_groups_is_another_comparison(tmp_path):
    frame = people()
    frame["ward"] = [f"w{k % 8}" for k in range(len(frame))]
    hashes = {
        source_of(frame, tmp_path, group=group, drop=drop).read().hash
        for group, drop in (
            (None, ("person", "ward")),
            ("person", ("ward",)),
            ("ward", ("person",)),
        )
    }
    assert len(hashes) == 3


def test_few_people_make_few_folds_and_too_few_are_refused(tmp_path):
    comparison = Comparison.of(source_of(people(8), tmp_path, group="person"), ["lda"], n_folds=9)
    assert comparison.n_folds == 8
    assert "8 folds instead of 9: there are no more groups" in comparison.notes
    with pytest.raises(InvalidInputError, match="makes 3 groups: too few for 3 folds"):
        Comparison.of(source_of(people(3), tmp_path, group="person"), ["lda"])


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, {"group": "persan"}, "--group 'persan' is not a column. Did you mean 'person'"),
        ({}, {"group": "kind"}, "--group kind is the target"),
        ({}, {"group": "person", "drop": ("person",)}, "--group person is left out with --drop"),
        ({"person": "p"}, {"group": "person"}, "has one value, p"),
        ({"person": [None, "x"] * 96}, {"group": "person"}, "missing in 96 of 192 rows"),
    ],
)
def test_groups_that_cannot_be_read_are_refused(change, options, said, tmp_path):
    source = source_of(people().assign(**change), tmp_path, **options)
    with pytest.raises(InvalidInputError, match=said):
        Comparison.of(source, ["lda"])


def test_a_column_of_names_is_pointed_out(tmp_path):
    notes = Comparison.of(source_of(people(), tmp_path), ["lda"]).notes
    assert any("--group person asks whether new ones can be predicted" in note for note in notes)
    assert not any(
        "--group" in note
        for frame in (people().drop(columns="person"), people().assign(person=["x", "y"] * 96))
        for note in Comparison.of(source_of(frame, tmp_path), ["lda"]).notes
    )
