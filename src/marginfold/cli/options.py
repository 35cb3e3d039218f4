"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_TARGET = typer.Option("--target", "-t", metavar="COLUMN", help="Column with the classes.")

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="A table: CSV (also .csv.gz) in UTF-8, or Parquet.")
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that 'marginfold fit --save' wrote.")
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
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical",
        metavar="COLUMN",
        help="Column of codes to take as categories; repeatable.",
    ),
]
DropMissingTarget = Annotated[
    bool, typer.Option("--drop-missing-target", help="Leave out rows without a class.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
