"""Serialization of calls: function and item are pickled, and so is the result or the error.

Whatever cannot be pickled or unpickled is an error of that call and does not end a process.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from marginfold._version import __version__
from marginfold.errors import ClusterError, InvalidInputError
from marginfold.runtime.threads import one_thread

ATTEMPTS = 3
"""How often the process of a call may die (killed, out of memory) until the call is given up."""

REMOTE = "In the process of the call:"
"""Heads the traceback that an error brings along from another process, as a note."""


class Shared:
    """The function of all calls, read where it is first called.

    Parameters
    ----------
    content : bytes
        The function as `dumps` made it.
    version : str
        That of marginfold where the function comes from.
    """

    def __init__(self, content: bytes, version: str = __version__) -> None:
        self.content = content
        self.version = version

    @cached_property
    def function(self) -> Callable[[Any], Any]:
        """The function itself."""
        if self.version != __version__:
            raise ClusterError(
                f"A worker has marginfold {__version__}, but the calls come from marginfold "
                f"{self.version}; install the same version on all machines."
            )
        function: Callable[[Any], Any] = _unpickle(self.content)
        return function


def dumps(value: Any) -> bytes:
    """Pickle a value; functions and classes of a script or notebook are pickled by value.

    Raises
    ------
    InvalidInputError
        If the value cannot be pickled.
    """
    try:
        return _pickler()(value)
    except Exception as error:
        raise InvalidInputError(
            f"A {type(value).__name__} cannot be sent to another process "
            f"({type(error).__name__}: {error}). Leave out what cannot be pickled (open files, "
            "locks, connections), or compute in this process (n_jobs=1)."
        ) from error


def run_packed(shared: Shared, content: bytes) -> bytes:
    """Unpickle the item, call the function with it, and pickle what it returns or raises."""
    try:
        function, item = shared.function, _unpickle(content)
        with one_thread():
            result = function(item)
        return dumps((True, result))
    except Exception as error:
        return dumps((False, _sendable(error)))


def loads(content: bytes) -> Any:
    """Deserialize what `run_packed` returned: give the result, or raise the error."""
    done, value = pickle.loads(content)
    if not done:
        raise value
    return value


@cache
def _pickler() -> Callable[[Any], bytes]:
    """Return cloudpickle's function; joblib has cloudpickle inside or depends on it."""
    inside = "joblib.externals.cloudpickle"
    found = import_module("cloudpickle" if find_spec("cloudpickle") else inside)
    pickler: Callable[[Any], bytes] = found.dumps
    return pickler


def _unpickle(content: bytes) -> Any:
    try:
        return pickle.loads(content)
    except Exception as error:
        raise ClusterError(
            f"A call cannot be read in another process ({type(error).__name__}: {error}). Its "
            "functions and classes must come from modules that can be imported there: install "
            "the same packages everywhere."
        ) from error


def _sendable(error: Exception) -> Exception:
    """Return the error, or a description in its place if it cannot be pickled."""
    error.add_note(f"{REMOTE}\n{traceback.format_exc()}")
    try:
        pickle.loads(dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
