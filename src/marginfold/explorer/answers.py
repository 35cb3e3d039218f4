"""What a call is answered by, and the frame that it becomes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from marginfold.errors import CancelledError, MarginfoldError
from marginfold.explorer.frames import frame

Answer: TypeAlias = "tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]"
"""The body and the arrays of an answer."""

LOG = logging.getLogger(__name__)


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
