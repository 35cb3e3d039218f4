"""The commands transform and predict: a saved model between two tables."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from marginfold.cli.options import Data, Json, Keep, Model, Out, Overwrite
from marginfold.cli.output import show_json, show_notes, show_rows
from marginfold.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from marginfold.tables import TableModel

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


def transform(
    model: Model,
    data: Data,
    out: Out = None,
    keep: Keep = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write the components of a table's rows.

    Without --out they go to standard output, as CSV.
    """
    loaded = _load(model, out, overwrite)
    if not hasattr(loaded.method, "transform"):
        raise InvalidInputError(
            f"{model} holds the classifier {_name(loaded)}, which has no components; use "
            f"'marginfold predict {model} {data}'."
        )
    frame = _read_rows(loaded, data, keep or [])
    names = loaded.method.get_feature_names_out().tolist()
    components = loaded.transform(frame)
    columns = {name: components[:, k] for k, name in enumerate(names)}
    _finish(frame, keep or [], columns, out, overwrite, as_json)


def predict(
    model: Model,
    data: Data,
    out: Out = None,
    keep: Keep = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write the predicted classes of a table's rows.

    Without --out they go to standard output, as CSV.
    """
    loaded = _load(model, out, overwrite)
    if not hasattr(loaded.method, "predict"):
        raise InvalidInputError(
            f"{model} holds the transformer {_name(loaded)}, which predicts no class; use "
            f"'marginfold transform {model} {data}'."
        )
    frame = _read_rows(loaded, data, keep or [])
    _finish(frame, keep or [], {PREDICTION: loaded.predict(frame)}, out, overwrite, as_json)


def _name(model: TableModel) -> str:
    return type(model.method).__name__.lower()


def _load(path: Path, out: Path | None, overwrite: bool) -> TableModel:
    """Load the model, once it is known that the output can be written."""
    from marginfold.models import load_model
    from marginfold.tables import TableModel
    from marginfold.tables.writing import check_table_path

    if out is not None:
        check_table_path(out, overwrite=overwrite)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load_model(path)
    if not isinstance(model, TableModel):
        raise InvalidInputError(
            f"{path} holds a bare {type(model).__name__} without column names; the commands need "
            "a model of 'marginfold fit --save'. In Python, load_model gives it."
        )
    show_notes(str(warning.message) for warning in caught)
    return model


def _read_rows(model: TableModel, data: Path, keep: list[str]) -> pd.DataFrame:
    """Read the rows to work on; note the columns that are not used."""
    from marginfold.tables import read_table
    from marginfold.tables.target import check_columns, listed

    frame = read_table(data, min_rows=1)
    check_columns(frame, keep, "--keep")
    model.arranged(frame.iloc[:0])
    used = {*model.columns, model.target, *keep}
    extra = [name for name in frame.columns if name not in used]
    if extra:
        show_notes([f"columns that the model does not use: {listed(extra)}"])
    return frame


def _finish(
    frame: pd.DataFrame,
    keep: list[str],
    columns: dict[str, Any],
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write kept and new columns to the file, or print them."""
    from marginfold.tables import write_table

    keep = list(dict.fromkeys(keep))
    clash = [name for name in keep if name in columns]
    if clash:
        raise InvalidInputError(f"--keep {clash[0]} has the name of a new column; rename it.")
    result = frame[keep].assign(**columns)
    summary = {"rows": len(result), "columns": list(result.columns)}
    if out is not None:
        write_table(result, out, overwrite=overwrite)
        shown = summary | {"out": str(out)}
        show_json(shown) if as_json else show_rows(
            [("rows", str(len(result))), ("saved", str(out))]
        )
    elif as_json:
        values = result.astype(object).where(result.notna(), None)
        show_json(summary | {"data": values.to_dict("records")})
    else:
        typer.echo(result.to_csv(index=False), nl=False)
