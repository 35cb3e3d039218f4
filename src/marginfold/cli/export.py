"""The command export: a saved model as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marginfold.cli.models import load_table_model
from marginfold.cli.options import Json, Model, Overwrite
from marginfold.cli.output import show_json, show_notes, show_rows
from marginfold.cli.writing import check_outputs
from marginfold.runtime.extras import require

EXAMPLES = """\b
Examples:
  marginfold export iris.skops iris.onnx
  marginfold export iris.skops iris.onnx --float64 --overwrite
"""

File = Annotated[Path, typer.Argument(metavar="FILE", help="File to write (.onnx).")]
Double = Annotated[
    bool, typer.Option("--float64", help="Numbers go in and come out in float64, else float32.")
]


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
