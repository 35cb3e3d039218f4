from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from marginfold.errors import InvalidInputError
from marginfold.explorer.frames import frame, quantised, read_frame


def test_every_array_begins_at_a_multiple_of_8_of_the_whole_message():
    arrays = {"a": np.arange(3, dtype="u1"), "b": np.arange(5, dtype="f4"), "c": np.ones((2, 3))}
    arrays["c"] = arrays["c"].astype("u2")
    for n in range(9):
        content = frame("result", {"text": "x" * n}, arrays)
        (length,) = struct.unpack_from("<I", content)
        header = json.loads(content[4 : 4 + length])
        for known in header["arrays"]:
            begin = 4 + length + known["offset"]
            assert begin % 8 == 0
            values = arrays[known["name"]]
            part = content[begin : begin + values.nbytes]
            np.testing.assert_array_equal(np.frombuffer(part, "<" + known["dtype"]), values.ravel())


def test_a_frame_reads_back_as_it_was_written():
    body = {"n": 1, "text": "ä 日 <script>", "none": None, "list": [0.5, [True]]}
    kind, found, arrays = read_frame(frame("result", body, {"x": np.eye(2, dtype="f4")}))
    assert (kind, found) == ("result", body)
    np.testing.assert_array_equal(arrays["x"], np.eye(2))


def test_numbers_that_json_lacks_become_null_and_halves_of_letters_do_not_break_it():
    body = {"a": float("nan"), "b": np.float64("inf"), "c": [np.int64(3)], "d": "\ud800"}
    _, found, _ = read_frame(frame("error", body))
    assert found["a"] is None
    assert found["b"] is None
    assert found["c"] == [3]
    assert found["d"] == "\ud800"


def test_an_array_of_another_type_is_refused():
    with pytest.raises(InvalidInputError, match="f8"):
        frame("result", {}, {"x": np.ones(3)})


def test_a_quantised_path_is_within_half_a_step_of_the_values():
    values = np.random.default_rng(0).standard_normal((4, 50, 2)) * [[[1.0, 1e3]]]
    values[2, :, 1] = 7.5  # a constant coordinate stays what it is
    found = quantised(values)
    width = (found["high"] - found["low"]).astype(float)
    again = found["low"][:, None] + width[:, None] * found["steps"] / 65535.0
    bound = 0.5 * width / 65535 + 1e-6 * np.abs(values).max(axis=(0, 1))
    assert (np.abs(again - values) <= bound[:, None]).all()
    np.testing.assert_allclose(again[2, :, 1], 7.5)
