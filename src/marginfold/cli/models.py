"""The commands transform, predict and export: a saved model between two tables, or as a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

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
    Raw,
    Sep,
    reading_of,
)
from marginfold.cli.output import show_csv, show_json, show_notes, show_rows
from marginfold.cli.writing import Later, check_outputs
from marginfold.errors import InvalidInputError
from marginfold.runtime.extras import require

if TYPE_CHECKING:
    import pandas as pd

    from marginfold.data import Reading, TableModel
    from marginfold.linalg.tall import Array

TRANSFORM_EXAMPLES = """\b
Examples:
  marginfold transform iris.skops new.csv --out components.csv
  marginfold transform iris.skops new.csv --keep species --out components.parquet
  marginfold transform iris.skops new.csv | head
"""

PREDICT_EXAMPLES = """\b
Examples:
  marginfold predict jobs.skops new.csv --out predicted.csv
  marginfold predict jobs.skops new.csv --keep name --scores
  marginfold predict jobs.skops new.csv --proba --json
"""

EXPORT_EXAMPLES = """\b
Examples:
  marginfold export iris.skops iris.onnx
  marginfold export iris.skops iris.onnx --float64 --overwrite
"""

SHARES = "probabilities are shares of the nearest rows; 'marginfold fit --proba' calibrates them"
"""What to know of the probabilities of nearest neighbors."""

Answer: TypeAlias = "tuple[dict[str, Any], list[str]]"
"""New columns by name, and notes."""

WithScores = Annotated[
    bool,
    typer.Option(
        "--scores",
        help="Add a column per class: its margin, or of nearest neighbors the distance to its "
        "nearest row.",
    ),
]
WithProbabilities = Annotated[
    bool,
    typer.Option("--proba", help="Add a column per class: its probability."),
]

File = Annotated[Path, typer.Argument(metavar="FILE", help="File to write (.onnx).")]
Double = Annotated[
    bool, typer.Option("--float64", help="Numbers go in and come out in float64, else float32.")
]


def transform(
    model: Model,
    data: Data,
    out: Out = None,
    keep: Keep = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    raw: Raw = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write the components of a table's rows.

    Without --out they go to standard output, as CSV.
    """
    reading = reading_of(sep, decimal, encoding, no_header)
    writing = Writing(out, raw, overwrite, as_json)
    _answer(_components, model, data, keep, reading, writing)


def predict(
    model: Model,
    data: Data,
    out: Out = None,
    keep: Keep = None,
    scores: WithScores = False,
    proba: WithProbabilities = False,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    raw: Raw = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write the predicted classes of a table's rows.

    Without --out they go to standard output, as CSV.
    """
    answer = partial(_predictions, scores=scores, proba=proba)
    reading = reading_of(sep, decimal, encoding, no_header)
    writing = Writing(out, raw, overwrite, as_json)
    _answer(answer, model, data, keep, reading, writing)


def export(
    model: Model,
    file: File,
    float64: Double = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a saved model as an ONNX file, which runs without Python.

    Each column of the table is an input; missing numbers are NaN, missing words are empty.
    """
    require("onnx", "pandas", "skl2onnx", "skops")
    check_outputs({"FILE": file}, inputs=[model], overwrite=overwrite)
    loaded = load_table_model(model)
    import numpy as np

    from marginfold.onnx import to_onnx
    from marginfold.runtime.files import write_file

    exported = to_onnx(loaded, dtype=np.float64 if float64 else np.float32)
    content = exported.SerializeToString()
    write_file(file, content, overwrite=overwrite)
    styled = [name for name, _ in loaded.written]
    notes = [
        f"give plain numbers for {name!r}, which the table writes otherwise" for name in styled
    ]
    show_notes(notes)
    inputs = [value.name for value in exported.graph.input]
    outputs = [value.name for value in exported.graph.output]
    if as_json:
        found = {"inputs": inputs, "outputs": outputs, "bytes": len(content), "notes": notes}
        show_json(found | {"out": str(file)})
    else:
        rows = [("inputs", ", ".join(inputs)), ("outputs", ", ".join(outputs))]
        show_rows([*rows, ("saved", str(file))])


@dataclass(frozen=True)
class Writing:
    """Where the new columns go, and how."""

    out: Path | None
    raw: bool
    overwrite: bool
    as_json: bool

    def check(self, *inputs: Path) -> None:
        """Refuse early what could not be written."""
        from marginfold.data.tables import check_table_path

        check_outputs({"--out": self.out}, inputs=inputs, overwrite=self.overwrite)
        if self.out is not None:
            check_table_path(self.out, overwrite=self.overwrite)

    @property
    def is_csv(self) -> bool:
        """Whether a spreadsheet may open what is written."""
        from marginfold.data.tables import is_parquet

        return not self.as_json if self.out is None else not is_parquet(self.out)

    def notes(self, result: pd.DataFrame) -> list[str]:
        """Return how many words were kept from being taken for formulas."""
        from marginfold.data.tables import count_formulas

        n = count_formulas(result) if self.is_csv and not self.raw else 0
        words = "1 word that begins" if n == 1 else f"{n} words that begin"
        return [f"{words} like a formula: an apostrophe is put before (not with --raw)"] * (n > 0)

    def write(self, result: pd.DataFrame, notes: list[str]) -> None:
        """Write the columns to the file, or print them; also if the file fails."""
        from marginfold.data.tables import csv_text, write_table

        later = Later()
        out = self.out
        if out is not None:
            with later:
                write_table(result, out, overwrite=self.overwrite, raw=self.raw)
        written = out is not None and not later.failed
        summary = {"rows": len(result), "columns": list(result.columns), "notes": notes}
        if self.as_json and written:
            show_json(summary | {"out": str(out)})
        elif self.as_json:
            values = result.astype(object).where(result.notna(), None)
            show_json(summary | {"data": values.to_dict("records")})
        elif written:
            show_rows([("rows", str(len(result))), ("saved", str(out))])
        else:
            show_csv(csv_text(result, raw=self.raw))
        later.end()


def _answer(
    answer: Callable[[Saved, pd.DataFrame], Answer],
    path: Path,
    data: Path,
    keep: list[str] | None,
    reading: Reading,
    writing: Writing,
) -> None:
    """Load the model, let it work on the table, and write kept and new columns."""
    require("pandas", "skops")
    writing.check(path, data)
    kept = list(dict.fromkeys(keep or []))
    saved = Saved(path, data, load_table_model(path))
    frame, notes = _read_rows(saved.model, data, kept, reading)
    show_notes(notes)
    with warnings.catch_warnings():  # unseen levels are noted below
        warnings.filterwarnings("ignore", message="Found unknown categories")
        new, said = answer(saved, frame)
    clash = [name for name in kept if name in new]
    if clash:
        name = quote(clash[0])
        raise InvalidInputError(f"--keep {name} has the name of a new column; rename it.")
    import pandas

    result = pandas.concat([frame[kept], pandas.DataFrame(new, index=frame.index)], axis="columns")
    said = [*_unseen(saved.model, frame), *said, *writing.notes(result)]
    show_notes(said)
    writing.write(result, [*notes, *said])


@dataclass(frozen=True)
class Saved:
    """A model that was loaded, its file, and the table that it is asked about."""

    path: Path
    data: Path
    model: TableModel

    @property
    def name(self) -> str:
        """What the method is called."""
        from marginfold.data.answers import opened

        return self.model.name or " and ".join(
            type(step).__name__ for step in opened(self.model.method)
        )


def _components(saved: Saved, frame: pd.DataFrame) -> Answer:
    names = saved.model.component_names
    if not names:
        raise InvalidInputError(
            f"{saved.path} contains a classifier ({saved.name}) that has no components; use "
            f"'marginfold predict {quote(str(saved.path))} {quote(str(saved.data))}'."
        )
    return dict(zip(names, saved.model.transform(frame).T, strict=True)), []


def _predictions(saved: Saved, frame: pd.DataFrame, *, scores: bool, proba: bool) -> Answer:
    """Return the columns of the classes, and of the numbers that were asked for."""
    from marginfold.data.answers import counts_votes, has_scores

    model = saved.model
    if not hasattr(model.method, "predict"):
        raise InvalidInputError(
            f"{saved.path} contains a transformer ({saved.name}) that predicts no class; use "
            f"'marginfold transform {quote(str(saved.path))} {quote(str(saved.data))}'."
        )
    if scores and not has_scores(model.method):
        raise InvalidInputError(
            f"{saved.path} contains a classifier ({saved.name}) without margins or distances; "
            "leave --scores out, or ask for --proba."
        )
    if proba and not model.has_probabilities:
        raise InvalidInputError(
            f"{saved.path} contains a classifier ({saved.name}) without probabilities: its rows "
            "were too few to calibrate them, or another version saved it. Fit it again with "
            f"'marginfold fit ... --method {saved.name} --save', or ask for --scores."
        )
    columns: dict[str, Any] = {"prediction": model.predict(frame)}
    if scores:
        found = model.scores(frame)
        columns |= _by_class(found.kind, model, found.values)
    if not proba:
        return columns, []
    shares = model.probabilities(frame)
    columns |= _by_class("probability", model, shares)
    votes = [SHARES] if counts_votes(model.method) else []
    return columns, votes + _disagreements(columns["prediction"], shares, model)


def _disagreements(answers: Array, shares: Array, model: TableModel) -> list[str]:
    """Return a note if calibrated probabilities put another class first in some rows."""
    if model.calibration is None:
        return []
    likeliest = model.method.classes_[shares.argmax(axis=1)]
    n = int((likeliest != answers).sum())
    if not n:
        return []
    rows = "1 row" if n == 1 else f"{n} rows"
    return [
        f"{rows} where another class has the largest probability: the prediction is that of the "
        "margins, which were compared; probabilities are calibrated class by class"
    ]


def _by_class(kind: str, model: TableModel, values: Array) -> dict[str, Any]:
    names = [f"{kind}_{label}" for label in model.method.classes_.tolist()]
    return dict(zip(names, values.T, strict=True))


def load_table_model(path: Path) -> TableModel:
    """Return the model of a file, if it knows the columns of tables."""
    from marginfold.data import TableModel
    from marginfold.data.models import load_model

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load_model(path)
    if not isinstance(model, TableModel):
        raise InvalidInputError(
            f"{path} contains only a {type(model).__name__}, without column names; the commands "
            "need a model of 'marginfold fit --save' or 'compare --save'. In Python, load_model "
            "gives it."
        )
    show_notes(str(warning.message) for warning in caught)
    return model


def _read_rows(
    model: TableModel, data: Path, keep: list[str], reading: Reading
) -> tuple[pd.DataFrame, list[str]]:
    """Read the rows to work on; note what is not used or was changed."""
    from marginfold.data import read_table
    from marginfold.data.tables import NOTES
    from marginfold.data.target import check_columns, listed

    frame = read_table(data, min_rows=1, reading=reading.like(model.reading))
    check_columns(frame, keep, "--keep")
    model.arranged(frame.iloc[:0])
    used = {*model.columns, model.target, *keep}
    extra = [name for name in frame.columns if name not in used]
    notes = [f"columns that the model does not use: {listed(extra)}"] if extra else []
    notes += [note for name, note in frame.attrs.get(NOTES, {}).items() if name in used]
    return frame, notes


def _unseen(model: TableModel, frame: pd.DataFrame) -> list[str]:
    """Return notes on words that the model has never seen."""
    from marginfold.data.columns import unseen_levels

    return unseen_levels(model.pipeline["columns"], model.arranged(frame))
