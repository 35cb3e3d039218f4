"""The command fit: fit a method of the catalogue to a table, show what it found, and save it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
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
    Group,
    Json,
    NoHeader,
    OptionalTarget,
    Overwrite,
    Sep,
    reading_of,
)
from marginfold.cli.output import (
    show_json,
    show_line,
    show_notes,
    show_rows,
    show_table,
    show_words,
)
from marginfold.cli.settings import (
    ClassWeight,
    Cost,
    Dims,
    Graph,
    GraphWeight,
    Kernel,
    LowRank,
    Neighbors,
    Ridge,
    Settings,
    in_words,
)
from marginfold.cli.writing import Later, check_outputs
from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldError
from marginfold.runtime.extras import require

if TYPE_CHECKING:
    from marginfold.cli.fitting import Table
    from marginfold.data import TableModel

FIT_EXAMPLES = """\b
Examples:
  marginfold fit iris.csv --target species
  marginfold fit iris.csv --target species --method klsva -C 10 --proba --save iris.skops
  marginfold fit wine --method gesvc --graph-weight 1 --json
A method chooses its parameters (costs, weights, dimensions, neighbors) by folds inside the rows; an
option that is given is taken and not chosen.
"""
"""The end of the help."""

METHODS = (
    *("all-features", "logistic-regression", "pca", "lda", "lpp", "npe", "graphembedding", "mmda"),
    *("lsva", "lsva-permuted-graph", "wsvda", "laplacianeigenmaps", "locallylinearembedding"),
    *("kpca", "kda", "klsva", "nca", "marginmap", "svc-linear", "svc-rbf", "gesvc", "lapsvc"),
    *("gepsvc", "mrgepsvc", "twinsvc", "histgradientboosting", "lightgbm", "largest-class"),
)
"""The methods of the catalogue as they are spelled here; help does not wait for the catalogue."""

Method = Annotated[
    str, typer.Option("--method", "-m", metavar="NAME", help=f"One of {', '.join(METHODS)}.")
]

Scale = Annotated[
    str,
    typer.Option(
        "--scale", metavar="NAME", help="Scaling of numbers: standard, range ([-1, 1]) or none."
    ),
]

Seed = Annotated[int, typer.Option("--seed", metavar="NUMBER", min=0, help="Seed of the folds.")]

Proba = Annotated[
    bool,
    typer.Option(
        "--proba",
        help="Calibrate probabilities of any method by folds, and answer by them. (A saved model "
        "has probabilities without it: calibrated margins, or shares of the nearest rows.)",
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
    low_rank: LowRank = None,
    dims: Dims = None,
    cost: Cost = None,
    graph_weight: GraphWeight = None,
    graph: Graph = None,
    ridge: Ridge = None,
    class_weight: ClassWeight = None,
    neighbors: Neighbors = None,
    seed: Seed = 0,
    proba: Proba = False,
    scale: Scale = "standard",
    group: Group = None,
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
    settings = Settings(
        *(kernel, low_rank, dims, cost, graph_weight, graph, ridge, class_weight, neighbors)
    )
    settings.check()
    if proba and group is not None:
        raise InvalidParameterError(
            "--proba and --group cannot be used together: the folds that calibrate would divide "
            "groups. Leave one of them out."
        )
    require("pandas", *(["skops"] if save is not None else []))
    check_outputs({"--save": save}, inputs=[data], overwrite=overwrite)
    name = _method_named(method, saved=save is not None)
    from marginfold.cli.fitting import Table, build, fit_table
    from marginfold.compare.methods import command_name
    from marginfold.compare.table import Source, parted
    from marginfold.data import inspect_columns, read_labelled
    from marginfold.data.target import chosen_target

    reading = reading_of(sep, decimal, encoding, no_header, drop_ids, dates)
    target = chosen_target(data, target, reading)
    features, labels = read_labelled(
        data, target, drop=drop or (), drop_missing=drop_missing_target, reading=reading
    )
    together = None if group is None else reading.column(group)
    features, groups = parted(
        features, Source(str(data), target, tuple(drop or ()), group=together)
    )
    columns = inspect_columns(features, categorical=categorical or [], reading=reading)
    table = Table(features, labels, target, columns, scale, seed, groups)
    with _in_words():
        estimator = build(name, table, settings, proba=proba)
        model, found = fit_table(
            estimator, table, command_name(name), settings.given(), kept=save is not None
        )
    later = Later()
    with later:
        _save(model, save, overwrite)
    result = _described(model, table) | found
    result["saved"] = None if save is None or later.failed else str(save)
    if as_json:
        show_json(result)
    else:
        _show_fit(result)
    later.end()


def _save(model: TableModel, path: Path | None, overwrite: bool) -> None:
    if path is not None:
        from marginfold.data.models import save_model

        save_model(model, path, overwrite=overwrite)


def _method_named(method: str, *, saved: bool) -> str:
    """Return a method's name in the catalogue; refuse one that cannot be fitted, or not be kept."""
    from marginfold.compare.methods import METHODS as CATALOGUE
    from marginfold.compare.methods import method_named

    try:
        name = method_named(method)
    except InvalidParameterError as error:
        raise InvalidParameterError(f"--method: {error}") from None
    package = CATALOGUE[name].needs
    if package and find_spec(package) is None:
        raise InvalidInputError(
            f"--method {method} needs the package {package}, which is not installed; install it, "
            "or use histgradientboosting."
        )
    if package and saved:
        raise InvalidInputError(
            f"--save: a model file cannot contain models of the package {package}; leave --save "
            "out, or use histgradientboosting."
        )
    return name


@contextmanager
def _in_words() -> Iterator[None]:
    """Say what the library refuses in words of the command line."""
    try:
        yield
    except MarginfoldError as error:
        raise type(error)(in_words(str(error))) from error


def _described(model: TableModel, table: Table) -> dict[str, Any]:
    """Return what was fitted to what, as plain values."""
    import numpy as np

    classes, counts = np.unique(table.labels, return_counts=True)
    return {
        "method": model.name,
        "target": model.target,
        "rows": len(table.labels),
        "columns": table.frame.shape[1],
        "features": table.size.n_columns,
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
    for key in ("given", "chosen"):
        options = [f"{option} {_cell(value)}" for option, value in result[key].items()]
        rows += [(key, " ".join(options))] if options else []
    rows.append(("training error", f"{result['training_error']:.4f}"))
    if result["cross_validated_error"] is not None:
        rows.append((f"{result['folds']}-fold error", f"{result['cross_validated_error']:.4f}"))
    if result["saved"]:
        rows.append(("saved", result["saved"]))
    show_rows(rows)
    if result["components"]:
        from marginfold.cli.fitting import APART

        names = list(result["components"][0])
        cells = [[_cell(c[name]) for name in names] for c in result["components"]]
        show_line()
        show_table(names, cells)
        show_words(f"({APART})")
    show_notes(result["notes"])


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
