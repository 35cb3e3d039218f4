"""Files that a command writes: tried before the work, and never in the way of its result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from marginfold.cli.output import show_error
from marginfold.errors import InvalidInputError
from marginfold.runtime.files import check_folder, check_writable


def check_outputs(
    outputs: Mapping[str, Path | None],
    *,
    inputs: Iterable[Path] = (),
    overwrite: bool = False,
    run: Path | None = None,
) -> None:
    """Refuse, before anything is computed, files that could not be written or must not be.

    Parameters
    ----------
    outputs : mapping of str to path
        The files by their options; None is none.
    inputs : iterable of paths
        Files that the command reads; none of them is ever replaced.
    overwrite : bool
        Whether other existing files may be replaced.
    run : path or None
        Folder to keep records in.
    """
    written: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        for source in inputs:
            if _is_same(path, source):
                raise InvalidInputError(
                    f"{option} {path} is what the command reads, and that is never replaced; give "
                    "another name."
                )
        other = written.setdefault(os.path.realpath(path), option)
        if other != option:
            raise InvalidInputError(f"{other} and {option} are both {path}; give two names.")
        check_writable(path, overwrite=overwrite)
    if run is not None:
        check_folder(run)


def _is_same(path: Path, other: Path) -> bool:
    """Return whether two names are those of one file that is there."""
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


class Later:
    """A block whose error waits until the command has shown what it computed.

    Examples
    --------
    >>> from marginfold.cli.writing import Later
    >>> later = Later()
    >>> with later:
    ...     raise OSError("the disk is full")
    >>> later.failed
    True
    >>> later.end()
    Traceback (most recent call last):
    OSError: the disk is full
    """

    def __init__(self) -> None:
        self._errors: list[Exception] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._errors.append(error)
        return True

    @property
    def failed(self) -> bool:
        """Whether a block has failed."""
        return bool(self._errors)

    def end(self) -> None:
        """Raise what has waited; of several errors all but the last are shown."""
        from marginfold.cli.errors import explain

        if self._errors:
            *others, last = self._errors
            for error in others:
                show_error(explain(error)[1])
            raise last
