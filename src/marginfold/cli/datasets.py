"""The command datasets: what is in the catalogue, and what of it is here."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from marginfold.cli.output import show_json, show_rows, show_table

LICENSE_WIDTH = 30
"""Characters of a licence in the list; 'marginfold datasets NAME' shows all of it."""

EXAMPLES = """\b
Examples:
  marginfold datasets
  marginfold datasets wine
  marginfold datasets --json | head
"""


def datasets(
    name: Annotated[str | None, typer.Argument(help="Show everything about one set.")] = None,
    data_home: Annotated[
        Path | None,
        typer.Option(
            "--data-home", help="Folder of sets that are not bundled (else MARGINFOLD_DATA)."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the benchmark data sets: shape, classes, missing values, licence, availability."""
    from marginfold.data import catalogue, summary
    from marginfold.data.catalogue import lookup

    if name is not None:
        lookup(name)
    rows = [row for row in summary(data_home) if name in (None, row["name"])]
    if as_json:
        show_json(rows)
    elif name is not None:
        entry = catalogue()[name]
        about = {"description": entry.description, "source": entry.source, "order": entry.order}
        show_rows([(key, str(value)) for key, value in (rows[0] | about).items()])
    else:
        names = ("name", "rows", "columns", "classes", "missing", "license", "status")
        for row in rows:
            row["license"] = textwrap.shorten(row["license"], LICENSE_WIDTH, placeholder=" ...")
        show_table(names, [[str(row[column]) for column in names] for row in rows])
