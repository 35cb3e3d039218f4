"""A file is written whole or not at all, and never over one that was to be kept."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from marginfold.errors import InvalidInputError
from marginfold.runtime.files import _put_new, _write_draft, check_writable, write_file

WRITERS = 8


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_existing_file_is_replaced_only_if_told(tmp_path):
    path = tmp_path / "a.txt"
    write_file(path, b"first")
    with pytest.raises(InvalidInputError, match=r"a\.txt exists and is left as it is"):
        write_file(path, b"second")
    assert contents(tmp_path) == {"a.txt": b"first"}
    write_file(path, b"second", overwrite=True)
    assert contents(tmp_path) == {"a.txt": b"second"}


def test_a_file_made_between_the_check_and_the_last_step_is_kept(tmp_path):
    target = check_writable(tmp_path / "a.txt")
    draft = tmp_path / ".a.txt.part"
    _write_draft(draft, b"mine")
    target.write_bytes(b"theirs")
    with pytest.raises(InvalidInputError, match=r"a\.txt exists and is left as it is"):
        _put_new(draft, target)
    assert target.read_bytes() == b"theirs"


def test_of_many_writers_at_once_one_wins_and_the_others_are_told(tmp_path):
    start, won, told = threading.Barrier(WRITERS), [], []

    def write(number):
        start.wait()
        try:
            write_file(tmp_path / "a.txt", bytes([number]) * 10_000)
            won.append(number)
        except InvalidInputError as error:
            told.append(str(error))

    for _ in range(10):
        threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert contents(tmp_path) == {"a.txt": bytes(won) * 10_000}  # so that one has won
        assert len(told) == WRITERS - 1
        assert all("exists" in message for message in told)
        (tmp_path / "a.txt").unlink()
        won.clear()
        told.clear()


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_file_systems_without_links_are_written_to_as_well(number, tmp_path, monkeypatch):
    """No such file system is at hand, so the call answers as one of them does."""

    def refuse(*_arguments, **_options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    write_file(tmp_path / "a.txt", b"whole")
    assert contents(tmp_path) == {"a.txt": b"whole"}
    draft = tmp_path / ".a.txt.part"
    _write_draft(draft, b"mine")
    with pytest.raises(InvalidInputError, match="exists"):
        _put_new(draft, tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_bytes() == b"whole"


def test_other_failures_name_the_file_and_leave_nothing(tmp_path, monkeypatch):
    def refuse(*_arguments, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match=r"a\.txt") as caught:
        write_file(tmp_path / "a.txt", b"whole")
    assert caught.value.errno == errno.ENOSPC
    assert contents(tmp_path) == {}


def test_a_link_is_followed_and_its_end_is_replaced_only_if_told(tmp_path):
    (tmp_path / "end").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "end")
    with pytest.raises(InvalidInputError, match="exists"):
        write_file(tmp_path / "link", b"other")
    write_file(tmp_path / "link", b"whole", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "end").read_bytes() == b"whole"


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("end", ["nowhere", "link", "no-folder/file"])
def test_a_link_to_nothing_is_not_written_through(tmp_path, end, overwrite):
    (tmp_path / "link").symlink_to(tmp_path / end)
    for write in (check_writable, lambda path, **how: write_file(path, b"whole", **how)):
        with pytest.raises(InvalidInputError, match=r"link to .* which is not there"):
            write(tmp_path / "link", overwrite=overwrite)
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_the_check_tries_the_folder_and_leaves_nothing_behind(tmp_path):
    assert check_writable(tmp_path / "a.txt") == tmp_path / "a.txt"
    assert check_writable(tmp_path / ("名" * 80)) == tmp_path / ("名" * 80)  # 240 bytes
    assert contents(tmp_path) == {}
    with pytest.raises(InvalidInputError, match="too long"):
        check_writable(tmp_path / ("a" * 300))
    with pytest.raises(InvalidInputError, match=r"cannot write /proc/a\.txt"):
        check_writable("/proc/a.txt")
