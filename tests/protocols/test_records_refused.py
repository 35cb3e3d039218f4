"""Record stores that cannot be used, or not for that: each refusal says which and what to do."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from marginfold.errors import InvalidInputError
from marginfold.protocols.records import FILE_NAME, SCHEMA, RecordStore, Result
from marginfold.protocols.studies import Task

TASK = Task("demo", "wine", "1-NN", work=print)


def test_reading_only_needs_a_run_and_makes_nothing(tmp_path):
    with pytest.raises(InvalidInputError, match=r"contains no records\.sqlite; give the folder"):
        RecordStore(tmp_path / "none", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_store_for_reading_refuses_to_write(tmp_path):
    RecordStore(tmp_path).close()
    with (
        RecordStore(tmp_path, read_only=True) as reader,
        pytest.raises(InvalidInputError, match="read"),
    ):
        reader.write(TASK, [Result("error", 0.5)], seconds=0.0)


def spoil_text(path: Path) -> None:
    path.write_text("dataset,error\nwine,0.05\n" * 50)


def spoil_header(path: Path) -> None:
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])


def spoil_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def spoil_other_table(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE records (name)")


def spoil_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {SCHEMA + 1}")


def spoil_pages(path: Path) -> None:
    head = path.read_bytes()[:4096]
    path.write_bytes(head + b"\xa5" * (path.stat().st_size - len(head)))


def spoil_empty(path: Path) -> None:
    path.write_bytes(b"")


def spoil_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "read_only"),
    [
        *((spoil, False) for spoil in (spoil_text, spoil_header, spoil_half, spoil_newer)),
        *((spoil, True) for spoil in (spoil_text, spoil_header, spoil_half, spoil_newer)),
        (spoil_folder, True),
        (spoil_folder, False),
        (spoil_other_table, False),
        (spoil_pages, False),
        (spoil_pages, True),
        (spoil_other_table, True),
        (spoil_empty, True),
    ],
)
def test_a_spoiled_file_is_refused_in_words(tmp_path, spoil, read_only):
    with RecordStore(tmp_path) as store:
        for fold in range(40):
            results = [Result("error", 0.5, reason="x" * 100)] * 30
            store.write(replace(TASK, fold=fold), results, seconds=0.0)
    spoil(tmp_path / FILE_NAME)
    spoiled = (tmp_path / FILE_NAME).read_bytes() if (tmp_path / FILE_NAME).is_file() else None
    with (
        pytest.raises(InvalidInputError) as refusal,
        RecordStore(tmp_path, read_only=read_only) as s,
    ):
        s.read()
    assert str(tmp_path) in str(refusal.value)
    assert "folder" in str(refusal.value)  # what to do: another one
    if spoiled is not None:
        assert (tmp_path / FILE_NAME).read_bytes() == spoiled  # left for who wants to mend it


def test_a_newer_layout_names_both_numbers(tmp_path):
    RecordStore(tmp_path).close()
    spoil_newer(tmp_path / FILE_NAME)
    with pytest.raises(InvalidInputError, match=f"layout {SCHEMA + 1}, this one knows {SCHEMA}"):
        RecordStore(tmp_path)


@pytest.mark.parametrize("below", ["", "further/down"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, below):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InvalidInputError, match=r"cannot be created .*give another"):
        RecordStore(tmp_path / "taken" / below)
    assert (tmp_path / "taken").read_text() == "a file"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InvalidInputError, match="cannot be used"):
            RecordStore(tmp_path)
    finally:
        tmp_path.chmod(0o700)
