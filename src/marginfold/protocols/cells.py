"""From records to the cell of a table: mean over folds, the papers' choice, spread over seeds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginfold.protocols.embeddings import EQUAL_DIGITS
from marginfold.protocols.published_numbers import Printed
from marginfold.protocols.records import Record, RecordStore, as_json
from marginfold.protocols.results import Cell, mark
from marginfold.protocols.studies import Task

NOT_COMPUTED = "not computed, or not on all folds"
"""The note of a cell without any record."""

PERCENT = 100.0
"""Records hold shares, tables percent."""


@dataclass(frozen=True)
class SeedValue:
    """The value of one seed: mean over its folds, at the parameters that were chosen."""

    seed: int
    value: float
    params: tuple[tuple[str, Any], ...]
    dimension: float | None


class Evidence:
    """The records of planned tasks: what was left by other plans in the same folder is not read."""

    def __init__(self, store: RecordStore, tasks: Iterable[Task]) -> None:
        planned = list({task.key: task for task in tasks}.values())
        self._store = store
        self._keys = {task.key for task in planned}
        self._sizes = Counter(_seed_of(task) for task in planned)
        self._studies = sorted({task.study for task in planned})

    def any_records(self, **columns: Any) -> list[Record]:
        """Return the planned records with these columns, of incomplete seeds too."""
        found = self._store.read(**({"study": self._studies} | columns))
        return [record for record in found if record.task in self._keys]

    def records(self, **columns: Any) -> list[Record]:
        """Return the planned records with these columns, of seeds whose folds all have some."""
        kept = self.any_records(**columns)
        there: dict[Any, set[str]] = defaultdict(set)
        for record in kept:
            there[_seed_of(record)].add(record.task)
        whole = {seed for seed, keys in there.items() if len(keys) == self._sizes[seed]}
        return [record for record in kept if _seed_of(record) in whole]


def nested_means(cells: Sequence[Cell], ending: str = " (nested)") -> str:
    """Say what the methods come to, over all rows, if nothing is chosen on test rows.

    Columns whose name ends so stand beside those of the paper's choice, on the rows that both have.

    Examples
    --------
    >>> from marginfold.protocols.cells import nested_means
    >>> from marginfold.protocols.results import Cell
    >>> cells = [Cell("wine", "LDA", 1.0), Cell("wine", "LDA (nested)", 2.5)]
    >>> nested_means(cells)
    'LDA 2.50 instead of 1.00'
    """
    values = {(c.column, c.row): c.value for c in cells if c.value is not None}
    parts = []
    for column in dict.fromkeys(c.column.removesuffix(ending) for c in cells):
        both = [row for name, row in values if name == column and (column + ending, row) in values]
        if both:
            own, nested = (
                np.mean([values[name, row] for row in both]) for name in (column, column + ending)
            )
            parts.append(f"{column} {nested:.2f} instead of {own:.2f}")
    return ", ".join(parts)


def _seed_of(one: Task | Record) -> tuple[Any, ...]:
    """Return what the folds of one seed have in common."""
    identity = (one.study, one.dataset, one.method, one.protocol, one.seed)
    return (*identity, as_json(one.options))


def best_by_seed(records: Iterable[Record]) -> list[SeedValue]:
    """Return, for each seed, the least mean over folds over all parameters.

    This is the papers' protocol: the parameters and the dimension are chosen *on the test folds*.
    Parameters that some fold lacks do not count; of equal values the fewest dimensions win.
    """
    values: dict[int, dict[Any, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    n_folds: dict[int, set[int]] = defaultdict(set)
    for r in records:
        n_folds[r.seed].add(r.fold)
        if r.value is not None:
            params = tuple(sorted(r.params.items()))
            values[r.seed][params, r.dimension][r.fold] = r.value
    found = []
    for seed in sorted(values):
        means = [
            (float(np.mean(list(folds.values()))), dimension, params)
            for (params, dimension), folds in values[seed].items()
            if len(folds) == len(n_folds[seed])
        ]
        if means:
            value, dimension, params = min(
                means, key=lambda m: (round(m[0], EQUAL_DIGITS), m[1] or 0, str(m[2]))
            )
            found.append(SeedValue(seed, value, params, dimension))
    return found


def mean_by_seed(records: Iterable[Record]) -> list[SeedValue]:
    """Return the mean over folds of each seed: parameters were chosen inside the training rows.

    A seed with a fold that has no value has none either.
    """
    by_seed: dict[int, list[Record]] = defaultdict(list)
    for r in records:
        by_seed[r.seed].append(r)
    found = []
    for seed, rows in sorted(by_seed.items()):
        values = [r.value for r in rows if r.value is not None]
        if len(values) == len(rows):
            dimensions = [r.dimension for r in rows if r.dimension is not None]
            dimension = float(np.median(dimensions)) if dimensions else None
            found.append(SeedValue(seed, float(np.mean(values)), (), dimension))
    return found


def cell(
    row: str,
    column: str,
    records: Sequence[Record],
    values: Sequence[SeedValue],
    *,
    n_rows: int,
    printed: Printed | None = None,
    accuracy: bool = False,
    counted: bool = True,
) -> Cell:
    """Return the cell of a table in percent, with its mark.

    Values are errors as shares; ``accuracy`` shows 100 minus them.  The records are all that the
    cell rests on (a skipped one gives its reason), ``n_rows`` are for the sampling error, and a
    variant of what is printed is not ``counted``.
    """
    empty = Cell(
        row,
        column,
        printed=printed.value if printed else None,
        printed_spread=printed.spread if printed else None,
        printed_dimension=printed.dimension if printed else None,
        note=_why_not(records),
        source=_source(records),
        counted=counted,
    )
    if not values:
        return empty
    shares = np.array([v.value for v in values])
    percent = PERCENT * (1.0 - shares if accuracy else shares)
    value, spread = float(percent.mean()), float(percent.std(ddof=1)) if len(percent) > 1 else None
    dimensions = [v.dimension for v in values if v.dimension is not None]
    return replace(
        empty,
        value=value,
        spread=spread,
        n_seeds=len(values),
        dimension=float(np.median(dimensions)) if dimensions else None,
        mark=mark(value, spread, empty.printed, n_rows),
    )


def accuracy_cell(
    row: str, column: str, records: Sequence[Record], *, n_rows: int, printed: Printed | None = None
) -> Cell:
    """Return the cell of an accuracy: mean over folds, then over seeds."""
    values = mean_by_seed(records)
    return cell(row, column, records, values, n_rows=n_rows, printed=printed, accuracy=True)


def _source(records: Sequence[Record]) -> dict[str, Any]:
    """Return the columns that select these records, and how many they are."""
    if not records:
        return {}
    source: dict[str, Any] = {}
    for name in ("study", "dataset", "method", "protocol"):
        values = sorted({str(getattr(r, name)) for r in records})
        source[name] = values[0] if len(values) == 1 else values
    first = records[0]
    if first.options and all(r.options == first.options for r in records):
        source["options"] = first.options
    for name in ("metric", "dimension"):
        value = getattr(first, name)
        if value is not None and all(getattr(r, name) == value for r in records):
            source[name] = value
    common = {
        key: value
        for key, value in first.params.items()
        if all(r.params.get(key) == value for r in records) and not isinstance(value, list | dict)
    }
    if common:
        source["params"] = common
    return source | {"records": len(records)}


def _why_not(records: Sequence[Record]) -> str:
    reasons = {r.reason for r in records if r.value is None and r.reason}
    return "; ".join(sorted(reasons)) or ("" if records else NOT_COMPUTED)
