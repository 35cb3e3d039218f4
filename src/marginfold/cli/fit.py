"""The command fit: build a method from the options, fit it to a table, and show what it found."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginfold.cli.options import (
    Categorical,
    Data,
    Dates,
    Decimal,
    Drop,
    DropIds,
    DropMissingTarget,
    Encoding,
    Json,
    NoHeader,
    OptionalTarget,
    Overwrite,
    Sep,
    reading_of,
)
from marginfold.cli.output import show_json, show_notes, show_rows, show_table, watched
from marginfold.errors import InvalidInputError, MarginfoldWarning
from marginfold.runtime.extras import require
from marginfold.runtime.files import check_writable
from marginfold.runtime.progress import report

if TYPE_CHECKING:
    import pandas as pd

    from marginfold.data import Columns, TableModel
    from marginfold.linalg.tall import Array

FIT_EXAMPLES = """\b
Examples:
  marginfold fit iris.csv --target species
  marginfold fit iris.csv --target species --method lsva --kernel rbf -C 10 --save iris.skops
  marginfold fit people.parquet --target job --method gesvc --drop name --json
"""
"""The end of the help."""

METHODS = {
    name.lower(): name
    for name in (
        *("LSVA", "WSVDA", "MMDA", "LDA", "KDA", "LPP", "NPE", "SVMPCA", "GraphEmbedding"),
        *("LaplacianEigenmaps", "LocallyLinearEmbedding", "MarginMap"),
        *("GESVC", "LapSVC", "GEPSVC", "MRGEPSVC", "TwinSVC"),
    )
}
"""The classes by their names on the command line; transformers first, then classifiers."""

KERNELS = ("linear", "rbf", "poly")
"""Kernels that need no further word."""

PARAMETERS = {
    "--kernel": "kernel",
    "--dims": "n_components",
    "-C": "C",
    "--graph-weight": "graph_weight",
}
"""The parameter that each option sets."""

RENAMED = {("TwinSVC", "C"): "C1", ("TwinSVC", "graph_weight"): None}
"""Parameters that a class calls otherwise, or that do nothing there without another one (None)."""

FOLDS = 5
"""Folds of the cross-validated error; fewer if the smallest class has fewer rows."""

MEASURES = {"gain": "gain_", "gap": "gap_", "eigenvalue": "eigenvalues_"}
"""What is shown of each component, and the attribute that holds it."""

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
    Path | None, typer.Option("--save", "-s", metavar="FILE", help="Model file to write (.skops).")
]


def fit(
    data: Data,
    target: OptionalTarget = None,
    method: Method = "lsva",
    kernel: Kernel = None,
    dims: Dims = None,
    cost: Cost = None,
    graph_weight: GraphWeight = None,
    scale: Scale = "standard",
    drop: Drop = None,
    categorical: Categorical = None,
    drop_missing_target: DropMissingTarget = False,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    drop_ids: DropIds = False,
    dates: Dates = False,
    save: Save = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Fit a method to a table; show what it found and save it."""
    check_method(method)
    check_kernel(kernel)
    _check_save(save, overwrite)
    from marginfold.data import inspect_columns, read_labelled
    from marginfold.data.target import chosen_target

    reading = reading_of(sep, decimal, encoding, no_header, drop_ids, dates)
    target = chosen_target(data, target, reading)
    features, labels = read_labelled(
        data, target, drop=drop or (), drop_missing=drop_missing_target, reading=reading
    )
    columns = inspect_columns(features, categorical=categorical or [], reading=reading)
    options = {"--kernel": kernel, "--dims": dims, "-C": cost, "--graph-weight": graph_weight}
    estimator = build_method(method, options)
    model, found = fit_table(estimator, features, labels, target, columns, scale)
    if save is not None:
        from marginfold.data.models import save_model

        save_model(model, save, overwrite=overwrite)
    result = _described(model, method.lower(), labels, features.shape[1]) | found
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


def _described(model: TableModel, method: str, labels: Array, n_columns: int) -> dict[str, Any]:
    """Return what was fitted to what, as plain values."""
    import numpy as np

    classes, counts = np.unique(labels, return_counts=True)
    return {
        "method": method,
        "target": model.target,
        "rows": len(labels),
        "columns": n_columns,
        "features": len(model.pipeline["columns"].get_feature_names_out()),
        "classes": dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True)),
    }


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


def build_method(method: str, options: Mapping[str, Any]) -> Any:
    """Return the unfitted estimator of a method's name with the options that were given."""
    import marginfold

    name = METHODS[check_method(method)]
    estimator = getattr(marginfold, name)()
    parameters = estimator.get_params(deep=False)
    given = {option: value for option, value in options.items() if value is not None}
    settings = {}
    for option, value in given.items():
        parameter = RENAMED.get((name, PARAMETERS[option]), PARAMETERS[option])
        if parameter is None or parameter not in parameters:
            known = [o for o, p in PARAMETERS.items() if RENAMED.get((name, p), p) in parameters]
            has = f"it takes {', '.join(known)}" if known else "it takes none of these options"
            raise InvalidInputError(f"method {method} has no {option}; {has}.")
        settings[parameter] = value
    if "unlabeled" in parameters:
        settings["unlabeled"] = None
    return estimator.set_params(**settings)


def check_method(method: str) -> str:
    """Return the name in lower case; refuse one that is no method."""
    name = method.lower()
    if name not in METHODS:
        close = get_close_matches(name, METHODS, n=1)
        meant = f" Did you mean {close[0]}?" if close else ""
        raise InvalidInputError(
            f"--method {method} is unknown.{meant} The methods are {', '.join(METHODS)}."
        )
    return name


def check_kernel(kernel: str | None) -> None:
    """Refuse a kernel that is not one of the few."""
    if kernel is not None and kernel not in KERNELS:
        raise InvalidInputError(f"--kernel must be one of {', '.join(KERNELS)}; got {kernel}.")


def fit_table(
    estimator: Any, frame: pd.DataFrame, labels: Array, target: str, columns: Columns, scale: str
) -> tuple[TableModel, dict[str, Any]]:
    """Fit the estimator to a table; collect its components or its errors, and its warnings."""
    from marginfold.data import TableModel

    def fit(rows: Any) -> TableModel:
        return TableModel.fit(
            estimator, frame.iloc[rows], labels[rows], target, columns, scale=scale
        )

    splits = _splits(labels) if hasattr(estimator, "predict") else []
    n_fits, wrong = 1 + len(splits), 0
    with watched(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report("fits", 0, n_fits)
        model = fit(slice(None))
        notes = [*columns.notes, *_said(caught)]
        for done, (train, test) in enumerate(splits, start=1):
            report("fits", done, n_fits)
            wrong += _count_errors(fit(train), frame, labels, test)
    if not splits:
        return model, {"components": _components(model), "notes": notes}
    return model, {
        "training_error": _count_errors(model, frame, labels, slice(None)) / len(labels),
        "cross_validated_error": wrong / len(labels),
        "folds": len(splits),
        "notes": notes,
    }


def _count_errors(model: TableModel, frame: pd.DataFrame, labels: Array, rows: Any) -> int:
    return int((model.predict(frame.iloc[rows]) != labels[rows]).sum())


def _said(caught: list[warnings.WarningMessage]) -> list[str]:
    texts = [str(w.message) for w in caught if issubclass(w.category, MarginfoldWarning)]
    return list(dict.fromkeys(" ".join(text.split()) for text in texts))


def _components(model: TableModel) -> list[dict[str, Any]]:
    method = model.method
    names = method.get_feature_names_out().tolist()
    measures = {
        measure: getattr(method, attribute)
        for measure, attribute in MEASURES.items()
        if len(getattr(method, attribute, ())) == len(names)
    }
    return [
        {"name": name} | {measure: float(values[k]) for measure, values in measures.items()}
        for k, name in enumerate(names)
    ]


def _splits(labels: Array) -> list[tuple[Array, Array]]:
    import numpy as np

    from marginfold.protocols.splits import folds

    smallest = int(np.unique(labels, return_counts=True)[1].min())
    return folds(labels, min(FOLDS, smallest), seed=0)
