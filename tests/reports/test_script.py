"""The script of the page, run by Node if there is one: order against Python's own sort."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
from importlib.resources import files

import pytest

NODE = shutil.which("node")
SCRIPT = files("marginfold.reports").joinpath("page.js").read_text(encoding="utf-8")
DRIVER = """
const cases = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const number = (key) => key === "NaN" ? NaN : key === "Infinity" ? Infinity : key;
console.log(JSON.stringify({
  orders: cases.map(([keys, numeric, down]) => order(numeric ? keys.map(number) : keys, down)),
  states: ["none", "ascending", "descending"].map(next),
}));
"""

needs_node = pytest.mark.skipif(NODE is None, reason="node is not on PATH")


def run(cases):
    done = subprocess.run(
        [NODE, "-e", SCRIPT + DRIVER],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def expected(keys, down):
    """Present keys by Python's stable sort, missing ones behind them in their order."""
    present = [i for i, key in enumerate(keys) if key not in (None, "NaN")]
    missing = [i for i, key in enumerate(keys) if key in (None, "NaN")]
    value = {i: math.inf if keys[i] == "Infinity" else keys[i] for i in present}
    sign = -1 if down else 1
    return sorted(present, key=lambda i: sign * value[i]) + missing


@needs_node
def test_numbers_sort_as_in_python_with_missing_ones_last_both_ways():
    rng = random.Random(0)
    pool = [-2.5, -1, 0, 0.1, 0.2, 1e-9, 3, 10, 9, 1e12, "Infinity", None, "NaN"]
    cases = [[rng.choices(pool, k=rng.randrange(12)), True, down] for down in (0, 1) * 30]
    orders = run(cases)["orders"]
    assert orders == [expected(keys, down) for keys, _, down in cases]


@needs_node
def test_words_sort_by_the_numbers_in_them_and_equal_ones_stay():
    keys = ["a10", "b", "a9", "ä", None, "b", "a9"]
    up, down = run([[keys, False, False], [keys, False, True]])["orders"]
    assert [keys[i] for i in up] == ["a9", "a9", "a10", "ä", "b", "b", None] or [
        keys[i] for i in up
    ] == ["ä", "a9", "a9", "a10", "b", "b", None]
    assert up.index(2) < up.index(6)
    assert up.index(1) < up.index(5)
    assert down.index(2) < down.index(6)
    assert down[-1] == 4


@needs_node
def test_a_third_click_restores_the_order():
    assert run([])["states"] == ["ascending", "descending", "none"]


def test_the_script_cannot_end_its_own_element():
    assert "</" not in SCRIPT
    assert "<!--" not in SCRIPT
    assert "innerHTML" not in SCRIPT
    assert "eval" not in SCRIPT
