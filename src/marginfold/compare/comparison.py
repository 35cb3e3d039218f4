"""What a comparison concludes: the methods by error, and the best with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from marginfold.compare.kept import Keeping, how_to_keep
from marginfold.compare.methods import METHODS
from marginfold.compare.race import final_standings, leader
from marginfold.compare.rows import Row, make_row, mean_scores, without_error
from marginfold.compare.runs import Comparison
from marginfold.compare.words import (
    Findings,
    answer,
    cuts,
    nothing_learnt,
    remarks,
    why_not_kept,
    without_result,
)
from marginfold.protocols.records import RecordStore


@dataclass(frozen=True)
class Verdict:
    """The conclusion: rows by error, sentences, and how the best method is kept.

    The first of the ``sentences`` are the ``answer``.  ``procedure`` is what was measured of the
    best method, unfitted, and None if nothing was learnt; ``command`` and ``snippet`` (in Python)
    fit it to all rows.  They are empty if it should not be kept, and ``not_kept`` says why.
    """

    rows: Sequence[Row]
    best: str
    as_good: Sequence[str]
    sentences: Sequence[str]
    command: str = ""
    snippet: str = ""
    procedure: Any = None
    answer: Sequence[str] = ()
    not_kept: str = ""


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
        return Verdict([*rows, *left_out], "", (), said, answer=said, not_kept=said[0])
    scores = mean_scores(comparison, store)
    rows = [make_row(method, known, best, comparison, scores[method]) for method in known]
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
    kept = Keeping() if nothing_learnt(found) else how_to_keep(best, comparison)
    if not found.enough:
        kept = Keeping(kept.procedure)
    return Verdict(
        *([*rows, *left_out], best, as_good, sentences),
        command=kept.command,
        snippet=kept.snippet,
        procedure=kept.procedure,
        answer=first,
        not_kept=why_not_kept(found),
    )
