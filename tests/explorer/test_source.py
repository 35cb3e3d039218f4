from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from mixed_table import mixed_frame

from marginfold.data import Reading
from marginfold.explorer import Session, Table, open_table


def coordinates_of(script: str, folder) -> list[np.ndarray]:
    """Run a script as a person would, and return what it computes."""
    path = folder / "maps.py"
    saved = "\nimport numpy\nnumpy.savez('found.npz', *coordinates)\n"
    path.write_text(script + saved, encoding="utf-8")
    subprocess.run([sys.executable, path], cwd=folder, check=True)
    found = np.load(folder / "found.npz")
    return [found[name] for name in found.files]


MAPS = [
    {"method": "LSVA", "params": {"graph_weight": 0.3, "neighbors": 7, "C": 2.0}},
    {"method": "PCA", "params": {"n_components": 2}},
    {"method": "LDA", "params": {}},
    {"method": "MarginMap", "params": {"cost": 3.0}},
    {"method": "KLSVA", "params": {"gamma": 0.2, "kernel": "rbf"}},
    {"method": "KDA", "params": {"kernel": "cosine"}},
]


def test_the_script_computes_the_coordinates_that_are_on_the_screen(tmp_path, workers):
    file = tmp_path / 'it\'s a "table".csv'
    mixed_frame().to_csv(file, index=False)
    session = Session(Table.of(open_table(file)), workers=workers)
    session.handle("choose", {"target": "species", "ignored": ["note"], "seed": 3, "held_out": 0.4})
    training = np.flatnonzero(~session.table.held_out)
    session.handle("relabel", {"ids": training[:3].tolist(), "label": 1})
    expected = [session.handle("fit", each)[1]["coordinates"] for each in MAPS]
    found = coordinates_of(session.handle("code", {"maps": MAPS})[0]["python"], tmp_path)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6 * np.abs(other).max())


def test_the_script_reads_the_table_as_it_was_read_here(tmp_path, workers):
    file = tmp_path / "t.txt"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 3))).assign(kind=np.repeat(["a", "b"], 30))
    frame.to_csv(file, sep=";", decimal=",", index=False, header=False)
    reading = Reading(sep="semicolon", decimal=",", header=False)
    session = Session(Table.of(open_table(file, reading), "c4"), workers=workers)
    expected = session.handle("fit", {"method": "LDA"})[1]["coordinates"]
    code = session.handle("code", {"maps": [{"method": "LDA"}]})[0]["python"]
    np.testing.assert_allclose(coordinates_of(code, tmp_path)[0], expected, atol=1e-6)


def test_the_script_draws_the_same_sample_of_a_large_table(tmp_path, workers):
    n, rng = 201_234, np.random.default_rng(0)
    kind = np.repeat(["a", "b", "c"], [n - 50_007, 50_000, 7])
    frame = pd.DataFrame({"x": rng.standard_normal(n).round(2) + (kind == "a"), "kind": kind})
    frame.to_csv(tmp_path / "t.csv", index=False)
    session = Session(Table.of(open_table(tmp_path / "t.csv")), workers=workers)
    assert session.table.sampled
    expected = session.handle("fit", {"method": "LDA"})[1]["coordinates"]
    code = session.handle("code", {"maps": [{"method": "LDA"}]})[0]["python"]
    np.testing.assert_allclose(coordinates_of(code, tmp_path)[0], expected, atol=1e-5)


def test_the_script_holds_out_the_rows_that_were_given(tmp_path, workers):
    mixed_frame().to_csv(tmp_path / "t.csv", index=False)
    held_out = np.arange(120) % 4 == 0
    table = Table.of(open_table(tmp_path / "t.csv"), "species", held_out=held_out)
    session = Session(table, workers=workers)
    expected = session.handle("fit", {"method": "LDA"})[1]["coordinates"]
    code = session.handle("code", {"maps": [{"method": "LDA"}]})[0]["python"]
    np.testing.assert_allclose(coordinates_of(code, tmp_path)[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "'); import os; os.system('touch owned')  #",
        '""" \n import os',
        "\\",
        "{__import__('os')}",
        "line\nbreak",
        "\u2028 and \x00",
    ],
)
def test_whatever_a_file_or_a_column_is_called_stays_a_string(workers, name):
    from marginfold.explorer import Opened

    frame = mixed_frame().rename(columns={"species": name, "unit": f"{name} 2"})
    opened = Opened(name, frame, name)
    session = Session(Table.of(opened, name, ignored=[f"{name} 2"]), workers=workers)
    code = session.handle("code", {"maps": [{"method": "LSVA"}]})[0]["python"]
    tree = ast.parse(code)
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert {name, f"{name} 2"} <= strings
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert calls == {
        *("read_labelled", "inspect_columns", "hold_out", "LSVA", "NeighborGraph"),
        *("TableModel.fit", "coordinates.append", "model.transform"),
    }
