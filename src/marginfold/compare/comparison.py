"""What a comparison concludes: the methods by error, the best with its uncertainty, how it is kept.

It is kept fitted to all rows, by a command, or by lines of Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

import marginfold
from marginfold.compare.calibration import fit_to_keep
from marginfold.compare.measures import fit_parameters
from marginfold.compare.methods import METHODS, command_name, procedure
from marginfold.compare.race import final_standings, leader
from marginfold.compare.rows import Row, best_ordered, make_row, mean_scores, without_error
from marginfold.compare.runs import Comparison
from marginfold.compare.table import Source, parted
from marginfold.compare.words import (
    Findings,
    answer,
    cuts,
    nothing_learnt,
    remarks,
    why_not_kept,
    without_result,
)
from marginfold.data.reading import AS_FOUND
from marginfold.feature_maps import LowRankKernel
from marginfold.protocols.records import RecordStore

if TYPE_CHECKING:
    from marginfold.data import TableModel

WHOLE_REPR = 10**6
"""Characters of a procedure's repr: more than any has, so that nothing is left out."""


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
    ordered = best_ordered(comparison, store)
    found = Findings(best, as_good, measured, known, comparison, ordered)
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


@dataclass(frozen=True)
class Keeping:
    """What fits the measured procedure to all rows: the object, a command, lines of Python."""

    procedure: Any = None
    command: str = ""
    snippet: str = ""


def how_to_keep(method: str, comparison: Comparison) -> Keeping:
    """Return how the user has a method that was measured.

    There is no command for methods of packages whose models no file holds.
    """
    made = comparison.procedure(method)
    command = "" if METHODS[method].needs else _command(method, comparison)
    return Keeping(made, command, _snippet(made, comparison.source))


def keep(method: str, comparison: Comparison) -> TableModel:
    """Fit the procedure that was measured to all rows of the table, those of no sample included.

    If it has margins only, probabilities are calibrated beside it; not where rows come in groups.
    """
    from marginfold.data import TableModel, inspect_columns, read_labelled

    source, made = comparison.source, comparison.procedure(method)
    features, labels = read_labelled(
        *(source.path, source.target),
        drop=source.drop,
        drop_missing=source.drop_missing,
        reading=source.reading,
    )
    features, groups = parted(features, source)
    columns = inspect_columns(features, categorical=source.categorical, reading=source.reading)

    def fit(classifier: Any) -> TableModel:
        name = command_name(method)
        together = fit_parameters(classifier, groups)
        return TableModel.fit(
            classifier, features, labels, source.target, columns, name=name, **together
        )

    return fit(made) if groups is not None else fit_to_keep(made, labels, fit)


def _command(method: str, comparison: Comparison) -> str:
    source = comparison.source
    words = ["marginfold fit"]
    if source.bundled:
        words.append(quote(_set_name(source)))
    else:
        words += [quote(source.path), "--target", quote(source.target)]
    words += [] if source.group is None else [f"--group {quote(source.group)}"]
    words += [f"--drop {quote(name)}" for name in source.drop]
    words += [f"--categorical {quote(name)}" for name in source.categorical]
    words += ["--drop-missing-target"] * source.drop_missing
    words += source.reading.options()
    words += ["--method", command_name(method), *_low_rank(method, comparison)]
    return f"{' '.join(words)} --save model.skops"


def _low_rank(method: str, comparison: Comparison) -> list[str]:
    """Return the option for a rank that was measured on a sample, if all rows have another one."""
    kernel = _kernel(comparison.procedure(method))
    if comparison.source.n_taken is None or not isinstance(kernel, LowRankKernel):
        return []
    whole = replace(comparison.source, n_taken=None).read().size
    usual = _kernel(procedure(method, whole))
    return [] if usual.rank == kernel.rank else [f"--low-rank {kernel.rank}"]


def _kernel(made: Any) -> Any:
    return getattr(getattr(made, "estimator", made), "kernel", None)


def _set_name(source: Source) -> str:
    return Path(source.path).name.removesuffix(".csv")


def _snippet(made: Any, source: Source) -> str:
    """Return lines that fit the procedure to the table and predict with it."""
    text = made.__repr__(N_CHAR_MAX=WHOLE_REPR)
    reader = "load" if source.bundled else "read_labelled"
    names = ", ".join(["TableModel", "inspect_columns", reader])
    groups = ", groups=groups" if source.group and fit_parameters(made, np.empty(0)) else ""
    kinds = {type(part) for part in _parts(made) if f"{type(part).__name__}(" in text}
    imports = {"from pandas import factorize"} if source.group else set()
    imports |= {f"from {_home(kind)} import {kind.__name__}" for kind in kinds}
    categorical = f", categorical={list(source.categorical)}" if source.categorical else ""
    if source.reading != AS_FOUND and not source.bundled:
        names += ", Reading"
        categorical += ", reading=reading"
    lines = [
        *sorted({*imports, f"from marginfold.data import {names}"}),
        "",
        f"method = {text}",
        *_reading(source),
        *_grouping(source),
        f"columns = inspect_columns(features{categorical})",
        f"model = TableModel.fit(method, features, labels, {source.target!r}, columns{groups})",
        "answers = model.predict(features)",
    ]
    return "\n".join(lines) + "\n"


def _reading(source: Source) -> list[str]:
    """Return the lines that read features and labels."""
    if source.bundled:
        left_out = [source.target, *source.drop]
        return [
            f"frame = load({_set_name(source)!r}).frame",
            f"labels = frame[{source.target!r}].to_numpy()",
            f"features = frame.drop(columns={left_out})",
        ]
    options = f", drop={list(source.drop)}" if source.drop else ""
    options += ", drop_missing=True" if source.drop_missing else ""
    lines = [] if source.reading == AS_FOUND else [f"reading = {source.reading!r}"]
    options += ", reading=reading" if lines else ""
    return [
        *lines,
        f"features, labels = read_labelled({source.path!r}, {source.target!r}{options})",
    ]


def _grouping(source: Source) -> list[str]:
    """Return the line that parts the groups from the features."""
    if source.group is None:
        return []
    return [f"groups = factorize(features.pop({source.group!r}))[0]"]


def _parts(made: Any) -> Iterator[Any]:
    """Yield the object, and those among its parameters that have a class to be imported."""
    yield made
    parameters = made.get_params(deep=True) if hasattr(made, "get_params") else {}
    for value in parameters.values():
        if type(value).__module__.startswith(("sklearn.", "marginfold.", "lightgbm.")):
            yield value


def _home(kind: type) -> str:
    """Return the public module of a class."""
    if hasattr(marginfold, kind.__name__):
        return "marginfold"
    parts = kind.__module__.split(".")
    private = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[:private])
