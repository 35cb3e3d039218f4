"""The command fit: from a table to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginfold.cli.fitting import (
    KERNELS,
    METHODS,
    Fitted,
    build_method,
    check_kernel,
    check_method,
    fit_table,
)
from marginfold.cli.options import (
    Categorical,
    Data,
    Drop,
    DropMissingTarget,
    Json,
    Overwrite,
    Target,
)
from marginfold.cli.output import show_json, show_notes, show_rows, show_table
from marginfold.runtime.extras import require
from marginfold.runtime.files import check_writable

if TYPE_CHECKING:
    pass

FIT_EXAMPLES = """\b
Examples:
  marginfold fit iris.csv --target species
  marginfold fit iris.csv --target species --method lsva --kernel rbf -C 10 --save iris.skops
  marginfold fit people.parquet --target job --method gesvc --drop name --json
"""
"""The end of the help."""


Method = Annotated[
    str, typer.Option("--method", "-m", metavar="NAME", help=f"One of {', '.join(METHODS)}.")
]
Kernel = Annotated[
    str | None, typer.Option("--kernel", metavar="NAME", help=f"One of {', '.join(KERNELS)}.")
]
Dims = Annotated[
    int | None,
    typer.Option("--dims", "-d", metavar="COUNT", help="Number of components (transformers)."),
]
Cost = Annotated[
    float | None, typer.Option("-C", metavar="NUMBER", help="Cost of a margin violation.")
]
GraphWeight = Annotated[
    float | None, typer.Option("--graph-weight", metavar="NUMBER", help="Weight of the graph.")
]
Scale = Annotated[
    str,
    typer.Option(
        "--scale", metavar="NAME", help="Scaling of numbers: standard, range ([-1, 1]) or none."
    ),
]
Save = Annotated[
    Path | None,
    typer.Option("--save", "-s", metavar="FILE", help="Model file to write (.skops)."),
]


def fit(
    data: Data,
    target: Target,
    method: Method = "lsva",
    kernel: Kernel = None,
    dims: Dims = None,
    cost: Cost = None,
    graph_weight: GraphWeight = None,
    scale: Scale = "standard",
    drop: Drop = None,
    categorical: Categorical = None,
    drop_missing_target: DropMissingTarget = False,
    save: Save = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Fit a method to a table; show what it found and save it."""
    check_method(method)
    check_kernel(kernel)
    _check_save(save, overwrite)
    from marginfold.data import inspect_columns, read_labelled

    features, labels = read_labelled(
        data, target, drop=drop or (), drop_missing=drop_missing_target
    )
    columns = inspect_columns(features, categorical=categorical or [])
    options = {"--kernel": kernel, "--dims": dims, "-C": cost, "--graph-weight": graph_weight}
    estimator = build_method(method, options)
    fitted = fit_table(estimator, features, labels, target, columns, scale)
    if save is not None:
        from marginfold.data.models import save_model

        save_model(fitted.model, save, overwrite=overwrite)
    result = _described(fitted, method.lower(), labels, features.shape[1])
    result["saved"] = None if save is None else str(save)
    if as_json:
        show_json(result)
    else:
        _show_fit(result)


def _check_save(save: Path | None, overwrite: bool) -> None:
    """Refuse early what could not be fitted, or not be saved."""
    require("pandas", *(["skops"] if save is not None else []))
    if save is not None:
        check_writable(save, overwrite=overwrite)


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
