from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import hostile_tables
import httpx
import numpy as np
import pytest
from explorer_client import Client, client_of, split

from marginfold.explorer.calls import CALLS
from marginfold.explorer.methods import METHODS
from marginfold.explorer.server import HEADERS, Server

HOSTILE = hostile_tables.refused() | hostile_tables.accepted()


# Who may call ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Host": "127.0.0.1.evil.example:{port}"},
        {"Host": "0.0.0.0:{port}"},
        {"Origin": "http://evil.example"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1:{port}.evil.example"},
        {"Origin": "null"},
        {"X-Marginfold-Token": ""},
        {"X-Marginfold-Token": "x" * 43},
        {"X-Marginfold-Token": "\xe9" * 43},
    ],
)
def test_another_host_page_or_token_is_refused(client: Client, server: Server, headers):
    filled = {
        name: value.replace("{port}", str(server.port)).encode("latin-1")
        for name, value in headers.items()
    }
    answer = client.post("/api/describe", b"{}", headers=filled)
    assert answer.status_code == 403
    assert "iris" not in answer.text


def test_a_token_in_the_address_or_a_cookie_is_none(client: Client):
    plain = {"X-Marginfold-Tab": client.tab}
    for more in ({"params": {"token": client.token}}, {"cookies": {"token": client.token}}):
        answer = httpx.post(f"{client.url}/api/describe", headers=plain, trust_env=False, **more)
        assert answer.status_code == 403


def test_a_foreign_host_is_refused_for_the_page_too(client: Client):
    answer = client.http.get(client.url, headers={"Host": "evil.example"})
    assert answer.status_code == 403


def test_its_own_page_may_call_by_either_name(client: Client, server: Server):
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{server.port}"
        headers = {"Host": host, "Origin": f"http://{host}"}
        assert client.call("describe", headers=headers)[0] == "result"


def test_every_answer_has_the_headers_that_lock_the_page_in_and_none_that_opens_it(client: Client):
    answers = [
        client.http.get(client.url),
        client.http.get(f"{client.url}/page.js"),
        client.http.get(f"{client.url}/nothing"),
        client.http.options(f"{client.url}/api/describe", headers={"Origin": client.url}),
        client.post("/api/describe", b"{}"),
        client.post("/api/describe", b"{}", headers={"X-Marginfold-Token": "no"}),
    ]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "server" not in answer.headers
    assert "'unsafe" not in HEADERS["Content-Security-Policy"]


def test_it_listens_on_the_loopback_alone(server: Server):
    assert server._socket.getsockname()[0] == "127.0.0.1"
    found = socket.gethostbyname_ex(socket.gethostname())[2]
    for address in (each for each in found if not each.startswith("127.")):
        with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
            socket.create_connection((address, server.port), timeout=2).close()


def test_the_token_has_256_bits_and_stands_in_the_fragment(server: Server):
    token = re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=([\w-]{43})", server.address)[1]
    with Server() as other:
        assert token not in other.address


def test_a_page_is_there_and_no_other_file(client: Client):
    assert client.http.get(client.url).headers["content-type"].startswith("text/html")
    for path in ("/server.py", "/../server.py", "/static/page.js", "/%2e%2e/server.py", "/page.py"):
        assert client.http.get(client.url + path).status_code == 404


def test_a_tab_without_a_name_is_refused(client: Client):
    for tab in ("", "g" * 16, "0" * 15, "0" * 17, "../../../../etc"):
        answer = client.post("/api/describe", b"{}", headers={"X-Marginfold-Tab": tab})
        assert answer.status_code == 400


# What is answered --------------------------------------------------------------------------------


def test_a_fit_is_answered_by_progress_and_then_the_result(client: Client):
    frames = client.frames("/api/fit", json.dumps({"method": "LSVA"}).encode())
    assert [kind for kind, _, _ in frames[:-1]] == ["progress"] * (len(frames) - 1)
    assert frames[0][1]["stage"] == "fit"
    kind, body, arrays = frames[-1]
    assert kind == "result"
    assert arrays["coordinates"].shape == (150, len(body["axes"]))


def test_errors_are_frames_with_a_type_and_a_sentence(client: Client):
    for name, params in (("nothing", {}), ("fit", {"method": "x"}), ("undo", {})):
        kind, body, _ = client.call(name, params)
        assert kind == "error"
        assert body["type"].startswith("Invalid")
        assert body["message"].endswith((".", "undo: no label was edited."))


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"nul", b"\xff", b"[" * 100_000, b'{"a": NaN}', b"1" * 6000, b'"x"']
)
def test_what_is_no_object_of_parameters_is_refused(client: Client, content):
    kind, body, _ = client.frames("/api/describe", content)[-1]
    assert (kind, body["type"][:7]) == ("error", "Invalid")


def test_a_call_that_is_too_long_is_refused(client: Client):
    assert client.post("/api/describe", b" " * 5_000_001).status_code == 413


def test_two_tabs_do_not_disturb_each_other(server: Server):
    with client_of(server) as one, client_of(server) as two:
        one.call("open_set", {"name": "wine"})
        training = np.flatnonzero(one.call("describe")[2]["held_out"] == 0)
        one.call("relabel", {"ids": training[:2].tolist(), "label": 2})
        number = one.call("fit", {"method": "LDA"})[1]["map"]
        assert two.call("describe")[1]["name"] == "iris"
        assert two.call("describe")[1]["edits"] == 0
        assert two.call("loadings", {"map": number, "row": 0})[0] == "error"
        two.call("choose", {"seed": 5})
        assert one.call("describe")[1]["split"]["seed"] == 0
        assert one.call("loadings", {"map": number, "row": 0})[0] == "result"


def test_a_light_call_is_answered_while_a_long_fit_runs_and_hover_is_quick(server: Server):
    with client_of(server) as client:
        number = client.call("fit", {"method": "LSVA"})[1]["map"]
        with slow_fit(client):
            times = []
            for row in range(40):
                begun = time.perf_counter()
                assert client.call("loadings", {"map": number, "row": row})[0] == "result"
                times.append(time.perf_counter() - begun)
        assert sorted(times)[37] < 1.0  # 0.1 s on a machine that does nothing else


class slow_fit:  # noqa: N801  (used like a function)
    """Have a tab open a large table and fit it; end as a page does that is closed."""

    def __init__(self, client: Client) -> None:
        self.client = Client(client.url, client.token, "f" * 16, httpx.Client(timeout=60.0))

    def __enter__(self) -> slow_fit:
        rng = np.random.default_rng(0)
        rows = np.column_stack([rng.standard_normal((12_000, 20)).round(3), np.arange(12_000) % 9])
        lines = [",".join([*(f"{x:g}" for x in row[:-1]), f"k{row[-1]:.0f}"]) for row in rows]
        head = ",".join([*(f"c{k}" for k in range(20)), "kind"])
        assert self.client.upload("big.csv", "\n".join([head, *lines]).encode())[0] == "result"
        headers = {"X-Marginfold-Token": self.client.token, "X-Marginfold-Tab": "f" * 16}
        self.stream = self.client.http.stream(
            "POST",
            f"{self.client.url}/api/fit",
            content=b'{"method": "MarginMap"}',
            headers=headers,
        )
        self.answer = self.stream.__enter__()
        self.pieces = self.answer.iter_raw()  # kept: who drops it hangs up
        self.first = next(self.pieces)
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.__exit__(None, None, None)
        self.client.http.close()


def test_closing_the_stream_ends_its_fit_within_a_second(server: Server):
    with client_of(server) as client:
        with slow_fit(client) as fit:
            assert next(split(fit.first))[0] == "progress"
            assert len(server._streams._jobs) == 1
            begun = time.perf_counter()
        while server._streams._jobs or busy(server):
            assert time.perf_counter() < begun + 1.0
            time.sleep(0.01)


def busy(server: Server) -> bool:
    """Whether a worker is at work: one that is free is in the list of those."""
    with server.workers._lock:
        return any(
            worker.alive and worker not in server.workers._free for worker in server.workers._all
        )


# Hostile input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", hostile_tables.refused())
def test_a_file_that_is_no_table_is_refused_with_the_reason_and_the_old_table_stays(
    client: Client, server: Server, name
):
    kind, body, _ = client.upload(name, HOSTILE[name])
    assert kind == "error"
    assert body["type"] in ("InvalidInputError", "TooLargeError", "InvalidParameterError")
    assert tempfile.gettempdir() not in body["message"]
    assert client.call("describe")[1]["name"] == "iris"
    assert os.listdir(server._folder.name) == []


@pytest.mark.parametrize("name", hostile_tables.accepted())
def test_nasty_names_and_cells_are_data_and_nothing_else(client: Client, server: Server, name):
    kind, body, _ = client.upload(name, HOSTILE[name])
    assert kind == "result", body
    assert body["name"] == name[:200]
    assert body["target"] == "kind"
    assert os.listdir(server._folder.name) == []
    cells = client.call("rows", {"ids": [0, 1]})[1]
    first = HOSTILE[name].split(b"\n")[0].decode("utf-8", "replace")
    if name != "packed.csv.gz":
        assert cells["columns"] == first.split(",")
    assert {each["name"] for each in body["classes"]} >= {"b"} or name == "wide.csv"
    if name in ("names.csv", "cells.csv", "formula.csv"):
        assert client.call("fit", {"method": "LDA"})[0] == "result"


def test_a_file_above_200_megabytes_is_not_read(client: Client):
    def content():
        for _ in range(202):
            yield b"1,a\n" * 250_000

    headers = {"X-Marginfold-Token": client.token, "X-Marginfold-Tab": client.tab}
    try:
        answer = client.http.post(
            f"{client.url}/api/open?name=big.csv", content=content(), headers=headers
        )
        assert answer.status_code == 413
    except httpx.WriteError:
        pass  # the server has answered and hung up before all was sent
    assert client.call("describe")[1]["name"] == "iris"


VALUES = [
    *(None, True, -1, 0, 1, 3, 2**40, 1.5, -1e300, "", "LSVA", "x" * 50, "\0", "__class__", "'"),
    *([], [0], [0, 1], [1, 0], [0, 0, 0], [[]], ["a"], {}, {"C": 1.0}, {"method": "PCA"}),
    *({"n_components": 2}, {"__init__": 1}, [{"method": "LDA"}], "../../etc/passwd", 0.3, "csv"),
]
NAMES = ["map", "row", "axes", "ids", "label", "method", "params", "at", "kind", "size", "seed"]


def fuzzed(rng: random.Random) -> tuple[str, object]:
    """A call that is nearly right, or not at all."""
    name = rng.choice([*CALLS, "open", "handle", "__init__", "", "%00", "..%2f"])
    if rng.random() < 0.1 or name not in CALLS:
        return name, rng.choice(VALUES)
    known = list(CALLS[name].parameters)
    params = {each: rng.choice(VALUES) for each in known if rng.random() < 0.9}
    if rng.random() < 0.3:
        params[rng.choice(NAMES)] = rng.choice(VALUES)
    if "method" in known and rng.random() < 0.06:
        params |= {"method": rng.choice(list(METHODS)), "params": {}}
    return name, params


def memory_of(pid: int) -> float:
    """Resident bytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# The command -------------------------------------------------------------------------------------


class command:  # noqa: N801  (used like a function)
    """``marginfold explore`` as a process with a folder for temporary files of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "marginfold", "explore", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(folder)},
        )

    def __enter__(self) -> command:
        self.lines = [self.process.stdout.readline() for _ in range(3)]
        found = re.match(r"open (http://127\.0\.0\.1:(\d+))/#token=(\S+)", self.lines[0])
        assert found, (self.lines, self.process.stderr.read())
        http = httpx.Client(timeout=60.0, trust_env=False)
        self.client = Client(found[1], found[3], "0" * 16, http)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                self.client.http.get(found[1])
                break
            except httpx.ConnectError:
                time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.http.close()
        self.process.kill()
        self.process.wait()


def test_ctrl_c_ends_the_command_in_a_second_with_a_fit_running_and_leaves_no_file(tmp_path):
    with command(tmp_path, "wine", "--no-browser") as explorer:
        assert "ssh -L" in explorer.lines[1]
        assert explorer.client.call("fit", {"method": "PCA"})[0] == "result"
        workers = children(explorer.process.pid)
        with slow_fit(explorer.client):
            explorer.process.send_signal(signal.SIGINT)
            begun = time.process_time(), time.perf_counter()
            assert explorer.process.wait(10) == 0
            assert time.perf_counter() - begun[1] < PATIENCE
        assert os.listdir(tmp_path) == []
        end = time.monotonic() + 1
        while any(map(runs, workers)) and time.monotonic() < end:
            time.sleep(0.01)
        assert workers
        assert not any(map(runs, workers))


def test_1000_fuzzed_calls_leave_the_server_up_small_and_quick(tmp_path):
    rng = random.Random(0)
    kinds = {"result": 0, "error": 0}
    with command(tmp_path, "iris", "--no-browser") as explorer:
        client = explorer.client
        for _ in range(1000):
            name, params = fuzzed(rng)
            answer = client.post(f"/api/{name}", json.dumps(params).encode())
            if answer.status_code != 200:
                assert answer.status_code in (404, 405)
                continue
            kind, body, _ = list(split(answer.content))[-1]
            kinds[kind] += 1
            assert body.get("type") != "Unexpected", (name, params, body)
        begun = time.perf_counter()
        assert client.call("describe")[0] == "result"
        assert time.perf_counter() - begun < 1.0
        processes = (explorer.process.pid, *children(explorer.process.pid))
        assert sum(map(memory_of, processes)) < 1e9
    assert min(kinds.values()) > 20


PATIENCE = 4.0
"""Seconds to end, on a machine that may have ten other processes to serve."""


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    threads = Path(f"/proc/{pid}/task").iterdir()
    listed = [each for t in threads for each in (t / "children").read_text().split()]
    return [int(each) for each in listed]


def runs(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_port_that_is_taken_and_a_table_that_is_none_are_refused(server, tmp_path, capsys):
    from marginfold.cli import main

    assert main(["explore", "iris", "--no-browser", "--port", str(server.port)]) == 2
    assert "in use" in capsys.readouterr().err
    assert main(["explore", str(tmp_path / "nothing.csv"), "--no-browser"]) == 2
    assert "there is no file" in capsys.readouterr().err
    assert main(["explore", "iris", "--no-browser", "--target", "f99"]) == 2


def test_one_thread_serves_many_tabs_at_once(server: Server):
    found = []

    def look() -> None:
        with client_of(server) as client:
            found.append(client.call("fit", {"method": "LDA"})[2]["coordinates"])

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 6
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])
