"""Arguments, options and steps that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marginfold.cli.output import follow
from marginfold.errors import InvalidParameterError
from marginfold.runtime.extras import require

if TYPE_CHECKING:
    from marginfold.data import Reading
    from marginfold.protocols.records import RecordStore
    from marginfold.protocols.run import Summary
    from marginfold.protocols.studies import Task

JOBS = 2
"""Processes of a command that was given neither a number nor a cluster."""

RUNS = "marginfold-runs"
"""Folder in which runs keep their records, each in one of its own, if no other is given."""

RECORDS = "records.sqlite"
"""The file of a run folder that holds the records; help does not wait for what reads it."""

_TARGET = typer.Option("--target", "-t", metavar="COLUMN", help="Column with the classes.")

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="A table (CSV, also .csv.gz, or Parquet), or a data set's name."
    ),
]
Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A model that 'fit --save' or 'compare --save' wrote."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="File to write (.csv, .csv.gz, .parquet)."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="COLUMN", help="Column to copy to the output; repeatable."),
]
Target = Annotated[str, _TARGET]
OptionalTarget = Annotated[str | None, _TARGET]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Column to leave out; repeatable."),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="Rows that share a value here (a person, a series) stay together in all folds; the "
        "column is no feature.",
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical", metavar="COLUMN", help="Column of codes to use as categories; repeatable."
    ),
]
DropMissingTarget = Annotated[
    bool, typer.Option("--drop-missing-target", help="Leave out rows without a class.")
]
Sep = Annotated[
    str | None,
    typer.Option(
        "--sep", metavar="CHARACTER", help="Between fields: , ; | tab space (detected by default)."
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", metavar="MARK", help="Decimal mark: . or , (detected by default)."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Such as latin-1 or cp1252; UTF-8 and UTF-16 are detected.",
    ),
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line is a row; columns are c1, c2, ...")
]
DropIds = Annotated[
    bool,
    typer.Option("--drop-ids", help="Leave out whole numbers and words that all differ."),
]
Dates = Annotated[
    bool, typer.Option("--dates", help="Use dates as numbers: days since the earliest.")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help=f"Processes; {JOBS} by default.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Compute on a Dask cluster instead: tcp://host:8786. Its workers need the same "
        "version of marginfold.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="Write words that begin like formulas (= + - @) into CSV as they are; else an "
        "apostrophe is put before, so that a spreadsheet shows them and runs nothing.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def reading_of(
    sep: str | None,
    decimal: str | None,
    encoding: str | None,
    no_header: bool,
    drop_ids: bool = False,
    dates: bool = False,
) -> Reading:
    """Return how a table is to be read that a command was given."""
    from marginfold.data import Reading

    return Reading(sep, decimal, encoding, not no_header, drop_ids, dates)


def check_scheduler(jobs: int | None, scheduler: str | None) -> None:
    """Refuse a cluster beside processes, or without what it takes to reach one."""
    if scheduler is None:
        return
    if jobs is not None:
        raise InvalidParameterError(
            "--jobs and --scheduler cannot be used together: the cluster has its own workers."
        )
    require("distributed")


def compute(
    tasks: list[Task], store: RecordStore, label: str, jobs: int | None, scheduler: str | None
) -> Summary:
    """Compute the tasks that the store lacks, with a bar on a terminal."""
    from marginfold.protocols.run import run_tasks

    n_jobs = 1 if scheduler else jobs or JOBS
    with follow(label) as progress:
        return run_tasks(tasks, store, n_jobs=n_jobs, client=scheduler, progress=progress)
