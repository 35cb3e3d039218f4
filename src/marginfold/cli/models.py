"""The commands fit, transform and predict: a saved model between two tables."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginfold.cli.fitting import (
    KERNELS,
    METHODS,
    Fitted,
    build_method,
    check_kernel,
    fit_table,
)
from marginfold.cli.output import show_json, show_notes, show_rows, show_table
from marginfold.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from marginfold.tables import TableModel

PREDICTION = "prediction"
"""The column of predicted classes."""

FIT_EXAMPLES = """\b
Examples:
  marginfold fit iris.csv --target species
  marginfold fit iris.csv --target species --method lsva --kernel rbf -C 10 --save iris.skops
  marginfold fit people.parquet --target job --method gesvc --drop name --json
"""

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
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def fit(
    data: Data,
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COLUMN", help="Column with the classes.")
    ],
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help=f"One of {', '.join(METHODS)}.")
    ] = "lsva",
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="NAME", help=f"One of {', '.join(KERNELS)}.")
    ] = None,
    dims: Annotated[
        int | None,
        typer.Option("--dims", "-d", metavar="COUNT", help="Number of components (transformers)."),
    ] = None,
    cost: Annotated[
        float | None, typer.Option("-C", metavar="NUMBER", help="Cost of a margin violation.")
    ] = None,
    graph_weight: Annotated[
        float | None, typer.Option("--graph-weight", metavar="NUMBER", help="Weight of the graph.")
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            "--scale", metavar="NAME", help="Scaling of numbers: standard, range ([-1, 1]) or none."
        ),
    ] = "standard",
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", help="Column to leave out; repeatable."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            "--categorical",
            metavar="COLUMN",
            help="Column of codes to take as categories; repeatable.",
        ),
    ] = None,
    drop_missing_target: Annotated[
        bool, typer.Option("--drop-missing-target", help="Leave out rows without a class.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", "-s", metavar="FILE", help="Model file to write (.skops)."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Fit a method to a table; show what it found and save it."""
    check_kernel(kernel)
    options = {"--kernel": kernel, "--dims": dims, "-C": cost, "--graph-weight": graph_weight}
    estimator = build_method(method, options)
    from marginfold.files import check_writable
    from marginfold.models import save_model
    from marginfold.tables import inspect_columns, read_table, split_target

    if save is not None:
        check_writable(save, overwrite=overwrite)
    frame = _without(read_table(data), drop or [], target)
    features, labels = split_target(frame, target, drop_missing=drop_missing_target)
    columns = inspect_columns(features, categorical=categorical or [])
    fitted = fit_table(estimator, features, labels, target, columns, scale)
    if save is not None:
        save_model(fitted.model, save, overwrite=overwrite)
    result = _described(fitted, method.lower(), labels, features.shape[1])
    result["saved"] = None if save is None else str(save)
    if as_json:
        show_json(result)
    else:
        _show_fit(result)


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


def _without(frame: pd.DataFrame, drop: list[str], target: str) -> pd.DataFrame:
    from marginfold.tables.target import check_columns

    check_columns(frame, drop, "--drop")
    if target in drop:
        raise InvalidInputError(f"--drop {target} is the target; choose one of both.")
    return frame.drop(columns=drop)


def _described(fitted: Fitted, method: str, labels: Any, n_columns: int) -> dict[str, Any]:
    """Return what is said about a fit, as plain values."""
    import numpy as np

    model = fitted.model
    classes, counts = np.unique(labels, return_counts=True)
    result: dict[str, Any] = {
        "method": method,
        "target": model.target,
        "rows": len(labels),
        "columns": n_columns,
        "features": len(model.pipeline["columns"].get_feature_names_out()),
        "classes": dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True)),
    }
    if fitted.components:
        result["components"] = fitted.components
    else:
        result["training_error"] = fitted.training_error
        result["cross_validated_error"] = fitted.cross_validated_error
        result["folds"] = fitted.folds
    return result | {"notes": fitted.notes}


def _show_fit(result: dict[str, Any]) -> None:
    classes = ", ".join(f"{label} ({count})" for label, count in result["classes"].items())
    rows = [
        ("method", result["method"]),
        ("rows", str(result["rows"])),
        ("columns", str(result["columns"])),
        ("features", f"{result['features']} after encoding"),
        ("classes", f"{len(result['classes'])}: {classes}"),
    ]
    if "components" in result:
        rows.append(("components", str(len(result["components"]))))
    else:
        rows.append(("training error", f"{result['training_error']:.4f}"))
        rows.append((f"{result['folds']}-fold error", f"{result['cross_validated_error']:.4f}"))
    if result["saved"]:
        rows.append(("saved", result["saved"]))
    show_rows(rows)
    if "components" in result:
        names = list(result["components"][0])
        cells = [[_cell(c[name]) for name in names] for c in result["components"]]
        typer.echo()
        show_table(names, cells)
    show_notes(result["notes"])


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


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
