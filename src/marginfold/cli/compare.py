"""The command compare: does it help on my data?"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import date
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from marginfold.cli.errors import FAILED
from marginfold.cli.fit import METHODS
from marginfold.cli.options import (
    RECORDS,
    RUNS,
    Categorical,
    Dates,
    Decimal,
    Drop,
    DropIds,
    DropMissingTarget,
    Encoding,
    Group,
    Jobs,
    Json,
    NoHeader,
    OptionalTarget,
    Overwrite,
    Scheduler,
    Sep,
    check_scheduler,
    reading_of,
)
from marginfold.cli.output import (
    kept_in,
    show_error,
    show_json,
    show_line,
    show_notes,
    show_table,
    show_words,
)
from marginfold.cli.work import CLOCK, LEAST_CLOCK, Work, begin_imports
from marginfold.cli.writing import Later, check_outputs
from marginfold.errors import InvalidParameterError, MarginfoldWarning
from marginfold.runtime.extras import require

if TYPE_CHECKING:
    from marginfold.compare.comparison import Verdict
    from marginfold.compare.runs import Comparison
    from marginfold.compare.table import Source
    from marginfold.data import Reading
    from marginfold.protocols.records import RecordStore

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
"""Units of a budget, in seconds."""

EXAMPLES = """\b
Examples:
  marginfold compare flowers.csv --target species
  marginfold compare patients.parquet -t outcome --drop id --report patients.html
  marginfold compare wine --methods lda,lsva,wsvda --json
  marginfold compare big.csv -t kind --budget 10m
  marginfold compare steps.csv -t activity --group person
  marginfold compare flowers.csv -t species --save best.skops
A name of 'marginfold datasets' stands for that set. The budget decides how many rows are taken (a
sample of a large table), and methods that make clearly more errors than the best after a few folds
are not measured on the others; the answer says what was left out. --thorough takes all rows and
measures every method that suits the table on all folds.
The plan follows from the size of the table, so the same command gives the same answer everywhere;
only on a machine that is much slower no further method is begun when the time is over, and the
answer says so.
What was computed is kept in marginfold-runs/compare-NAME (--run names another folder): a stopped
comparison goes on where it was. With --scheduler the rows are sent to the cluster, whose machines
need not see the file. --save fits the best method to all rows as it was measured, choices inside,
and writes a model for 'marginfold predict'. The exit code is 1 if no method could be measured, or
if there is nothing to save because none is shown to be better than the largest class.
"""


Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        metavar="NAMES",
        help=f"Names separated by commas: {', '.join(METHODS)}. All suitable ones by default.",
    ),
]
Protocol = Annotated[
    str, typer.Option(help="nested: choose inside the training rows; paper: on the test rows.")
]
Budget = Annotated[
    str | None,
    typer.Option("--budget", metavar="TIME", help="Time to plan for: 60s (default), 5m, 1h."),
]
Thorough = Annotated[
    bool,
    typer.Option("--thorough", help="All rows, all suitable methods, all folds; can take hours."),
]
Run = Annotated[
    Path | None,
    typer.Option("--run", help=f"Folder to keep the records in (else {RUNS}/compare-NAME)."),
]

Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Keep the best method in a model file (.skops)."),
]


def compare(
    data: Annotated[str, typer.Argument(help="A table (CSV, Parquet), or a bundled set's name.")],
    target: OptionalTarget = None,
    methods: Methods = None,
    budget: Budget = None,
    thorough: Thorough = False,
    protocol: Protocol = "nested",
    folds: Annotated[int, typer.Option("--folds", min=2, help="Number of folds.")] = 5,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Repeats of all folds.")] = 2,
    group: Group = None,
    drop: Drop = None,
    categorical: Categorical = None,
    drop_missing_target: DropMissingTarget = False,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    drop_ids: DropIds = False,
    dates: Dates = False,
    report: Annotated[Path | None, typer.Option("--report", help="HTML file to write.")] = None,
    save: Save = None,
    run: Run = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare all suitable methods on a table: error, dimension, time, and a recommendation."""
    begin_imports(jobs, scheduler)
    folder = run or Path(RUNS) / f"compare-{Path(data).name.split('.')[0]}"
    _check(protocol, report, save, folds * repeats)
    check_outputs(
        {"--report": report, "--save": save},
        inputs=[Path(data), folder / RECORDS],
        overwrite=overwrite,
        run=folder,
    )
    seconds = _seconds(budget, thorough)
    check_scheduler(jobs, scheduler)
    from marginfold.compare.comparison import conclude
    from marginfold.compare.runs import Comparison
    from marginfold.compare.words import about_the_sample
    from marginfold.protocols.records import RecordStore

    with ExitStack() as stack:
        reading = reading_of(sep, decimal, encoding, no_header, drop_ids, dates)
        source = _source(data, target, drop, categorical, drop_missing_target, reading)
        source = replace(source, group=None if group is None else reading.column(group))
        names = None if methods is None else [name.strip() for name in methods.split(",")]
        comparison = Comparison.of(
            source, names, protocol=protocol, n_folds=folds, n_repeats=repeats, budget=seconds
        )
        store = stack.enter_context(RecordStore(folder))
        if not as_json:
            show_notes(about_the_sample(comparison))
        with kept_in(folder):
            work = Work(comparison, store, jobs, scheduler, report is not None, as_json)
            stopped = work.run(None if seconds is None else max(CLOCK * seconds, LEAST_CLOCK))
        verdict = conclude(comparison, store, stopped=stopped)
        reported = saved = None
        later = Later()
        with later:
            reported = _reported(report, comparison, verdict, store, overwrite)
        show_notes(comparison.notes)
        with later:
            saved = _kept(save, verdict, comparison, overwrite)
        if as_json:
            show_json(_result(data, comparison, verdict, work.counts(), folder, reported, saved))
        else:
            _show(verdict, comparison, saved)
            show_line(f"records: {store.path}")
            if reported is not None:
                show_line(f"report:  {reported}")
    later.end()
    if not verdict.best:
        _fail(verdict)
    if save is not None and saved is None:
        show_error(f"{save} was not written: {verdict.not_kept}")
        raise typer.Exit(FAILED)


def _check(protocol: str, report: Path | None, save: Path | None, n_folds: int) -> None:
    """Refuse early what could not be compared, not be reported or not be saved."""
    require("pandas", *([] if report is None else ["jinja2"]))
    require(*([] if save is None else ["skops"]))
    from marginfold.compare.race import LEAST_FOLDS
    from marginfold.compare.runs import PROTOCOLS

    if protocol not in PROTOCOLS:
        raise InvalidParameterError(
            f"--protocol is one of {', '.join(PROTOCOLS)}; got {protocol!r}."
        )
    if save is not None and n_folds < LEAST_FOLDS:
        raise InvalidParameterError(
            f"--save keeps the method that was shown to be best, and {n_folds} folds cannot show "
            f"that: give more --folds or --repeats, {LEAST_FOLDS} folds in all or more, or keep a "
            "method of your choice with 'marginfold fit'."
        )


def _kept(
    save: Path | None, verdict: Verdict, comparison: Comparison, overwrite: bool
) -> Path | None:
    """Fit the best method to all rows as it was measured, and save it if something was learnt."""
    if save is None or not verdict.command:
        return None
    from marginfold.compare.comparison import keep
    from marginfold.data.models import save_model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginfoldWarning)  # as on the folds
        model = keep(verdict.best, comparison)
    save_model(model, save, overwrite=overwrite)
    return save


def _seconds(budget: str | None, thorough: bool) -> float | None:
    """Return the seconds of a budget; None if nothing is to be left out."""
    if thorough:
        if budget is not None:
            raise InvalidParameterError(
                "--budget and --thorough cannot be used together: give a time, or leave nothing "
                "out."
            )
        return None
    if budget is None:
        from marginfold.compare.plan import BUDGET

        return BUDGET
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smh]?)\s*", budget)
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not 0 < seconds < inf:
        raise InvalidParameterError(
            f"--budget is a time above 0 such as 60s, 5m or 1h; got {budget!r}."
        )
    return seconds


def _source(
    data: str,
    target: str | None,
    drop: list[str] | None,
    categorical: list[str] | None,
    drop_missing: bool,
    reading: Reading,
) -> Source:
    """Return where the table is, a file or a bundled set."""
    from marginfold.compare.table import Source
    from marginfold.data.tables import is_set
    from marginfold.data.target import chosen_target

    column, left_out, codes = chosen_target(data, target, reading), drop or (), categorical or ()
    return Source(data, column, tuple(left_out), tuple(codes), drop_missing, is_set(data), reading)


def _reported(
    path: Path | None,
    comparison: Comparison,
    verdict: Verdict,
    store: RecordStore,
    overwrite: bool,
) -> Path | None:
    """Write the report, if one is wanted, and return where it is."""
    if path is None:
        return None
    from marginfold.explorer.embedded import live_maps
    from marginfold.reports import write_report
    from marginfold.reports.user_data import comparison_report

    facts = {
        "date": date.today().isoformat(),
        "seeds": ", ".join(map(str, range(comparison.n_repeats))),
        "versions": "; ".join(store.versions()),
        "records": str(store.path),
    }
    rows = comparison.source.read()
    live = partial(live_maps, rows=rows, target=comparison.source.target)
    page = comparison_report(comparison, verdict, store, facts=facts, live=live)
    write_report(page, path, overwrite=overwrite)
    return path


COLUMNS = (
    *("method", "error %", "vs best", "95 % interval", "bal. %", "AUC", "log loss"),
    *("folds", "dim", "s/fold"),
)
"""Columns of the table on a terminal; `MEANINGS` says what the short ones are."""

MEANINGS = (
    "error: share of held-out rows that are predicted wrongly; vs best: how many points more than "
    "the best method on the same rows, with its 95 % interval; bal.: balanced accuracy in percent, "
    "where every class counts alike; dim: number of components"
)
"""What the columns mean."""


def _show(verdict: Verdict, comparison: Comparison, saved: Path | None) -> None:
    rows = []
    for r in verdict.rows:
        if r.error is None:
            rows.append([r.method, "-", *[""] * (len(COLUMNS) - 2)])
            continue
        gap = ["", "best"]
        if r.behind is not None:
            known = isfinite(r.behind.low) and isfinite(r.behind.high)
            interval = f"{r.behind.low:+.1f} .. {r.behind.high:+.1f}" if known else "too few folds"
            gap = [f"{round(r.behind.mean, 1) + 0.0:+.1f}", interval]  # no -0.0
        scores = [_number(r.balanced_accuracy, 1), _number(r.auc, 3), _number(r.log_loss, 2)]
        folds = f"{r.n_folds}/{comparison.n_measurements}"
        dimension = "" if r.dimension is None else f"{r.dimension:g}"
        rows.append(
            [r.method, f"{r.error:.1f}", *gap, *scores, folds, dimension, f"{r.seconds:.2f}"]
        )
    show_table(COLUMNS, rows)
    show_words(f"({MEANINGS})")
    show_line()
    for sentence in verdict.sentences:
        show_words(sentence)
    if saved is not None:
        show_line(f"{verdict.best}, fitted to all rows as it was measured: {saved}")
    elif verdict.command:
        show_line("To keep it (or --save model.skops here):")
        show_line(f"  {verdict.command}")
    elif verdict.snippet:
        show_words(f"No command keeps it: {verdict.not_kept}")
    show_notes(f"{r.method}: {r.reason}" for r in verdict.rows if r.reason)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _fail(verdict: Verdict) -> NoReturn:
    """End without a result; the commonest reason stands for all."""
    reasons = Counter(row.reason for row in verdict.rows if row.reason)
    why = f": {reasons.most_common(1)[0][0]}" if reasons else "."
    show_error(f"no method could be measured on all folds{why}")
    raise typer.Exit(FAILED)


def _result(
    data: str,
    comparison: Comparison,
    verdict: Verdict,
    tasks: dict[str, int],
    folder: Path,
    report: Path | None,
    saved: Path | None,
) -> dict[str, Any]:
    return {
        "data": data,
        "rows": comparison.source.read().n_read,
        "rows_compared": comparison.n_rows,
        "budget": comparison.budget,
        "target": comparison.source.target,
        "group": comparison.source.group,
        "protocol": comparison.protocol,
        "folds": comparison.n_folds,
        "repeats": comparison.n_repeats,
        "best": verdict.best,
        "as_good": list(verdict.as_good),
        "recommendation": list(verdict.sentences),
        "command": verdict.command or None,
        "python": verdict.snippet or None,
        "saved": str(saved) if saved else None,
        "methods": [asdict(row) for row in verdict.rows],
        "notes": list(comparison.notes),
        "tasks": tasks,
        "run": str(folder),
        "report": str(report) if report else None,
    }
