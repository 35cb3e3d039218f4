"""A file is written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from marginfold.errors import InvalidInputError


def check_writable(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the path as one that may be written; refuse what exists, is special or has no folder.

    Parameters
    ----------
    path : str or path
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Returns
    -------
    Path
        The path with links resolved.
    """
    wanted = Path(path)
    resolved = wanted.resolve()
    if not resolved.parent.is_dir():
        raise InvalidInputError(
            f"cannot write {wanted}: there is no folder {resolved.parent}; make it first."
        )
    if resolved.exists() and not resolved.is_file():
        raise InvalidInputError(f"cannot write {wanted}: it exists and is no regular file.")
    if resolved.exists() and not overwrite:
        raise InvalidInputError(
            f"{wanted} exists and is left as it is; choose another name, or overwrite it "
            "(overwrite=True, or --overwrite on the command line)."
        )
    return resolved


def write_file(path: str | os.PathLike[str], content: bytes, *, overwrite: bool = False) -> None:
    """Write a file in one step: readers see the old content or the new one, never a part.

    Parameters
    ----------
    path : str or path
    content : bytes
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginfold.files import write_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "a.txt", b"whole")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'whole'
    """
    target = check_writable(path, overwrite=overwrite)
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = os.fspath(path), None
        raise
