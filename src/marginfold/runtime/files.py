"""A file is written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

from marginfold.errors import InvalidInputError

NO_LINKS = frozenset(
    {errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
)
"""What file systems without hard links answer: FAT, some network shares, Android."""

DRAFT_LETTERS = 50
"""Letters of a file's name that its draft begins with: a letter has up to four bytes, and a name of
most file systems up to 255."""


def check_writable(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the path with links resolved; refuse what could not be written, by trying it.

    What exists, is special, has no folder, is a link to nothing, or lies where no file can be made
    is refused now, and not after hours of work.  Nothing is left behind.
    """
    target = _allowed(path, overwrite)
    _try(_draft_of(target), path)
    return target


def check_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a folder in which no file can be made, or that cannot be made itself."""
    wanted = Path(os.path.realpath(path))
    nearest = next(folder for folder in (wanted, *wanted.parents) if os.path.lexists(folder))
    if not nearest.is_dir():
        raise InvalidInputError(
            f"the folder {os.fspath(path)} cannot be created: {nearest} is not a folder; give "
            "another one."
        )
    _try(_draft_of(nearest / "marginfold"), path)


def _try(draft: Path, path: str | os.PathLike[str]) -> None:
    """Make a draft and remove it; refuse the path if that fails."""
    try:
        draft.touch(exist_ok=False)
    except OSError as error:
        raise InvalidInputError(_not_written(path, error)) from error
    draft.unlink(missing_ok=True)


def _allowed(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """Return the path with links resolved; refuse what must not be written."""
    wanted = Path(path)
    resolved = Path(os.path.realpath(wanted))
    try:
        taken = _is_there(resolved)
    except OSError as error:
        raise InvalidInputError(_not_written(path, error)) from error
    if wanted.is_symlink() and not taken:
        raise InvalidInputError(
            f"cannot write {wanted}: it is a link to {resolved}, which is not there; remove the "
            "link, or give another name."
        )
    if not resolved.parent.is_dir():
        raise InvalidInputError(
            f"cannot write {wanted}: there is no folder {resolved.parent}; create it first."
        )
    if taken and not resolved.is_file():
        raise InvalidInputError(f"cannot write {wanted}: it exists and is not a regular file.")
    if taken and not overwrite:
        raise _exists(wanted)
    return resolved


def _is_there(path: Path) -> bool:
    """Return whether there is something else than a link; a name that is too long is an error."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not stat.S_ISLNK(found.st_mode)


def _not_written(path: str | os.PathLike[str], error: OSError) -> str:
    return (
        f"cannot write {os.fspath(path)}: {error.strerror or error}; give another name or folder."
    )


def _draft_of(target: Path) -> Path:
    return target.with_name(f".{target.name[:DRAFT_LETTERS]}.{secrets.token_hex(6)}.part")


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
    target = _allowed(path, overwrite)
    draft = _draft_of(target)
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
        draft.replace(_allowed(target, overwrite=False))
    else:
        draft.unlink()


def _exists(path: Path) -> InvalidInputError:
    return InvalidInputError(
        f"{path} exists and is left as it is; choose another name, or overwrite it "
        "(overwrite=True, or --overwrite on the command line)."
    )
