"""The command reproduce: the papers' tables and figures beside the printed ones."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginfold.cli.output import show_json, show_notes, show_table
from marginfold.cli.progress import follow
from marginfold.errors import InvalidParameterError

if TYPE_CHECKING:
    from marginfold.protocols.choices import Evidence
    from marginfold.protocols.results import Figure, Table

LINE = 100
"""Characters of a line of words."""

SHOWN_REASONS = 10
"""Reasons for absent results that are printed; the records hold all."""

STUDY_NAMES = ("lsva", "wsvda", "gesvm", "mrgepsvm", "svmpca")
"""The papers; "all" stands for every one."""

RUNS = "marginfold-runs"
"""Folder of the runs that were given no folder."""

REPORT = "report.html"
"""The report in a run folder; it belongs to the run and is written anew."""

EXAMPLES = """\b
Examples:
  marginfold reproduce lsva --table I --quick
  marginfold reproduce all --full --run papers --jobs 2
  marginfold reproduce svmpca --quick --json
A run that was stopped goes on where it was: give the same folder again.
"""


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"One of {', '.join(STUDY_NAMES)}, or all.")],
    table: Annotated[
        str | None, typer.Option("--table", help="One table or figure only: I, 3, 'figure 2'.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds, coarse grids.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The papers' grids; hours.")] = False,
    run: Annotated[
        Path | None,
        typer.Option("--run", help=f"Folder of the records (else {RUNS}/PAPER-SCALE)."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compute a paper's tables and figures, print the agreement and write a report."""
    names = _studies(paper, table)
    if quick and full:
        raise InvalidParameterError("--quick and --full exclude each other; give one or none.")
    scale_name = "quick" if quick else "full" if full else "standard"
    from marginfold.files import check_writable
    from marginfold.protocols.choices import Evidence
    from marginfold.protocols.papers import study
    from marginfold.protocols.records import RecordStore
    from marginfold.protocols.run import run_tasks
    from marginfold.protocols.scales import scale_named

    scale = scale_named(scale_name)
    modules = [study(name) for name in names]
    tasks = [task for module in modules for task in module.plan(scale, table)]
    folder = run if run is not None else Path(RUNS) / f"{paper}-{scale_name}"
    report = folder / REPORT
    with RecordStore(folder) as store:
        check_writable(report, overwrite=True)
        with follow("records") as progress:
            summary = run_tasks(tasks, store, n_jobs=jobs, progress=progress)
        tables = {m.STUDY: m.tables(store, scale) for m in modules}
        figures = {m.STUDY: m.figures(store, scale) for m in modules}
        reasons = _reasons(Evidence(store, tasks))
    _write(report, tables, figures, scale_name, folder)
    if summary.failed:
        show_notes([f"{summary.failed} tasks failed and will be tried again by the next run"])
    show_notes(reasons)
    if as_json:
        show_json(_result(tables, figures, summary, folder, report))
    else:
        _show(tables)
        typer.echo(f"records: {folder / 'records.sqlite'}")
        typer.echo(f"report:  {report}")


def _studies(paper: str, table: str | None) -> list[str]:
    if paper == "all":
        if table is not None:
            raise InvalidParameterError("--table needs one paper, not 'all'.")
        return list(STUDY_NAMES)
    if paper not in STUDY_NAMES:
        raise InvalidParameterError(
            f"There is no paper {paper!r}; choose from {', '.join(STUDY_NAMES)} or all."
        )
    return [paper]


def _reasons(evidence: Evidence) -> list[str]:
    """Return why tasks have no result, the commonest reasons first."""
    counted = Counter(r.reason for r in evidence.records(status=["skipped", "failed"]))
    lines = [f"{reason} ({n} tasks)" if n > 1 else reason for reason, n in counted.most_common()]
    more = len(lines) - SHOWN_REASONS
    return lines[:SHOWN_REASONS] + [f"{more} more reasons are in the records"] * (more > 0)


def _show(tables: dict[str, list[Table]]) -> None:
    names = ("paper", "table", "printed", "agree", "near", "differ", "empty")
    rows, remarks = [], []
    for study, made in tables.items():
        for table in made:
            printed = [cell for cell in table.cells if cell.printed is not None]
            empty = sum(cell.value is None for cell in printed)
            counts = [*table.counts().values(), empty]
            if printed:
                rows.append([study, table.number, *map(str, [len(printed), *counts])])
                remarks.append(f"{study} {table.number}: {table.remark}")
    if not rows:
        return
    show_table(names, rows)
    typer.echo("")
    for remark in remarks:
        typer.echo(textwrap.fill(remark, LINE, subsequent_indent="  "))
    typer.echo("")


def _result(
    tables: dict[str, list[Table]],
    figures: dict[str, list[Figure]],
    summary: Any,
    folder: Path,
    report: Path,
) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "run": str(folder),
        "report": str(report),
        "tasks": asdict(summary),
        "tables": [asdict(t) | {"counts": t.counts()} for made in tables.values() for t in made],
        "figures": [
            {"study": f.study, "number": f.number, "title": f.title}
            for made in figures.values()
            for f in made
        ],
    }


def _write(
    path: Path,
    tables: dict[str, list[Table]],
    figures: dict[str, list[Figure]],
    scale: str,
    folder: Path,
) -> None:
    from marginfold.protocols.papers import STUDIES
    from marginfold.protocols.versions import versions
    from marginfold.reports import Report, paper_section, write_report
    from marginfold.reports.comparison import agreement

    sections = [
        paper_section(tables[name], figures[name], title=STUDIES[name])
        for name in tables
        if tables[name] or figures[name]
    ]
    every = [table for made in tables.values() for table in made]
    report = Report(
        "The papers, reproduced",
        [agreement(every)] if every else [],
        sections,
        {"scale": scale, "versions": versions(), "records": f"{folder.name}/records.sqlite"},
        "Each number names the rows of the table 'records' that it was computed from.",
    )
    write_report(report, path, overwrite=True)
