"""The printed tables: complete, true to the papers, and in keeping with what they claim."""

from __future__ import annotations

import csv
import dataclasses
import re
from importlib.resources import files

import numpy as np
import pytest

from marginfold.errors import InvalidParameterError
from marginfold.protocols.published_numbers import (
    PAPERS,
    TABLES,
    UNITS,
    Printed,
    printed,
    tables,
)

ALL_TABLES = [(study, table) for study in TABLES for table in TABLES[study]]

SHAPES = {
    "lsva": [(9, 6), (9, 6), (10, 5), (10, 5)],
    "wsvda": [(6, 11)],
    "gesvm": [(10, 6), (10, 6)],
    "mrgepsvm": [(6, 4), (3, 4), (9, 4), (9, 4), (5, 5)],
}
"""Rows and columns of every table, counted in the papers."""

FEATURES = {
    "australian": 14,
    "breast": 10,
    "diabetes": 8,
    "german": 24,
    "heart": 13,
    "ionosphere": 34,
    "liver": 6,
    "sonar": 60,
    "transfusion": 4,
    "balance": 4,
    "ecoli": 7,
    "glass": 9,
    "iris": 4,
    "soy3": 35,
    "tae": 5,
    "thyroid": 5,
    "vehicle": 18,
    "vowel": 10,
    "wine": 13,
}
"""What 000 prints in parentheses behind the names of its data sets."""

FIVE_EQUAL_FOLDS = {
    "german": 1000,
    "heart": 270,
    "liver": 345,
    "balance": 625,
    "iris": 150,
    "thyroid": 215,
    "vowel": 990,
}
"""Sets whose rows five folds share equally: their mean over the folds is a count of rows."""

RETYPED = [  # study, table, row, column, value, spread, dimension: by hand from the papers
    ("lsva", "I", "australian", "MMDA", 17.69, None, 12),
    ("lsva", "I", "german", "1-NN", 32.8, None, None),
    ("lsva", "I", "ionosphere", "LLSVA", 6.83, None, 7),
    ("lsva", "I", "sonar", "PCA", 10.6, None, 18),
    ("lsva", "I", "transfusion", "LDA", 26.74, None, 1),
    ("lsva", "II", "diabetes", "LE", 36.47, None, 7),
    ("lsva", "II", "german", "KLSVA", 28.6, None, None),
    ("lsva", "II", "liver", "KMMDA", 26.67, None, 4),
    ("lsva", "II", "transfusion", "KLSVA", 16.66, None, 2),
    ("lsva", "III", "balance", "PCA", 23.84, None, 4),
    ("lsva", "III", "glass", "LDA", 42.52, None, 3),
    ("lsva", "III", "vehicle", "LLSVA", 20.1, None, 18),
    ("lsva", "III", "wine", "LLSVA", 0.0, None, 8),
    ("lsva", "IV", "soy3", "KDA", 13.37, None, 2),
    ("lsva", "IV", "tae", "KPCA", 46.99, None, 5),
    ("lsva", "IV", "wine", "LE", 2.81, None, 2),
    ("wsvda", "3", "wine 1v2", "LDA+NC", 90.29, None, None),
    ("wsvda", "3", "wine 1v3", "WSVDA+KNN", 100.0, None, None),
    ("wsvda", "3", "wine 2v3", "SVM", 48.11, None, None),
    ("wsvda", "3", "splice", "KNN", 68.17, None, None),
    ("gesvm", "4", "heart", "Q_L", 79.26, 10.59, None),
    ("gesvm", "4", "sonar", "Q_E", 65.81, 16.19, None),
    ("gesvm", "4", "transfusion", "SVM", 76.34, 0.52, None),
    ("gesvm", "5", "australian", "Q_E", 84.49, 2.41, None),
    ("gesvm", "5", "german", "Q_B", 59.6, 3.49, None),
    ("gesvm", "5", "liver", "Q_B", 71.01, 8.99, None),
    ("gesvm", "5", "transfusion", "Q_L", 78.88, 4.36, None),
    ("mrgepsvm", "1", "hepatitis", "GEPSVM", 58.29, 2.13, None),
    ("mrgepsvm", "1", "diabetes", "SVM", 76.68, 3.82, None),
    ("mrgepsvm", "2", "liver", "TSVM", 67.83, 7.01, None),
    ("mrgepsvm", "2", "wpbc", "MRGEPSVM", 79.72, 2.14, None),
    ("mrgepsvm", "3", "ida_waveform", "GEPSVM", 4.48, None, None),
    ("mrgepsvm", "3", "diabetes", "SVM", 7.1968, None, None),
    ("mrgepsvm", "4", "ida_thyroid", "TSVM", 0.00524, None, None),
    ("mrgepsvm", "4", "ida_breast_cancer", "MRGEPSVM", 0.0002, None, None),
    ("mrgepsvm", "5", "l = 10", "LPP", 82.26, 1.73, None),
    ("mrgepsvm", "5", "l = 50", "MRGEPSVM", 95.5, 1.08, None),
]


def rows_of(study, table):
    """Return {row: {column: value}} of a table."""
    rows = {}
    for (row, column), cell in printed(study, table).items():
        rows.setdefault(row, {})[column] = cell.value
    return rows


def lost_by(study, table, method):
    """Return by how much the method is above the lowest error, where it is."""
    gaps = {row: by[method] - min(by.values()) for row, by in rows_of(study, table).items()}
    return {row: round(gap, 2) for row, gap in gaps.items() if gap > 0}


def against_svm(table):
    """Return the sets in which the best graph of 002 wins, ties and loses against the SVM."""
    outcome = {"win": [], "tie": [], "loss": []}
    for row, by in rows_of("gesvm", table).items():
        gain = max(value for column, value in by.items() if column != "SVM") - by["SVM"]
        outcome["win" if gain > 0 else "loss" if gain < 0 else "tie"].append(row)
    return outcome


def test_every_file_is_a_known_table_and_the_reverse():
    folder = files("marginfold.protocols").joinpath("published")
    found = {entry.name for entry in folder.iterdir() if entry.name.endswith(".csv")}
    assert found == {f"{study}_{table}.csv" for study, table in ALL_TABLES}
    assert ALL_TABLES == [(study, table) for study in PAPERS for table in tables(study)]


@pytest.mark.parametrize(("study", "table"), ALL_TABLES)
def test_every_line_of_a_file_is_one_cell_in_plain_decimals(study, table):
    file = files("marginfold.protocols").joinpath("published", f"{study}_{table}.csv")
    header, *lines = csv.reader(file.read_text(encoding="utf-8").splitlines(), strict=True)
    assert header == [field.name for field in dataclasses.fields(Printed)]
    for line in lines:
        paper, number, row, column, value, spread, dimension, unit = line
        assert (paper, number) == (PAPERS[study], table)
        assert all(name and name == name.strip() for name in (row, column))
        assert all(re.fullmatch(r"([0-9]+(\.[0-9]+)?)?", text) for text in (value, spread))
        assert re.fullmatch("[0-9]*", dimension)
        assert unit in UNITS
    assert len({tuple(line[2:4]) for line in lines}) == len(lines)


@pytest.mark.parametrize(("study", "table"), ALL_TABLES)
def test_every_cell_is_there(study, table):
    cells = printed(study, table)
    shape = SHAPES[study][tables(study).index(table)]
    assert tuple(len(set(names)) for names in zip(*cells, strict=True)) == shape
    assert len(cells) == shape[0] * shape[1]
    assert list(cells) == [(cell.row, cell.column) for cell in cells.values()]


@pytest.mark.parametrize(("study", "table"), ALL_TABLES)
def test_numbers_are_in_range(study, table):
    units = {cell.unit for cell in printed(study, table).values()}
    assert len(units) == 1
    top = float("inf") if units == {"seconds"} else 100.0
    for cell in printed(study, table).values():
        assert 0.0 <= cell.value <= top
        assert cell.value > 0.0 or cell.unit != "seconds"
        assert cell.spread is None or 0.0 < cell.spread < 20.0


def test_where_spreads_and_dimensions_are_printed():
    for study, table in ALL_TABLES:
        with_spread = study == "gesvm" or (study == "mrgepsvm" and table in "125")
        for key, cell in printed(study, table).items():
            assert (cell.spread is not None) == with_spread
            projected = study == "lsva" and cell.column != "1-NN"
            forgotten = (table, *key) == ("II", "german", "KLSVA")
            assert (cell.dimension is not None) == (projected and not forgotten)


@pytest.mark.parametrize("table", TABLES["lsva"])
def test_no_dimension_is_above_the_number_of_features(table):
    for (row, column), cell in printed("lsva", table).items():
        assert cell.dimension is None or 1 <= cell.dimension <= FEATURES[row], (row, column)


@pytest.mark.parametrize(("study", "table", "row", "column", *"vsd"), RETYPED)
def test_cells_typed_a_second_time(study, table, row, column, v, s, d):
    cell = printed(study, table)[row, column]
    assert (cell.value, cell.spread, cell.dimension) == (v, s, d)
    assert (cell.paper, cell.table) == (PAPERS[study], table)


@pytest.mark.parametrize(("study", "table"), [t for t in ALL_TABLES if t[0] in ("lsva", "gesvm")])
def test_means_over_equal_folds_are_whole_numbers_of_rows(study, table):
    for (row, column), cell in printed(study, table).items():
        if n := FIVE_EQUAL_FOLDS.get(row):
            nearest = 100 * round(cell.value * n / 100) / n
            # some cells are cut after the second decimal, not rounded
            assert cell.value == pytest.approx(nearest, abs=0.0101), (row, column)


@pytest.mark.parametrize(("linear", "kernel"), [("I", "II"), ("III", "IV")])
def test_nearest_neighbors_do_not_depend_on_the_kernel(linear, kernel):
    one, other = rows_of("lsva", linear), rows_of("lsva", kernel)
    assert [(row, one[row]["1-NN"]) for row in one] == [(row, other[row]["1-NN"]) for row in other]


def test_where_lsva_is_not_the_best():
    # 000 section IV names German, Liver, Ecoli and Wine for the kernel tables and claims that a
    # loss is below 1 %; Ecoli and Sonar lose by more.
    assert lost_by("lsva", "I", "LLSVA") == {"sonar": 6.37}
    assert lost_by("lsva", "II", "KLSVA") == {"german": 0.3, "liver": 0.29}
    assert lost_by("lsva", "III", "LLSVA") == {"thyroid": 0.47, "vowel": 0.21}
    assert lost_by("lsva", "IV", "KLSVA") == {"ecoli": 1.35, "wine": 0.52}


def test_wsvda_is_the_best_of_every_row():
    for by in rows_of("wsvda", "3").values():
        assert max(by, key=by.get).startswith("WSVDA+")


def test_wins_of_gesvm():
    # 002 section 4 claims 7 wins and one loss in the linear table; the table has 6 and 2.
    linear = against_svm("4")
    assert len(linear["win"]) == 6
    assert linear["tie"] == ["hepatitis", "transfusion"]
    assert linear["loss"] == ["breast", "heart"]
    kernel = against_svm("5")
    assert (len(kernel["win"]), kernel["tie"]) == (8, [])
    assert kernel["loss"] == ["german", "hepatitis"]


@pytest.mark.parametrize("table", ["1", "2", "5"])
def test_mrgepsvm_is_more_accurate_than_gepsvm(table):
    assert all(by["MRGEPSVM"] > by["GEPSVM"] for by in rows_of("mrgepsvm", table).values())


def test_times_of_mrgepsvm():
    # 003 section 6: faster than GEPSVM with the Gaussian kernel, twice as fast with the linear
    # one; but "MRGEPSVM and GEPSVM outperform TSVM and SVM in all cases" is not what it prints.
    assert all(by["MRGEPSVM"] < by["GEPSVM"] for by in rows_of("mrgepsvm", "3").values())
    linear = rows_of("mrgepsvm", "4")
    assert all(2 * by["MRGEPSVM"] < by["GEPSVM"] for by in linear.values())
    faster = [row for row, by in linear.items() if by["SVM"] < by["MRGEPSVM"]]
    assert faster == ["votes", "diabetes", "ida_heart"]


@pytest.mark.parametrize("study", ["LSVA", "", None, 0, ["lsva"], "000"])
def test_unknown_studies(study):
    for ask in (lambda: tables(study), lambda: printed(study, "I")):
        with pytest.raises(InvalidParameterError, match=r"'lsva', 'wsvda', .*'svmpca'; got"):
            ask()


@pytest.mark.parametrize("table", ["V", "i", "", None, 1, "../lsva_I"])
def test_unknown_tables(table):
    with pytest.raises(InvalidParameterError, match=r"'lsva' must be one of 'I', 'II', 'III'"):
        printed("lsva", table)


def test_a_paper_without_tables():
    assert tables("svmpca") == []
    with pytest.raises(InvalidParameterError, match="no table"):
        printed("svmpca", "1")


def test_a_caller_cannot_change_what_the_next_one_gets():
    tables("lsva").clear()
    printed("lsva", "I").clear()
    assert len(printed("lsva", tables("lsva")[0])) == 54


TRAINED_ON = {
    "ida_flare_solar": 666,
    "ida_waveform": 400,
    "ida_thyroid": 140,
    "ida_heart": 170,
    "ida_banana": 400,
    "ida_breast_cancer": 200,
}
"""Training rows of the splits that 003 names as its third repository."""


def test_printed_times_of_an_eigenproblem_tell_its_size():
    """E53: t = a n^3 holds in six rows of 003 Table 3 and names other sets in two of the rest."""
    seconds = {row: c.value for (row, m), c in printed("mrgepsvm", "3").items() if m == "GEPSVM"}
    cubes = np.array([seconds[row] / n**3 for row, n in TRAINED_ON.items()])
    a = np.exp(np.log(cubes).mean())
    sizes = {row: (t / a) ** (1 / 3) for row, t in seconds.items()}
    assert a == pytest.approx(5.1e-8, rel=0.01)
    assert all(abs(sizes[row] / n - 1) < 0.12 for row, n in TRAINED_ON.items())
    assert sizes["sonar"] == pytest.approx(490, abs=5)
    assert sizes["votes"] == pytest.approx(490, abs=5)
    assert sizes["diabetes"] == pytest.approx(130, abs=5)
    assert seconds["sonar"] / seconds["diabetes"] == pytest.approx(52, abs=0.5)


def test_printed_times_contradict_the_text_beside_them():
    """E44b."""
    linear, rbf = (
        {place: c.value for place, c in printed("mrgepsvm", t).items()} for t in ("4", "3")
    )
    rows = {row for row, _ in linear}

    def slower(times, one, other):
        return sum(times[row, one] > times[row, other] for row in rows)

    assert len(rows) == 9
    assert slower(linear, "GEPSVM", "SVM") == 9
    assert slower(linear, "GEPSVM", "TSVM") == 8
    assert slower(linear, "MRGEPSVM", "SVM") == 3
    assert slower(rbf, "SVM", "MRGEPSVM") == 6
