"""The command reproduce: the papers' tables and figures beside the printed ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginfold.cli.errors import FAILED
from marginfold.cli.options import RUNS, Jobs, Json, Scheduler, check_scheduler, compute
from marginfold.cli.output import (
    kept_in,
    show_error,
    show_json,
    show_line,
    show_notes,
    show_table,
    show_words,
)
from marginfold.cli.writing import Later
from marginfold.errors import InvalidParameterError
from marginfold.papers import STUDIES, absent_figures
from marginfold.runtime.extras import require
from marginfold.runtime.files import check_folder, check_writable

if TYPE_CHECKING:
    from marginfold.protocols.cells import Evidence
    from marginfold.protocols.results import Figure, Table
    from marginfold.protocols.run import Summary

SHOWN_REASONS = 10
"""Reasons for absent results that are printed; the records hold all."""

REPORT = "report.html"
"""The report in a run folder; it belongs to the run and is written anew."""

EXAMPLES = """\b
Examples:
  marginfold reproduce lsva --table I --quick
  marginfold reproduce all --full --run papers --jobs 2
  marginfold reproduce svmpca --quick --json
A run that was stopped goes on where it was: give the same folder again. With --scheduler the
workers read the sets that do not come with marginfold from their own folder (MARGINFOLD_DATA); what
they lack is skipped. The exit code is 1 if tasks failed; the report is written all the same.
"""


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"One of {', '.join(STUDIES)}, or all.")],
    table: Annotated[
        str | None, typer.Option("--table", help="One table or figure only: I, 3, 'figure 2'.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds, coarse grids.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The papers' grids; takes hours.")] = False,
    run: Annotated[
        Path | None, typer.Option("--run", help=f"Folder of the records (else {RUNS}/PAPER-SCALE).")
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """Compute a paper's tables and figures, print the agreement and write a report."""
    names, size = _studies(paper, table), _size(quick, full)
    require("jinja2", "matplotlib")
    check_scheduler(jobs, scheduler)
    folder = run if run is not None else Path(RUNS) / f"{paper}-{size}"
    report = folder / REPORT
    check_folder(folder)
    made = _compute(names, table, size, folder, jobs, scheduler)
    later = Later()
    with later:
        _write(report, made, size, folder)
    show_notes(made.reasons)
    if as_json:
        show_json(_result(made, folder, None if later.failed else report))
    else:
        _show(made.tables)
        show_line(f"records: {folder / 'records.sqlite'}")
        if not later.failed:
            show_line(f"report:  {report}")
    later.end()
    if made.summary.failed:
        show_error(f"tasks that failed: {made.summary.failed}; the next run tries them again.")
        raise typer.Exit(FAILED)


@dataclass(frozen=True)
class Reproduced:
    """What a run came to: tables and figures by study, and why tasks have no result."""

    tables: dict[str, list[Table]]
    figures: dict[str, list[Figure]]
    summary: Summary
    reasons: list[str]
    versions: list[str]


def _size(quick: bool, full: bool) -> str:
    if quick and full:
        raise InvalidParameterError(
            "--quick and --full cannot be used together; give at most one of them."
        )
    return "quick" if quick else "full" if full else "standard"


def _compute(
    names: list[str],
    table: str | None,
    size_name: str,
    folder: Path,
    jobs: int | None,
    scheduler: str | None,
) -> Reproduced:
    """Compute what the records in the folder lack, and all that is made of them."""
    from marginfold.papers import study
    from marginfold.protocols.cells import Evidence
    from marginfold.protocols.records import RecordStore
    from marginfold.protocols.studies import study_size

    size = study_size(size_name)
    modules = [study(name) for name in names]
    tasks = [task for module in modules for task in module.study_tasks(size, table)]
    with RecordStore(folder) as store:
        check_writable(folder / REPORT, overwrite=True)
        with kept_in(folder):
            summary = compute(tasks, store, "records", jobs, scheduler)
        return Reproduced(
            {m.STUDY: m.tables(store, size) for m in modules},
            {m.STUDY: m.figures(store, size) for m in modules},
            summary,
            _reasons(Evidence(store, tasks)),
            store.versions(),
        )


def _studies(paper: str, table: str | None) -> list[str]:
    if paper == "all":
        if table is not None:
            raise InvalidParameterError("--table needs one paper, not 'all'.")
        return list(STUDIES)
    if paper not in STUDIES:
        raise InvalidParameterError(
            f"There is no paper {paper!r}; choose from {', '.join(STUDIES)} or all."
        )
    return [paper]


def _reasons(evidence: Evidence) -> list[str]:
    """Return why tasks have no result, the commonest reasons first."""
    counted = Counter(r.reason for r in evidence.any_records(status=["skipped", "failed"]))
    lines = [f"{reason} ({n} tasks)" if n > 1 else reason for reason, n in counted.most_common()]
    more = len(lines) - SHOWN_REASONS
    return lines[:SHOWN_REASONS] + [f"{more} more reasons are in the records"] * (more > 0)


def _show(tables: dict[str, list[Table]]) -> None:
    names = ("paper", "table", "printed", "agree", "near", "differ", "empty")
    rows, remarks = [], []
    for study, made in tables.items():
        for table in made:
            printed = [c for c in table.cells if c.counted and c.printed is not None]
            empty = sum(cell.value is None for cell in printed)
            counts = [*table.counts().values(), empty]
            if printed:
                rows.append([study, table.number, *map(str, [len(printed), *counts])])
                remarks.append(f"{study} {table.number}: {table.remark}")
    if not rows:
        return
    show_table(names, rows)
    show_line()
    for remark in remarks:
        show_words(remark, indent="  ")
    show_line()


def _result(made: Reproduced, folder: Path, report: Path | None) -> dict[str, Any]:
    tables = [table for of_one in made.tables.values() for table in of_one]
    figures = [figure for of_one in made.figures.values() for figure in of_one]
    return {
        "run": str(folder),
        "report": str(report) if report else None,
        "tasks": asdict(made.summary),
        "tables": [asdict(t) | {"counts": t.counts()} for t in tables],
        "figures": [{"study": f.study, "number": f.number, "title": f.title} for f in figures],
    }


def _write(path: Path, made: Reproduced, size: str, folder: Path) -> None:
    from marginfold.reports import Report, paper_section, write_report
    from marginfold.reports.tables import agreement

    sections = []
    for name, tables in made.tables.items():
        if tables or made.figures[name]:
            section = paper_section(tables, made.figures[name], title=STUDIES[name])
            absent = absent_figures(name)
            said = [*section.paragraphs, absent] if absent else section.paragraphs
            sections.append(replace(section, paragraphs=said))
    every = [table for tables in made.tables.values() for table in tables]
    report = Report(
        "The papers, reproduced",
        [agreement(every)] if every else [],
        sections,
        {
            "scale": size,
            "versions": "; ".join(made.versions),
            "records": f"{folder.name}/records.sqlite",
        },
        "Each number names the rows of the table 'records' that it was computed from.",
    )
    write_report(report, path, overwrite=True)
