"""Frames: one binary message of a JSON header and little-endian arrays, for every transport.

::

    frame  = u4 length of the header | header | arrays
    header = {"kind": "result" | "progress" | "error", "body": {...}, "arrays": [Array]}
    Array  = {"name": str, "dtype": "f4", "shape": [...], "offset": bytes from the first array}

The header is UTF-8 JSON, padded by blanks so that the arrays begin at a multiple of 8, and so does
each of them: a page takes views of the message and copies nothing.  A call ends with one frame: its
answer, or its error (`answered`).
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from marginfold.errors import CancelledError, InvalidInputError, MarginfoldError

if TYPE_CHECKING:
    from marginfold.linalg.tall import Array

DTYPES = ("f4", "u1", "u2", "u4", "i4")
"""Types of arrays: what pages have views of."""

ALIGNMENT = 8
"""Bytes at whose multiples arrays begin."""

STEPS = 65535
"""Steps of a quantised path: the largest u2."""

Answer: TypeAlias = "tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]"
"""The body and the arrays of an answer."""

LOG = logging.getLogger(__name__)


def frame(kind: str, body: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> bytes:
    """Return a frame.

    Parameters
    ----------
    kind : {"result", "progress", "error"}
    body : mapping
        Plain values; a number that JSON does not have becomes null.
    arrays : mapping of str to array, optional
        Arrays of the types `DTYPES`, as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.explorer.frames import frame, read_frame
    >>> kind, body, arrays = read_frame(frame("result", {"n": 2}, {"x": np.ones(2, "f4")}))
    >>> kind, body, arrays["x"]
    ('result', {'n': 2}, array([1., 1.], dtype=float32))
    """
    listed, parts, offset = [], [], 0
    for name, values in (arrays or {}).items():
        dtype = values.dtype.str[1:]
        if dtype not in DTYPES:
            raise InvalidInputError(f"array {name!r} is {dtype}; frames hold {', '.join(DTYPES)}.")
        content = np.ascontiguousarray(values, dtype=f"<{dtype}").tobytes()
        listed.append({"name": name, "dtype": dtype, "shape": values.shape, "offset": offset})
        parts.append(content + bytes(-len(content) % ALIGNMENT))
        offset += len(parts[-1])
    text = json.dumps(
        {"kind": kind, "body": _plain(body), "arrays": listed}, ensure_ascii=False, allow_nan=False
    ).encode("utf-8", "backslashreplace")
    text += b" " * (-(4 + len(text)) % ALIGNMENT)
    return b"".join([struct.pack("<I", len(text)), text, *parts])


def read_frame(content: bytes) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """Return kind, body and arrays of a frame."""
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[4 : 4 + length])
    arrays = {}
    for known in header["arrays"]:
        count = int(np.prod(known["shape"], dtype=np.int64))
        offset = 4 + length + known["offset"]
        flat = np.frombuffer(content, f"<{known['dtype']}", count, offset)
        arrays[known["name"]] = flat.reshape(known["shape"])
    return header["kind"], header["body"], arrays


def quantised(values: Array) -> dict[str, Array]:
    """Return steps of u2 between the least and the largest value of each slice and column.

    ``value = low + (high - low) * steps / 65535`` differs from the value by half a step at most.

    Parameters
    ----------
    values : array of shape (n_slices, n_rows, n_columns)

    Returns
    -------
    dict
        ``steps`` u2 of the same shape; ``low`` and ``high`` f4 of shape (n_slices, n_columns).
    """
    low = values.min(axis=1).astype(np.float32)
    high = values.max(axis=1).astype(np.float32)
    width = np.where(high > low, high - low, 1.0).astype(np.float64)
    steps = np.clip(np.rint((values - low[:, None]) / width[:, None] * STEPS), 0, STEPS)
    return {"steps": steps.astype(np.uint16), "low": low, "high": high}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: no NumPy types, nothing infinite."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def answered(call: Callable[[], Answer]) -> bytes:
    """Return the last frame of a call: its result, or the error that it ended with."""
    try:
        return frame("result", *call())
    except CancelledError as error:
        kind, message = "Cancelled", str(error)
    except MarginfoldError as error:
        kind, message = type(error).__name__, str(error)
    except MemoryError:
        kind, message = "TooLargeError", "the memory ran out; take fewer rows or another method."
    except Exception as error:
        LOG.exception("a call failed")
        kind, message = "Unexpected", f"{type(error).__name__}: {error}"
    return frame("error", {"type": kind, "message": message})
