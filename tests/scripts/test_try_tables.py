"""The interval, the comparison and the exporting of `make try`."""

from __future__ import annotations

import lzma
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import foreign_tables
import try_tables
from foreign_tables import TABLES, MissingTableError, as_written, decompressed
from try_tables import behind, compared_interval, features, split, usual

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("p", [0.02, 0.2, 0.5])
@pytest.mark.parametrize(("n", "m"), [(60, 30), (600, 300)])
def test_an_honest_comparison_leaves_the_interval_in_one_case_of_a_hundred(p, n, m):
    """Ten folds and held-out rows of one error rate, drawn many times."""
    outside = 0
    for _ in range(2000):
        by_fold = RNG.binomial(n // 5, p, size=(2, 5)) / (n // 5) * 100
        low, high = compared_interval(by_fold.mean(), by_fold.std(ddof=1), 10, 5, n, m)
        outside += not low <= 100 * RNG.binomial(m, p) / m <= high
    assert outside <= binom(2000, 0.02).ppf(0.999)


def test_a_comparison_that_flatters_is_found():
    """Five points of error told where thirty are true."""
    low, high = compared_interval(5.0, 2.0, 10, 5, 200, 100)
    assert low < 5.0 < high < 20.0


def test_behind_is_the_difference_of_the_errors():
    wrong, usual_wrong = RNG.random((2, 400)) < [[0.3], [0.2]]
    points, noise = behind(wrong, usual_wrong)
    assert points == pytest.approx(100 * (wrong.mean() - usual_wrong.mean()))
    differences = 100 * (wrong.astype(float) - usual_wrong)
    assert noise == pytest.approx(differences.std() / 20, rel=0.02)


def test_equal_answers_are_not_certain_either():
    points, noise = behind(np.zeros(50, bool), np.zeros(50, bool))
    assert points == 0
    assert 0 < noise < 3


def test_cells_are_written_as_r_writes_them():
    frame = pd.DataFrame(
        {
            "a b": [1.0, 0.1 + 0.2, np.nan],
            "kind": pd.Categorical(["x", None, "y,z"]),
            "flag": [True, False, True],
            "n": [1, 2, 3],
        },
        index=["1", "2", "3"],
    )
    text = as_written(frame).to_csv(index=False)
    assert text == 'a b,kind,flag,n\n1,x,TRUE,1\n0.3,NA,FALSE,2\nNA,"y,z",TRUE,3\n'


def test_names_of_rows_are_a_column_without_a_name():
    frame = pd.DataFrame({"a": [1, 2]}, index=["Smith, Mr.", "Jones"])
    assert as_written(frame).to_csv(index=False) == ',a\n"Smith, Mr.",1\nJones,2\n'


@pytest.mark.parametrize("kind", ["x", "Z"])
def test_objects_of_r_are_decompressed(kind):
    content = b"0123456789" * 100
    if kind == "Z":
        packed = lzma.compress(content, lzma.FORMAT_RAW, filters=foreign_tables.RAW_LZMA)
        packed = b"Z" + packed
    else:
        packed = zlib.compress(content)
    assert decompressed(len(content).to_bytes(4, "big") + packed) == content


def test_text_files_of_any_delimiter_have_the_same_cells(tmp_path):
    files = {"a": "x,y\n1,NA\n", "b": "x;y\n1;NA\n", "c": "'x'\t'y'\n1\tNA\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        cells = foreign_tables._cells(tmp_path / name)
        assert cells.to_dict("list") == {"x": ["1"], "y": ["NA"]}


def test_a_stratified_third_is_held_out_and_rows_without_a_class_are_not_there():
    table = pd.DataFrame({"x": range(33), "c": 20 * ["a"] + 10 * ["b"] + 3 * ["NA"]})
    train, test = split(table, "c")
    assert (len(train), len(test)) == (20, 10)
    assert set(train.x).isdisjoint(test.x)
    assert (test.c == "b").sum() == 3


def test_the_usual_reads_numbers_and_words_and_leaves_out_ids():
    n = 90
    labels = np.where(np.arange(n) % 3 == 0, "yes", "no")
    table = pd.DataFrame(
        {
            "id": [f"row {i}" for i in range(n)],
            "value": [str(v) for v in RNG.normal(size=n).round(3)],
            "word": np.where(labels == "yes", "red", "blue"),
            "c": labels,
        }
    )
    table.loc[[4, 10], "value"] = "NA"
    train, test = split(table, "c")
    assert list(features(test, train, "c").columns) == ["value", "word"]
    assert not usual(train, test, "c")[1].any()


def test_what_cannot_be_had_says_why(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(foreign_tables, "INSTALLED", [Path("/nowhere/R")])
    monkeypatch.setattr(foreign_tables.shutil, "which", lambda program: None)
    table = next(table for table in TABLES if table.debian)
    with pytest.raises(MissingTableError, match=f"no apt-get here; install {table.debian}"):
        foreign_tables.read_table(table, tmp_path)
    monkeypatch.setattr(try_tables, "DOWNLOADS", tmp_path)
    assert try_tables.main(["--only", table.name]) == 2
    assert f"could not be had: {table}: there is no apt-get" in capsys.readouterr().out


def test_the_tables_are_twelve_with_different_reasons():
    assert len(TABLES) == len({table.why for table in TABLES}) == 12
