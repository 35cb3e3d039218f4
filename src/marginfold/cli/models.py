"""The commands transform and predict: a saved model between two tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from marginfold.cli.options import Data, Json, Keep, Model, Out, Overwrite
from marginfold.cli.output import show_json, show_notes, show_rows
from marginfold.errors import InvalidInputError
from marginfold.runtime.extras import require

if TYPE_CHECKING:
    import pandas as pd

    from marginfold.data import TableModel

PREDICTION = "prediction"
"""The column of predicted classes."""

TRANSFORM_EXAMPLES = """\b
Examples:
  marginfold transform iris.skops new.csv --out components.csv
  marginfold transform iris.skops new.csv --keep species --out components.parquet
  marginfold transform iris.skops new.csv | head
"""

PREDICT_EXAMPLES = """\b
Examples:
  marginfold predict jobs.skops new.csv --out predicted.csv
  marginfold predict jobs.skops new.csv --keep name
  marginfold predict jobs.skops new.csv --json
"""


OTHERWISE = {
    "transform": ("classifier", "has no components", "predict"),
    "predict": ("transformer", "predicts no class", "transform"),
}
"""What a model is that cannot answer a command, what it lacks, and the command to use."""


@dataclass(frozen=True)
class Request:
    """What a command was asked for."""

    model: Path
    data: Path
    out: Path | None
    keep: list[str]
    overwrite: bool
    as_json: bool


def _command(name: str, columns: str) -> Callable[..., None]:
    """Return a command that adds columns to a table by a saved model."""

    def command(
        model: Model,
        data: Data,
        out: Out = None,
        keep: Keep = None,
        overwrite: Overwrite = False,
        as_json: Json = False,
    ) -> None:
        kept = list(dict.fromkeys(keep or []))
        _answer(name, Request(model, data, out, kept, overwrite, as_json))

    command.__doc__ = (
        f"Write {columns} of a table's rows.\n\nWithout --out they go to standard output, as CSV."
    )
    return command


transform = _command("transform", "the components")
predict = _command("predict", "the predicted classes")


def _answer(command: str, request: Request) -> None:
    """Load the model, let it work on the table and write the new columns."""
    model = _load(request)
    if not hasattr(model.method, command):
        kind, lack, other = OTHERWISE[command]
        raise InvalidInputError(
            f"{request.model} holds the {kind} {type(model.method).__name__.lower()}, which "
            f"{lack}; use 'marginfold {other} {request.model} {request.data}'."
        )
    frame = _read_rows(model, request)
    if command == "predict":
        columns = {PREDICTION: model.predict(frame)}
    else:
        names = model.method.get_feature_names_out().tolist()
        columns = dict(zip(names, model.transform(frame).T, strict=True))
    _finish(frame, columns, request)


def _load(request: Request) -> TableModel:
    """Load the model, once it is known that the output can be written."""
    from marginfold.data import TableModel
    from marginfold.data.models import load_model
    from marginfold.data.tables import check_table_path

    require("pandas", "skops")
    if request.out is not None:
        check_table_path(request.out, overwrite=request.overwrite)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load_model(request.model)
    if not isinstance(model, TableModel):
        raise InvalidInputError(
            f"{request.model} holds a bare {type(model).__name__} without column names; the "
            "commands need a model of 'marginfold fit --save'. In Python, load_model gives it."
        )
    show_notes(str(warning.message) for warning in caught)
    return model


def _read_rows(model: TableModel, request: Request) -> pd.DataFrame:
    """Read the rows to work on; note the columns that are not used."""
    from marginfold.data import read_table
    from marginfold.data.target import check_columns, listed

    frame = read_table(request.data, min_rows=1)
    check_columns(frame, request.keep, "--keep")
    model.arranged(frame.iloc[:0])
    used = {*model.columns, model.target, *request.keep}
    extra = [name for name in frame.columns if name not in used]
    if extra:
        show_notes([f"columns that the model does not use: {listed(extra)}"])
    return frame


def _finish(frame: pd.DataFrame, columns: dict[str, Any], request: Request) -> None:
    """Write kept and new columns to the file, or print them."""
    from marginfold.data import write_table

    clash = [name for name in request.keep if name in columns]
    if clash:
        raise InvalidInputError(f"--keep {clash[0]} has the name of a new column; rename it.")
    result = frame[request.keep].assign(**columns)
    summary = {"rows": len(result), "columns": list(result.columns)}
    if request.out is not None:
        out = str(request.out)
        write_table(result, out, overwrite=request.overwrite)
        if request.as_json:
            show_json(summary | {"out": out})
        else:
            show_rows([("rows", str(len(result))), ("saved", out)])
    elif request.as_json:
        values = result.astype(object).where(result.notna(), None)
        show_json(summary | {"data": values.to_dict("records")})
    else:
        typer.echo(result.to_csv(index=False), nl=False)
