"""Available memory: every limit that a system can set is found, and refusals say what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from marginfold.errors import InvalidParameterError, MarginfoldError, TooLargeError
from marginfold.runtime import memory
from marginfold.runtime.memory import available_memory, has_memory, readable, require_memory

pytestmark = pytest.mark.attack("memory guards")

GB = 10**9


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Return a folder that stands for the root of a Linux system with 8 GB free and no limits."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.delenv(memory.LIMIT_VARIABLE, raising=False)
    (tmp_path / "proc" / "self").mkdir(parents=True)
    text = f"MemTotal: 16000000 kB\nMemFree: 1 kB\nMemAvailable: {8 * GB // 1024} kB\n"
    (tmp_path / "proc" / "meminfo").write_text(text)
    return tmp_path


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / f"memory.{name}").write_text(f"{value}\n")


def test_the_system_says_what_is_available(system):
    assert available_memory() == pytest.approx(8 * GB, rel=1e-6)


def test_a_group_of_version_2_limits_it_less_what_is_used_plus_what_can_be_reclaimed(system):
    (system / "proc" / "self" / "cgroup").write_text("0::/a/b\n")
    write(system / "cgroup" / "a" / "b", max=4 * GB, current=3 * GB, stat="inactive_file 500000000")
    assert available_memory() == 1_500_000_000


def test_the_tightest_group_above_counts(system):
    (system / "proc" / "self" / "cgroup").write_text("0::/a/b\n")
    write(system / "cgroup" / "a" / "b", max="max", current=1 * GB)
    write(system / "cgroup" / "a", max=3 * GB, current=1 * GB)
    assert available_memory() == 2 * GB


def test_a_group_of_version_1_limits_it(system):
    lines = "3:cpuset:/\n4:cpu,memory:/job\n1:name=systemd:/\n"
    (system / "proc" / "self" / "cgroup").write_text(lines)
    write(system / "cgroup" / "memory" / "job", limit_in_bytes=2 * GB, usage_in_bytes=GB // 2)
    assert available_memory() == 3 * GB // 2


def test_inside_a_container_the_group_may_be_the_root_of_what_is_seen(system):
    (system / "proc" / "self" / "cgroup").write_text("0::/../../seen/from/outside\n")
    write(system / "cgroup", max=2 * GB, current=GB)
    assert available_memory() == GB


def test_more_used_than_allowed_is_nothing_left(system):
    (system / "proc" / "self" / "cgroup").write_text("0::/\n")
    write(system / "cgroup", max=GB, current=2 * GB)
    assert available_memory() == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4GB", 4 * GB), ("500 mb", GB // 2), ("2GiB", 2**31), ("1.5k", 1500), ("1e9", GB), ("7", 7)],
)
def test_the_environment_lowers_it(system, monkeypatch, text, expected):
    monkeypatch.setenv(memory.LIMIT_VARIABLE, text)
    assert available_memory() == expected


def test_the_environment_cannot_raise_it(system, monkeypatch):
    monkeypatch.setenv(memory.LIMIT_VARIABLE, "900TB")
    assert available_memory() == pytest.approx(8 * GB, rel=1e-6)


@pytest.mark.parametrize("text", ["much", "-1GB", "1.2.3", "4 GBB", "0x10", "1e400"])
def test_a_limit_that_is_no_size_is_refused(system, monkeypatch, text):
    monkeypatch.setenv(memory.LIMIT_VARIABLE, text)
    with pytest.raises(InvalidParameterError, match=memory.LIMIT_VARIABLE):
        available_memory()


def test_an_empty_limit_is_none(system, monkeypatch):
    monkeypatch.setenv(memory.LIMIT_VARIABLE, " ")
    assert available_memory() == pytest.approx(8 * GB, rel=1e-6)


def test_elsewhere_the_installed_memory_is_the_bound(system):
    (system / "proc" / "meminfo").unlink()
    found = available_memory()
    assert found is None or found > 10**8


def test_nothing_is_refused_where_nothing_is_known(monkeypatch):
    monkeypatch.delenv(memory.LIMIT_VARIABLE, raising=False)
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    require_memory(10**30, "Everything", "take less")


def test_a_refusal_says_what_is_needed_what_is_there_and_what_to_do(monkeypatch):
    monkeypatch.setenv(memory.LIMIT_VARIABLE, "1MB")
    with pytest.raises(TooLargeError, match=r"A table needs 2 MB.*1 MB.*Instead: take less") as e:
        require_memory(2e6, "A table", "take less")
    assert isinstance(e.value, MemoryError)
    assert isinstance(e.value, MarginfoldError)


def test_what_is_there_is_granted_to_the_last_byte(monkeypatch):
    monkeypatch.setenv(memory.LIMIT_VARIABLE, "1MB")
    assert has_memory(1_000_000)
    assert not has_memory(1_000_001)


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 KB"), (2.5e9, "2.5 GB"), (3e15, "3e+03 TB")],
)
def test_sizes_are_readable(n_bytes, text):
    assert readable(n_bytes) == text


def test_a_limit_of_the_address_space_counts():
    pytest.importorskip("resource")
    code = """
import resource
from marginfold.runtime.memory import available_memory
resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9, 3 * 10**9))
print(available_memory())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 3 * 10**9
