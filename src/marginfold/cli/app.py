"""The commands and what holds for all of them.  Nothing heavy is imported before one runs."""

from __future__ import annotations

from typing import Annotated

import typer

from marginfold._version import __version__
from marginfold.cli import compare, datasets, explore, fit, models, reproduce

EPILOG = """\b
Every command has its own --help with examples.
Exit codes: 0 done; 1 results are missing, or a defect; 2 input, options or files that cannot be
used, or a package that is not installed; 130 interrupted.
"""

app = typer.Typer(
    name="marginfold",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
"""The command ``marginfold``; every module of commands is registered below."""


@app.callback(invoke_without_command=True, epilog=EPILOG)
def about(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")
    ] = False,
) -> None:
    """Maximum-margin subspaces and classifiers: from a table to a model, and back."""
    if version:
        typer.echo(f"marginfold {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("fit", epilog=fit.FIT_EXAMPLES)(fit.fit)
app.command("transform", epilog=models.TRANSFORM_EXAMPLES)(models.transform)
app.command("predict", epilog=models.PREDICT_EXAMPLES)(models.predict)
app.command("export", epilog=models.EXPORT_EXAMPLES)(models.export)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("explore", epilog=explore.EXAMPLES)(explore.explore)
app.command("reproduce", epilog=reproduce.EXAMPLES)(reproduce.reproduce)
app.command("datasets", epilog=datasets.EXAMPLES)(datasets.datasets)
