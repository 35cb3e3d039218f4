"""Which folds are measured: a method that is clearly behind the best is not refined further.

The race looks at the errors after a few folds, and again whenever there are about twice as many.
At each look it lets go on whatever the 95 % interval of the difference does not put behind the
best, also a method that it had stopped before.  It sees only the folds that it asked for itself,
in their order, so that a race which was interrupted, or finds more records than it needs, ends as
one that was not.

Where few are told apart, all of them on all folds would take longer than the budget.  Then the
methods of least error go on, as many as the planned seconds allow; the others wait with the folds
they have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginfold.compare.methods import LARGEST_CLASS, METHODS, PERMUTED_GRAPH, plainness
from marginfold.compare.plan import planned_seconds
from marginfold.compare.runs import Comparison
from marginfold.linalg.tall import Array
from marginfold.protocols.cells import PERCENT, Evidence, best_by_seed
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.statistics import Interval, paired_interval
from marginfold.protocols.studies import Task

LEAST_FOLDS = 3
"""Fewer differences than this give no interval."""

LOOKS = (3, 5, 10, 20, 40)
"""Numbers of folds after which the race looks."""

WORTH = 2.0
"""Seconds of planned work that must be left for a look: one process may wait for the last tasks of
the other before it."""

DIGITS = 9
"""Digits by which errors differ; less is rounding, and the plainer method comes first."""

CONTROL = ("LSVA", PERMUTED_GRAPH)
"""A method and its control, which tell whether the graph matters: in a race the control goes on as
long as the method does, through the first repeat."""


@dataclass(frozen=True)
class Standing:
    """What the records say of one method.

    Attributes
    ----------
    shares : array of shape (n_repeats * n_folds,)
        Errors as shares, fold by fold and repeat by repeat; NaN where there is none.
    records : list of Record
        Those of the errors.
    reason : str
        Why it cannot be measured on some fold.
    """

    shares: Array
    records: Sequence[Record]
    reason: str = ""

    @property
    def n_measured(self) -> int:
        """How many folds have an error."""
        return int(np.count_nonzero(~np.isnan(self.shares)))

    @property
    def mean(self) -> float:
        """The mean error as a share; infinite where there is none."""
        return float(np.nanmean(self.shares)) if self.n_measured else np.inf

    def first(self, n_folds: int) -> Standing:
        """Return what is known from the first folds alone."""
        shares = np.where(np.arange(len(self.shares)) < n_folds, self.shares, np.nan)
        return Standing(shares, self.records, self.reason)


@dataclass(frozen=True)
class Race:
    """Where a race is.

    Attributes
    ----------
    counted : mapping of str to int
        How many folds of each method decide: those up to the last look, and before the first look
        one.
    missing : list of Task
        What has to be computed before the next look; none at the end.
    going_on : list of str
        Methods that are not behind.
    known : mapping of str to Standing
        What the records say at this point.
    """

    counted: Mapping[str, int]
    missing: Sequence[Task]
    going_on: Sequence[str]
    known: Mapping[str, Standing]


def standings(comparison: Comparison, store: RecordStore) -> dict[str, Standing]:
    """Return what the records say of every method."""
    evidence = Evidence(store, comparison.fold_tasks())
    found: dict[str, list[Record]] = {method: [] for method in comparison.methods}
    for record in evidence.any_records():
        found[record.method].append(record)
    return {method: _standing(records, comparison) for method, records in found.items()}


def counted_records(comparison: Comparison, store: RecordStore, **columns: Any) -> list[Record]:
    """Return the records with these columns that count in the end.

    Of each method these are the folds that the race gave it.
    """
    counted = run_race(comparison, standings(comparison, store)).counted
    found = Evidence(store, comparison.fold_tasks()).any_records(**columns)
    return [r for r in found if r.seed * comparison.n_folds + r.fold < counted[r.method]]


def final_standings(comparison: Comparison, store: RecordStore) -> dict[str, Standing]:
    """Return what counts in the end of every method."""
    found: dict[str, list[Record]] = {method: [] for method in comparison.methods}
    for record in counted_records(comparison, store):
        found[record.method].append(record)
    return {method: _standing(records, comparison) for method, records in found.items()}


def _standing(records: Sequence[Record], comparison: Comparison) -> Standing:
    errors = [r for r in records if r.metric == "error" and r.value is not None]
    if comparison.protocol == "paper":
        best = {v.seed: (v.params, v.dimension) for v in best_by_seed(records)}
        errors = [
            r for r in errors if best.get(r.seed) == (tuple(sorted(r.params.items())), r.dimension)
        ]
    shares = np.full(comparison.n_measurements, np.nan)
    for r in errors:
        shares[r.seed * comparison.n_folds + r.fold] = r.value
    reasons = sorted({r.reason for r in records if r.value is None and r.reason})
    return Standing(shares, errors, reasons[0] if reasons else "")


def run_race(
    comparison: Comparison,
    found: Mapping[str, Standing],
    attempted: Collection[str] | None = None,
) -> Race:
    """Follow the race through the records, up to the first folds that are missing.

    Parameters
    ----------
    comparison : Comparison
    found : mapping of str to Standing
    attempted : collection of str, optional
        Keys of the tasks that were tried: one of them without an error is not tried again.  By
        default nothing is tried again.
    """
    tasks = {(t.method, t.seed * comparison.n_folds + t.fold): t for t in comparison.fold_tasks()}
    granted = dict.fromkeys(comparison.methods, 0)
    whole = {method: _whole(method, comparison) for method in comparison.methods}
    going_on = paid = list(comparison.methods)
    while True:
        behind_schedule = [m for m in paid if granted[m] < whole[m]]
        if not behind_schedule:
            return Race(granted, [], going_on, found)
        goal = _next_look(min(granted[m] for m in behind_schedule), behind_schedule, comparison)
        given = {m: min(max(granted[m], goal), whole[m]) for m in behind_schedule}
        missing = [
            tasks[method, position]
            for method, n_folds in given.items()
            for position in range(granted[method], n_folds)
            if np.isnan(found[method].shares[position])
            and not _settled(tasks[method, position], found[method], attempted)
        ]
        if missing:
            counted = {method: max(n_folds, 1) for method, n_folds in granted.items()}
            return Race(counted, _in_order(missing, comparison), going_on, found)
        granted |= given
        known = {m: found[m].first(granted[m]) for m in found}
        going_on = _going_on(known, comparison)
        paid = _paid(going_on, known, granted, comparison)


def _settled(task: Task, standing: Standing, attempted: Collection[str] | None) -> bool:
    """Return whether a fold without an error is to stay without one."""
    return bool(standing.reason) if attempted is None else task.key in attempted


def _next_look(done: int, methods: Sequence[str], comparison: Comparison) -> int:
    """Return after how many folds the race looks next."""
    whole = comparison.n_measurements
    if not comparison.races:
        return whole
    seconds = sum(map(comparison.fold_seconds, methods))
    looks = (look for look in LOOKS if done < look and seconds * (whole - look) >= WORTH)
    return min(next(looks, whole), whole)


def _in_order(tasks: Sequence[Task], comparison: Comparison) -> list[Task]:
    """Put the first fold of cheap methods first, to have an answer; then what takes longest."""

    def rank(task: Task) -> tuple[bool, float, int, int]:
        seconds = comparison.fold_seconds(task.method)
        opens = task.seed == task.fold == 0
        return not opens, seconds if opens else -seconds, task.seed, task.fold

    return sorted(tasks, key=rank)


def _going_on(known: Mapping[str, Standing], comparison: Comparison) -> list[str]:
    """Return the methods that are not behind the best, and the controls that are of use."""
    best = leader(known)
    if not best:
        return []
    kept = {
        method
        for method, standing in known.items()
        if not standing.reason
        and (METHODS[method].control or behind(standing, known[best], comparison).low <= 0)
    }
    if CONTROL[0] in known and CONTROL[0] not in kept:
        kept.discard(CONTROL[1])
    return [method for method in known if method in kept]


def _paid(
    methods: Sequence[str],
    known: Mapping[str, Standing],
    granted: Mapping[str, int],
    comparison: Comparison,
) -> list[str]:
    """Return those of the methods, by error, whose other folds the rest of the budget pays for.

    The best is always among them, and guessing, which costs nothing: the answer compares the two.
    """
    if comparison.budget is None:
        return list(methods)
    price = {m: comparison.fold_seconds(m) for m in known}
    left = planned_seconds(comparison.budget) - sum(granted[m] * price[m] for m in known)
    best = leader(known)
    paid = []
    for method in sorted(methods, key=lambda m: (m != best, known[m].mean)):
        rest = (_whole(method, comparison) - granted[method]) * price[method]
        if method in (best, LARGEST_CLASS) or rest <= left:
            left -= rest
            paid.append(method)
    return paid


def _whole(method: str, comparison: Comparison) -> int:
    """Return how many folds a method has at most: in a race a control of one repeat will do."""
    return (
        comparison.n_folds
        if comparison.races and method == CONTROL[1]
        else (comparison.n_measurements)
    )


def leader(known: Mapping[str, Standing]) -> str:
    """Return the method of least error among those measured on most folds; "" if there is none."""
    able = {
        method: standing
        for method, standing in known.items()
        if not METHODS[method].control and not standing.reason and standing.n_measured
    }
    most = max((standing.n_measured for standing in able.values()), default=0)
    ahead = [method for method, standing in able.items() if standing.n_measured == most]
    means = {method: round(able[method].mean, DIGITS) for method in ahead}
    return min(ahead, key=lambda method: (means[method], plainness(method)), default="")


def behind(standing: Standing, best: Standing, comparison: Comparison) -> Interval:
    """Return the error minus that of the best in points, over the folds that both have."""
    return difference(standing.shares, best.shares, comparison)


def difference(shares: Array, others: Array, comparison: Comparison) -> Interval:
    """Return the interval of the mean difference of errors, in points, over common folds.

    It has no bounds if there are too few folds.
    """
    gaps = PERCENT * (shares - others)
    gaps = gaps[~np.isnan(gaps)]
    if len(gaps) < LEAST_FOLDS:
        mean = float(gaps.mean()) if len(gaps) else np.nan
        return Interval(mean, -np.inf, np.inf, 1.0)
    n = comparison.n_rows
    n_test = n // comparison.n_folds
    half_a_row = PERCENT / n_test / 2
    found = paired_interval(gaps, n - n_test, n_test, least_deviation=half_a_row)
    low, high = max(found.low, -PERCENT), min(found.high, PERCENT)
    return Interval(found.mean, low, high, found.p_value)


def rounds(comparison: Comparison, store: RecordStore) -> Iterator[Race]:
    """Yield the race at each look; compute its missing tasks before the next is asked for."""
    attempted: set[str] = set()
    while True:
        race = run_race(comparison, standings(comparison, store), attempted)
        if not race.missing:
            return
        attempted |= {task.key for task in race.missing}
        yield race
