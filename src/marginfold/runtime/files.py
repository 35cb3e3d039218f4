"""A file is written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from marginfold.errors import InvalidInputError

NO_LINKS = frozenset(
    {errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
)
"""What file systems without hard links answer: FAT, some network shares, Android."""


def check_writable(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the path with links resolved; refuse what exists, is special or has no folder."""
    wanted = Path(path)
    resolved = wanted.resolve()
    if not resolved.parent.is_dir():
        raise InvalidInputError(
            f"cannot write {wanted}: there is no folder {resolved.parent}; make it first."
        )
    if resolved.exists() and not resolved.is_file():
        raise InvalidInputError(f"cannot write {wanted}: it exists and is no regular file.")
    if resolved.exists() and not overwrite:
        raise _exists(wanted)
    return resolved


def write_file(path: str | os.PathLike[str], content: bytes, *, overwrite: bool = False) -> None:
    """Write a file in one step: readers see the old content or the new one, never a part.

    Unless it may be overwritten, a file that someone else makes in the meantime stays too (on file
    systems with hard links; on others it may be lost if it comes in the last moment).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginfold.runtime.files import write_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "a.txt", b"whole")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'whole'
    """
    target = check_writable(path, overwrite=overwrite)
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        _write_draft(draft, content)
        if overwrite:
            draft.replace(target)
        else:
            _put_new(draft, target)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = os.fspath(path), None
        raise


def _write_draft(draft: Path, content: bytes) -> None:
    with draft.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _put_new(draft: Path, target: Path) -> None:
    """Give the draft its name in one step that fails if the name is taken, as replace does not."""
    try:
        target.hardlink_to(draft)
    except FileExistsError:
        raise _exists(target) from None
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in NO_LINKS:
            raise
        draft.replace(check_writable(target))
    else:
        draft.unlink()


def _exists(path: Path) -> InvalidInputError:
    return InvalidInputError(
        f"{path} exists and is left as it is; choose another name, or overwrite it "
        "(overwrite=True, or --overwrite on the command line)."
    )
