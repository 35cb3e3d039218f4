"""What a comparison concludes: the methods by error, and the best with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from marginfold.compare.methods import METHODS
from marginfold.compare.race import final_standings, leader
from marginfold.compare.rows import Row, make_row, without_error
from marginfold.compare.runs import Comparison
from marginfold.compare.words import (
    Findings,
    answer,
    cuts,
    nothing_learnt,
    remarks,
    without_result,
)
from marginfold.protocols.records import RecordStore


@dataclass(frozen=True)
class Verdict:
    """The conclusion: rows by error, sentences, and the command that fits the best method.

    The first of the ``sentences`` are the ``answer``.
    """

    rows: Sequence[Row]
    best: str
    as_good: Sequence[str]
    sentences: Sequence[str]
    command: str = ""
    answer: Sequence[str] = ()


def conclude(
    comparison: Comparison, store: RecordStore, *, stopped: float | None = None
) -> Verdict:
    """Return the methods by error, the best, and all that cannot be told from it.

    ``stopped`` are the seconds after which the clock stopped it; by default nothing did.
    """
    known = final_standings(comparison, store)
    left_out = [Row(m, METHODS[m].words, reason=why) for m, why in comparison.left_out.items()]
    best = leader(known)
    if not best:
        rows = [without_error(method, standing) for method, standing in known.items()]
        said = [without_result(stopped)]
        return Verdict([*rows, *left_out], "", (), said, answer=said)
    rows = [make_row(method, known, best, comparison) for method in known]
    rows.sort(key=lambda row: (row.error is None, row.error or 0.0))
    as_good = [
        r.method
        for r in rows
        if r.behind is not None and r.behind.low <= 0 and not METHODS[r.method].control
    ]
    measured = {row.method: row for row in rows if row.error is not None}
    found = Findings(best, as_good, measured, known, comparison)
    first = answer(found)
    sentences = [*first, *remarks(found), *cuts(rows, comparison, stopped)]
    command = "" if nothing_learnt(found) else _how_to_keep(best, comparison)
    return Verdict([*rows, *left_out], best, as_good, sentences, command, first)


def _how_to_keep(best: str, comparison: Comparison) -> str:
    """Return the command that fits the method; what was chosen in folds is left to its user."""
    options = METHODS[best].fit
    if not options or comparison.source.bundled:
        return ""
    source = comparison.source
    words = ["marginfold fit", quote(source.path), "--target", quote(source.target)]
    words += [f"--drop {quote(name)}" for name in source.drop]
    words += [f"--categorical {quote(name)}" for name in source.categorical]
    words += ["--drop-missing-target"] * source.drop_missing
    return f"{' '.join(words)} --method {options} --save model.skops"
