"""The commands transform and predict: a saved model between two tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from marginfold.cli.options import (
    Data,
    Decimal,
    Encoding,
    Json,
    Keep,
    Model,
    NoHeader,
    Out,
    Overwrite,
    Sep,
    reading_of,
)
from marginfold.cli.output import show_json, show_notes, show_rows
from marginfold.errors import InvalidInputError
from marginfold.runtime.extras import require

if TYPE_CHECKING:
    import pandas as pd

    from marginfold.data import Reading, TableModel

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


def _command(name: str, columns: str) -> Callable[..., None]:
    """Return a command that adds columns to a table by a saved model."""

    def command(
        model: Model,
        data: Data,
        out: Out = None,
        keep: Keep = None,
        sep: Sep = None,
        decimal: Decimal = None,
        encoding: Encoding = None,
        no_header: NoHeader = False,
        overwrite: Overwrite = False,
        as_json: Json = False,
    ) -> None:
        kept = list(dict.fromkeys(keep or []))
        require("pandas", "skops")
        if out is not None:
            from marginfold.data.tables import check_table_path

            check_table_path(out, overwrite=overwrite)
        reading = reading_of(sep, decimal, encoding, no_header)
        result = _answer(name, model, data, kept, reading)
        _write(result, out, overwrite=overwrite, as_json=as_json)

    command.__doc__ = (
        f"Write {columns} of a table's rows.\n\nWithout --out they go to standard output, as CSV."
    )
    return command


transform = _command("transform", "the components")
predict = _command("predict", "the predicted classes")


def _answer(
    command: str, path: Path, data: Path, keep: list[str], reading: Reading
) -> pd.DataFrame:
    """Load the model and let it work on the table; return kept and new columns."""
    model = _load(path)
    if not hasattr(model.method, command):
        kind, lack, other = OTHERWISE[command]
        raise InvalidInputError(
            f"{path} holds the {kind} {type(model.method).__name__.lower()}, which "
            f"{lack}; use 'marginfold {other} {path} {data}'."
        )
    frame = _read_rows(model, data, keep, reading)
    if command == "predict":
        columns = {"prediction": model.predict(frame)}
    else:
        names = model.method.get_feature_names_out().tolist()
        columns = dict(zip(names, model.transform(frame).T, strict=True))
    clash = [name for name in keep if name in columns]
    if clash:
        raise InvalidInputError(f"--keep {clash[0]} has the name of a new column; rename it.")
    return frame[keep].assign(**columns)


def _load(path: Path) -> TableModel:
    from marginfold.data import TableModel
    from marginfold.data.models import load_model

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load_model(path)
    if not isinstance(model, TableModel):
        raise InvalidInputError(
            f"{path} holds a bare {type(model).__name__} without column names; the "
            "commands need a model of 'marginfold fit --save'. In Python, load_model gives it."
        )
    show_notes(str(warning.message) for warning in caught)
    return model


def _read_rows(model: TableModel, data: Path, keep: list[str], reading: Reading) -> pd.DataFrame:
    """Read the rows to work on; note what is not used, was changed or is unknown."""
    from marginfold.data import read_table
    from marginfold.data.columns import unseen_levels
    from marginfold.data.tables import NOTES
    from marginfold.data.target import check_columns, listed

    frame = read_table(data, min_rows=1, reading=reading.like(model.reading))
    check_columns(frame, keep, "--keep")
    model.arranged(frame.iloc[:0])
    used = {*model.columns, model.target, *keep}
    extra = [name for name in frame.columns if name not in used]
    if extra:
        show_notes([f"columns that the model does not use: {listed(extra)}"])
    show_notes(note for name, note in frame.attrs.get(NOTES, {}).items() if name in used)
    show_notes(unseen_levels(model.pipeline["columns"], model.arranged(frame)))
    return frame


def _write(result: pd.DataFrame, out: Path | None, *, overwrite: bool, as_json: bool) -> None:
    """Write the columns to the file, or print them."""
    from marginfold.data import write_table

    summary = {"rows": len(result), "columns": list(result.columns)}
    if out is not None:
        write_table(result, out, overwrite=overwrite)
        if as_json:
            show_json(summary | {"out": str(out)})
        else:
            show_rows([("rows", str(len(result))), ("saved", str(out))])
    elif as_json:
        values = result.astype(object).where(result.notna(), None)
        show_json(summary | {"data": values.to_dict("records")})
    else:
        typer.echo(result.to_csv(index=False), nl=False)
