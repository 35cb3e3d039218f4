"""The half of a download that needs no network: conversion, verification, writing."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from marginfold.data import catalogue, load
from marginfold.data.catalogue import Entry
from marginfold.data.loading import fetch_file, read_arrays
from marginfold.errors import InvalidInputError

TAE = load("tae")


def entry(**changes) -> Entry:
    """The entry of a small set, as if it had to be downloaded."""
    known = {"where": "data_home", "file": "tae.csv", "openml_id": 48}
    return replace(catalogue()["tae"], **{**known, **changes})


def frame() -> pd.DataFrame:
    """Columns as OpenML has them: numbers, and categories whose names are numbers."""
    table = pd.DataFrame(TAE.X, columns=list(TAE.feature_names))
    table.iloc[:, 2] = table.iloc[:, 2].astype(int)
    codes = [str(int(value)) for value in TAE.X[:, 0]]
    return table.assign(**{TAE.feature_names[0]: pd.Categorical(codes)})


def answer(data_id):
    assert data_id == 48
    return frame(), pd.Series(pd.Categorical([str(label) for label in TAE.y]))


@pytest.mark.parametrize("file", ["tae.csv", "tae.csv.gz"])
def test_what_is_verified_is_written_and_reads_back(tmp_path, file):
    path = fetch_file(entry(file=file), tmp_path / "new" / "folder", fetch=answer)
    X, y = read_arrays(path)
    assert_array_equal(X, TAE.X)
    assert_array_equal(y, TAE.y)
    assert os.listdir(path.parent) == [file]
    if file.endswith(".gz"):
        assert gzip.decompress(path.read_bytes()).startswith(b"f1,f2")


def test_other_names_of_the_labels_are_translated(tmp_path):
    def renamed(data_id):
        return frame(), [f"grade {label}" for label in TAE.y]

    names = {f"grade {label}": str(label) for label in (1, 2, 3)}
    path = fetch_file(entry(openml_labels=names), tmp_path, fetch=renamed)
    assert_array_equal(read_arrays(path)[1], TAE.y)


def test_missing_values_stay_missing(tmp_path):
    votes = load("votes")

    def fetch(data_id):
        words = pd.DataFrame(votes.X).map(lambda v: None if np.isnan(v) else str(int(v)))
        return words.astype("category"), votes.y

    path = fetch_file(
        replace(catalogue()["votes"], file="votes.csv", openml_id=56), tmp_path, fetch=fetch
    )
    assert_array_equal(read_arrays(path)[0], votes.X)


def changed_value(data_id):
    table, target = answer(data_id)
    table.iloc[3, 4] += 1
    return table, target


def one_row_less(data_id):
    table, target = answer(data_id)
    return table.iloc[1:], target.iloc[1:]


def other_labels(data_id):
    return frame(), np.roll(TAE.y, 1)


def words(data_id):
    return frame().astype(str) + " units", TAE.y


def no_network(data_id):
    raise OSError("no route to host")


@pytest.mark.parametrize("fetch", [changed_value, one_row_less, other_labels, words, no_network])
def test_anything_else_is_refused_and_nothing_is_written(tmp_path, fetch):
    with pytest.raises(InvalidInputError, match="OpenML's data set 48"):
        fetch_file(entry(), tmp_path, fetch=fetch)
    assert os.listdir(tmp_path) == []


def test_a_file_that_exists_is_not_replaced(tmp_path):
    (tmp_path / "tae.csv").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"tae\.csv exists and is left as it is"):
        fetch_file(entry(), tmp_path, fetch=answer)
    assert (tmp_path / "tae.csv").read_text() == "mine"
    assert os.listdir(tmp_path) == ["tae.csv"]


def test_a_folder_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match=r"file.tae\.csv cannot be written"):
        fetch_file(entry(), tmp_path / "file", fetch=answer)


def test_without_a_number_there_is_nothing_to_fetch(tmp_path):
    with pytest.raises(InvalidInputError, match="OpenML has no data set 'tae'"):
        fetch_file(entry(openml_id=None), tmp_path, fetch=answer)
