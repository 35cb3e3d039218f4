"""The command compare: does it help on my data?"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from datetime import date
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from marginfold.cli.errors import FAILED
from marginfold.cli.options import (
    Categorical,
    Drop,
    DropMissingTarget,
    Jobs,
    Json,
    OptionalTarget,
    Overwrite,
    Scheduler,
    check_scheduler,
    compute,
)
from marginfold.cli.output import (
    kept_in,
    show_error,
    show_json,
    show_notes,
    show_table,
    show_words,
)
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.runtime.extras import require
from marginfold.runtime.files import check_writable

if TYPE_CHECKING:
    from marginfold.compare.comparison import Verdict
    from marginfold.compare.runs import Comparison, Source
    from marginfold.protocols.records import RecordStore
    from marginfold.protocols.results import Figure

EXAMPLES = """\b
Examples:
  marginfold compare flowers.csv --target species
  marginfold compare patients.parquet -t outcome --drop id --report patients.html
  marginfold compare wine --methods lda,lsva,wsvda --json
A name of 'marginfold datasets' stands for that set. With --run the records are kept, and a stopped
comparison goes on where it was. With --scheduler the rows are sent to the cluster, whose machines
need not see the file. The exit code is 1 if no method could be measured.
"""


Methods = Annotated[
    str | None, typer.Option("--methods", help="Names apart by commas; all by default.")
]
Protocol = Annotated[
    str, typer.Option(help="nested: choose inside the training rows; paper: on the test rows.")
]


def compare(
    data: Annotated[str, typer.Argument(help="A table (CSV, Parquet), or a bundled set's name.")],
    target: OptionalTarget = None,
    methods: Methods = None,
    protocol: Protocol = "nested",
    folds: Annotated[int, typer.Option("--folds", min=2, help="Folds.")] = 5,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Partitions.")] = 2,
    drop: Drop = None,
    categorical: Categorical = None,
    drop_missing_target: DropMissingTarget = False,
    report: Annotated[Path | None, typer.Option("--report", help="HTML file to write.")] = None,
    run: Annotated[Path | None, typer.Option("--run", help="Folder to keep the records.")] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare all suitable methods on a table: error, dimension, time, and a recommendation."""
    _check(protocol, report, overwrite)
    check_scheduler(jobs, scheduler)
    from marginfold.compare.runs import Comparison
    from marginfold.protocols.records import RecordStore

    with ExitStack() as stack:
        source = _source(data, target, drop, categorical, drop_missing_target, stack)
        names = None if methods is None else [name.strip() for name in methods.split(",")]
        comparison = Comparison.of(
            source, names, protocol=protocol, n_folds=folds, n_repeats=repeats
        )
        folder = run or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(RecordStore(folder))
        with kept_in(run):
            verdict, tasks = _run(comparison, store, jobs, scheduler)
        if report is not None:
            from marginfold.compare.comparison import pictures

            _write(report, comparison, verdict, pictures(comparison, store), store, overwrite, run)
        show_notes(comparison.notes)
        if as_json:
            show_json(_result(data, comparison, verdict, tasks, report))
        else:
            _show(verdict)
            if report is not None:
                typer.echo(f"report: {report}")
    if not verdict.best:
        _fail(verdict)


def _check(protocol: str, report: Path | None, overwrite: bool) -> None:
    """Refuse early what could not be compared, or not be reported."""
    require("pandas", *([] if report is None else ["jinja2", "matplotlib"]))
    from marginfold.compare.runs import PROTOCOLS

    if protocol not in PROTOCOLS:
        raise InvalidParameterError(
            f"--protocol is one of {', '.join(PROTOCOLS)}; got {protocol!r}."
        )
    if report is not None:
        check_writable(report, overwrite=overwrite)


def _run(
    comparison: Comparison, store: RecordStore, jobs: int | None, scheduler: str | None
) -> tuple[Verdict, dict[str, int]]:
    """Compute what the records lack; return what they say, and how many tasks there were."""
    from marginfold.compare.comparison import conclude

    tasks = comparison.tasks(send_rows=scheduler is not None)
    summary = compute(tasks, store, "comparing", jobs, scheduler)
    return conclude(comparison, store), asdict(summary)


def _source(
    data: str,
    target: str | None,
    drop: list[str] | None,
    categorical: list[str] | None,
    drop_missing: bool,
    stack: ExitStack,
) -> Source:
    """Return where the table is; a bundled set is written out as one first."""
    from marginfold.compare.runs import Source
    from marginfold.data import catalogue, load

    bundled = not Path(data).exists() and data in catalogue()
    if bundled:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        frame = load(data).frame
        label = str(frame.columns[-1])
        if target not in (None, label):
            raise InvalidParameterError(
                f"the classes of the set {data} are {label!r}, not {target!r}; leave --target out."
            )
        target, data = label, str(folder / f"{data}.csv")
        frame.to_csv(data, index=False)
    if target is None and not Path(data).exists():
        raise InvalidInputError(
            f"{data} is neither a file nor a data set; 'marginfold datasets' lists those."
        )
    if target is None:
        raise InvalidParameterError("--target is missing: name the column with the classes.")
    return Source(data, target, tuple(drop or ()), tuple(categorical or ()), drop_missing, bundled)


def _write(
    path: Path,
    comparison: Comparison,
    verdict: Verdict,
    figures: list[Figure],
    store: RecordStore,
    overwrite: bool,
    run: Path | None,
) -> None:
    from marginfold.protocols.cells import Evidence
    from marginfold.reports import write_report
    from marginfold.reports.user_data import comparison_report

    evidence = Evidence(store, comparison.tasks())
    records = evidence.records(protocol=comparison.protocol, metric=["error", "none"])
    facts = {
        "date": date.today().isoformat(),
        "seeds": ", ".join(map(str, range(comparison.n_repeats))),
        "versions": "; ".join(store.versions()),
        "records": str(run / "records.sqlite") if run else "in this page only (no --run)",
    }
    page = comparison_report(comparison, verdict, figures, records, facts=facts)
    write_report(page, path, overwrite=overwrite)


def _show(verdict: Verdict) -> None:
    names = ("method", "error %", "±", "behind", "95 % interval", "dim", "s/fold")
    rows = []
    for r in verdict.rows:
        if r.error is None:
            rows.append([r.method, "-", "", "", "", "", ""])
            continue
        behind = ["", "best"]
        if r.behind is not None:
            known = isfinite(r.behind.low) and isfinite(r.behind.high)
            interval = f"{r.behind.low:+.1f} .. {r.behind.high:+.1f}" if known else "too few folds"
            behind = [f"{r.behind.mean:+.1f}", interval]
        dimension = "" if r.dimension is None else f"{r.dimension:g}"
        errors = [f"{r.error:.1f}", f"{r.spread:.1f}"]
        rows.append([r.method, *errors, *behind, dimension, f"{r.seconds:.2f}"])
    show_table(names, rows)
    typer.echo("")
    for sentence in verdict.sentences:
        show_words(sentence)
    if verdict.command:
        typer.echo(f"To keep it:\n  {verdict.command}")
    show_notes(f"{r.method}: {r.reason}" for r in verdict.rows if r.reason)


def _fail(verdict: Verdict) -> NoReturn:
    """End without a result; the commonest reason stands for all."""
    reasons = Counter(row.reason for row in verdict.rows if row.reason)
    why = f": {reasons.most_common(1)[0][0]}" if reasons else "."
    show_error(f"no method could be measured on all folds{why}")
    raise typer.Exit(FAILED)


def _result(
    data: str, comparison: Comparison, verdict: Verdict, tasks: dict[str, int], report: Path | None
) -> dict[str, Any]:
    return {
        "data": data,
        "rows": len(comparison.source.read().labels),
        "target": comparison.source.target,
        "protocol": comparison.protocol,
        "folds": comparison.n_folds,
        "repeats": comparison.n_repeats,
        "best": verdict.best,
        "as_good": list(verdict.as_good),
        "recommendation": list(verdict.sentences),
        "command": verdict.command or None,
        "methods": [asdict(row) for row in verdict.rows],
        "notes": list(comparison.notes),
        "tasks": tasks,
        "report": str(report) if report else None,
    }
