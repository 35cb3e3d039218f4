"""Files of the user: found where they should be, and refused by name if anything is wrong."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from marginfold.data import catalogue, load, status, summary
from marginfold.data.catalogue import folder, lookup
from marginfold.data.loading import (
    as_labels,
    canonical_text,
    fingerprint,
    parse_arrays,
    read_arrays,
    unordered_fingerprint,
    verify,
)
from marginfold.errors import InvalidInputError, InvalidParameterError

USERS_SETS = [name for name, entry in catalogue().items() if entry.where == "data_home"]
IRIS = canonical_text(load("iris").X, load("iris").y)


def read_and_verify(path):
    """What `load` does with a file of the user, for a set whose true content is at hand."""
    X, y = read_arrays(path)
    verify(catalogue()["iris"], X, y, str(path))
    return X, y


def flipped(content, position):
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


LINES = IRIS.splitlines(keepends=True)
DAMAGED = {
    "a changed value": IRIS.replace("5.1,3.5", "5.1,3.6", 1),
    "a row less": "".join(LINES[:-1]),
    "a row more": IRIS + LINES[-1],
    "an exchanged row": "".join([LINES[0], *LINES[2:], LINES[1]]),
    "one wrong label": IRIS.replace("Iris-setosa", "Iris-virginica", 1),
    "swapped labels": IRIS.replace("setosa", "?")
    .replace("virginica", "setosa")
    .replace("?", "virginica"),
    "a missing value": IRIS.replace("5.1", "", 1),
    "an infinite value": IRIS.replace("5.1", "inf", 1),
    "a word for a number": IRIS.replace("5.1", "five", 1),
    "a cell more": IRIS.replace("5.1", "5.1,5.1", 1),
    "another header": IRIS.replace("f1,f2", "f2,f1", 1),
    "no header": "".join(LINES[1:]),
    "nothing": "",
    "only a header": LINES[0],
    "another table": "a;b\n1;2\n",
}


@pytest.mark.parametrize("damage", sorted(DAMAGED))
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_damaged_file_is_refused_by_name(tmp_path, damage, ending):
    content = DAMAGED[damage].encode()
    path = tmp_path / f"iris{ending}"
    path.write_bytes(gzip.compress(content) if ending == ".csv.gz" else content)
    with pytest.raises(InvalidInputError) as caught:
        read_and_verify(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("position", range(0, len(IRIS), 97))
def test_no_flipped_bit_of_a_table_goes_unseen(tmp_path, position):
    path = tmp_path / "iris.csv"
    path.write_bytes(flipped(IRIS.encode(), position))
    with pytest.raises(InvalidInputError, match=r"iris\.csv"):
        read_and_verify(path)


@pytest.mark.parametrize("position", range(10, 800, 53))
def test_a_flipped_bit_of_a_compressed_table_is_refused(tmp_path, position):
    path = tmp_path / "iris.csv.gz"
    path.write_bytes(flipped(gzip.compress(IRIS.encode(), mtime=0), position))
    with pytest.raises(InvalidInputError, match=r"iris\.csv\.gz"):
        read_and_verify(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"not gzip", IRIS.encode(), gzip.compress(IRIS.encode(), mtime=0)[:-9], b"\x1f\x8b"],
    ids=["empty", "text", "table", "cut off", "magic number"],
)
def test_what_is_not_a_whole_gzip_file_is_refused(tmp_path, content):
    path = tmp_path / "iris.csv.gz"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"iris\.csv\.gz"):
        read_and_verify(path)


def test_binary_rubbish_is_refused(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(InvalidInputError, match=r"iris\.csv is not a text table"):
        read_and_verify(path)


def test_rows_in_another_order_are_told_from_damage():
    X, y = labelled_rows()
    verify(entry_of(X, y), X, y, "here")
    with pytest.raises(InvalidInputError, match="rows in another order, need the order as made"):
        verify(entry_of(X, y), X[::-1], y[::-1], "there")


def labelled_rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(6, 2)).round(2), np.array([1, 1, 2, 2, 3, 3])


def entry_of(X, y):
    return replace(
        catalogue()["australian"],
        rows=X.shape[0],
        columns=X.shape[1],
        class_counts={"1": 2, "2": 2, "3": 2},
        sha256=fingerprint(X, y),
        sha256_unordered=unordered_fingerprint(X, y),
        order="as made",
    )


def test_the_canonical_text_does_not_depend_on_how_numbers_are_written():
    X, y = parse_arrays(b"f1,f2,label\n1.0,0.50,a\n,-0.0,b\n", "somewhere.csv")
    Z, z = parse_arrays(b"f1,f2,label\n1,5e-1,a\n,0,b\r\n", "elsewhere.csv")
    assert canonical_text(X, y) == canonical_text(Z, z) == "f1,f2,label\n1,0.5,a\n,0,b\n"
    assert fingerprint(X, y) != fingerprint(X[::-1], y[::-1])
    assert unordered_fingerprint(X, y) == unordered_fingerprint(X[::-1], y[::-1])


@pytest.mark.parametrize(
    ("texts", "kind"), [(["1", "-1"], "i"), (["1", "a"], "U"), (["01", "1"], "U"), (["1.0"], "U")]
)
def test_labels_are_numbers_only_if_all_are(texts, kind):
    assert as_labels(texts).dtype.kind == kind
    assert [str(label) for label in as_labels(texts)] == texts


def test_an_archive_with_objects_is_not_opened(tmp_path):
    path = tmp_path / "ida_banana.npz"
    np.savez(path, X=np.array([[object()]]), y=np.array([1]))
    with pytest.raises(InvalidInputError, match=r"ida_banana\.npz is not a complete \.npz"):
        load("ida_banana", data_home=tmp_path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.zeros((3, 2))},
        {"X": np.zeros(3), "y": np.zeros(3)},
        {"X": np.zeros((3, 2)), "y": np.zeros(2)},
        {"X": np.zeros((3, 2)), "y": np.zeros(3)},
        {"X": np.array([["a"]]), "y": np.zeros(1)},
    ],
)
def test_an_archive_of_other_arrays_is_refused(tmp_path, arrays):
    np.savez(tmp_path / "ida_banana.npz", **arrays)
    with pytest.raises(InvalidInputError, match=r"ida_banana\.npz"):
        load("ida_banana", data_home=tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "ida_banana.npz").write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"ida_banana\.npz"):
        load("ida_banana", data_home=tmp_path)


def test_load_refuses_a_wrong_file_and_leaves_the_folder_alone(tmp_path):
    path = tmp_path / "australian.csv"
    path.write_text(IRIS)
    for download in (False, True):
        with pytest.raises(InvalidInputError, match="150 x 4 values, need 690 x 14") as caught:
            load("australian", data_home=tmp_path, download=download)
        assert str(path) in str(caught.value)
    assert path.read_text() == IRIS
    assert os.listdir(tmp_path) == ["australian.csv"]


@pytest.mark.parametrize("name", USERS_SETS)
def test_an_absent_set_says_what_to_do(tmp_path, name):
    with pytest.raises(InvalidInputError) as caught:
        load(name, data_home=tmp_path)
    entry, message = catalogue()[name], str(caught.value)
    assert f"put {entry.file} there" in message
    assert str(tmp_path) in message
    assert ("download=True" in message) == (entry.openml_id is not None)
    assert os.listdir(tmp_path) == []


def test_a_set_without_a_number_at_openml_cannot_be_downloaded(tmp_path):
    with pytest.raises(InvalidInputError, match="cannot be downloaded"):
        load("ida_banana", data_home=tmp_path, download=True)


@pytest.mark.parametrize(
    ("name", "close"), [("hart", "heart"), ("Iris", "iris"), ("usps_roweis", "usps_roweis8")]
)
def test_an_unknown_name_is_answered_with_close_ones(name, close):
    with pytest.raises(InvalidParameterError, match=f"did you mean .*'{close}'"):
        load(name)


@pytest.mark.parametrize("name", ["", "qqqq", "../iris", None, 3, ["iris"]])
def test_what_is_like_no_name_is_answered_with_all(name):
    with pytest.raises(InvalidParameterError, match=r"Known are: australian, .*wpbc"):
        lookup(name)


def test_the_folder_is_argument_then_variable_then_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MARGINFOLD_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert folder() == tmp_path / ".cache" / "marginfold"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert folder() == tmp_path / "cache" / "marginfold"
    monkeypatch.setenv("MARGINFOLD_DATA", "~/data")
    assert folder() == tmp_path / "data"
    assert folder(tmp_path / "mine") == tmp_path / "mine"


@pytest.mark.parametrize("home", [3, b"bytes", ["list"]])
def test_what_is_no_path_is_refused(home):
    with pytest.raises(InvalidParameterError, match="data_home must be a path or None"):
        load("australian", data_home=home)


def test_status_sees_files_compressed_or_not_without_opening_them(tmp_path):
    assert status("australian", tmp_path) == "missing"
    (tmp_path / "australian.csv.gz").write_bytes(b"anything")
    assert status("australian", tmp_path) == "in data_home"
    (tmp_path / "usps.csv").mkdir()
    assert status("usps", tmp_path) == "missing"
    assert status("iris", tmp_path) == "bundled"
    assert status("usps", tmp_path / "absent") == "missing"


def test_summary_is_ready_for_json_and_complete(tmp_path):
    rows = json.loads(json.dumps(summary(tmp_path)))
    assert [row["name"] for row in rows] == list(catalogue())
    for row in rows:
        assert sum(row["class_counts"].values()) == row["rows"]
        assert row["classes"] == len(row["class_counts"])
        assert row["license"]
        assert row["citation"]
    assert {row["status"] for row in rows} == {"bundled", "missing"}


@pytest.mark.parametrize("name", USERS_SETS)
def test_sets_of_the_folder_load_where_it_has_them(name):
    home = os.environ.get("MARGINFOLD_DATA")
    if not home or status(name) == "missing":
        pytest.skip(f"no {catalogue()[name].file} in the folder that MARGINFOLD_DATA names")
    entry, data = catalogue()[name], load(name)
    assert data.X.shape == (entry.rows, entry.columns)
    assert [str(label) for label in np.unique(data.y)] == list(entry.class_counts)


def test_the_compressed_copy_of_a_users_set_loads_too(tmp_path):
    home = os.environ.get("MARGINFOLD_DATA")
    if not home or status("australian") == "missing":
        pytest.skip("no australian.csv in the folder that MARGINFOLD_DATA names")
    content = Path(home, "australian.csv").read_bytes()
    (tmp_path / "australian.csv.gz").write_bytes(gzip.compress(content))
    assert_array_equal(load("australian", data_home=tmp_path).X, load("australian").X)
