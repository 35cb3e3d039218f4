"""The table of a comparison: where it comes from, its rows, labels and groups, and its size."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from marginfold.data.reading import AS_FOUND, Reading
from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array
from marginfold.protocols.splits import folds

if TYPE_CHECKING:
    import pandas as pd

    from marginfold.data import Columns

MOST_COMPONENTS = 10
"""Components of an embedding, at most."""

INNER_FOLDS, FEW_ROWS = 3, 6
"""Folds of the rows it is given by which a procedure chooses; two where the largest class has fewer
rows than `FEW_ROWS`, since some of them are held out by the folds of a comparison."""

RARE, SAMPLE_SEED = 10, 0
"""Rows that a sample keeps of every class if there are so many, and the seed of its draw."""


@dataclass(frozen=True)
class Size:
    """The table that methods are made for.

    Attributes
    ----------
    n_rows, n_columns, n_classes : int
        Columns are those of numbers, after encoding.
    n_largest, n_smallest : int
        Rows of the largest and of the smallest class.
    seed : int
        Of the folds inside and of whatever is drawn.
    grouped : bool
        Whether folds keep groups of rows together: ``fit`` of what chooses is then given them.
    """

    n_rows: int
    n_columns: int
    n_classes: int
    n_largest: int = FEW_ROWS
    n_smallest: int = 1
    seed: int = 0
    grouped: bool = False

    @classmethod
    def of(cls, labels: Array, n_columns: int, seed: int = 0, *, grouped: bool = False) -> Self:
        """Return the size of a table by its labels and its number of encoded columns.

        Examples
        --------
        >>> import numpy as np
        >>> from marginfold.compare.table import Size
        >>> Size.of(np.array(["a", "a", "b"]), 4)  # doctest: +NORMALIZE_WHITESPACE
        Size(n_rows=3, n_columns=4, n_classes=2, n_largest=2, n_smallest=1, seed=0,
             grouped=False)
        """
        counts = np.unique(labels, return_counts=True)[1]
        largest, smallest = int(counts.max()), int(counts.min())
        return cls(len(labels), int(n_columns), len(counts), largest, smallest, seed, grouped)

    @property
    def n_components(self) -> int:
        """Components to ask for."""
        return min(self.n_columns, MOST_COMPONENTS)

    @property
    def folds(self) -> StratifiedKFold | StratifiedGroupKFold:
        """The folds inside the rows that a procedure is fitted to."""
        n_folds = INNER_FOLDS if self.n_largest >= FEW_ROWS else 2
        kind = StratifiedGroupKFold if self.grouped else StratifiedKFold
        return kind(n_folds, shuffle=True, random_state=self.seed)


@dataclass(frozen=True)
class Source:
    """Where the table comes from, the user's or a bundled set: another process can read it too.

    Attributes
    ----------
    path, target : str
    drop, categorical : tuple of str
    drop_missing, bundled : bool
    reading : Reading
        How the file is to be read.
    n_taken : int or None
        Rows of the sample that is compared on; None takes all.
    group : str or None
        The column whose values say which rows belong together; it is no feature.
    rows : LabelledTable or None
        The table itself, where no file is to be read.
    """

    path: str
    target: str
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop_missing: bool = False
    bundled: bool = False
    reading: Reading = AS_FOUND
    n_taken: int | None = None
    group: str | None = None
    rows: LabelledTable | None = field(default=None, compare=False, repr=False)

    def read(self) -> LabelledTable:
        """Read, check and split the table into features and labels; take a sample if asked for."""
        if self.rows is not None:
            return self.rows
        return _read(self, _state(Path(self.path)))

    def sent(self) -> Source:
        """Return the same with the rows in it, for machines that do not see the file."""
        return replace(self, rows=self.read())


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table that was read: features with their kinds, labels, and a hash of both.

    ``n_read`` is the number of rows in the file, of which these may be a sample; ``groups`` are
    numbers that are the same for rows which belong together.
    """

    name: str
    frame: pd.DataFrame
    labels: Array
    columns: Columns
    n_read: int
    groups: Array | None = None

    @property
    def n_groups(self) -> int:
        """How many groups of rows there are: without groups every row is one."""
        return len(self.labels) if self.groups is None else len(np.unique(self.groups))

    def groups_of(self, rows: Array) -> Array | None:
        """Return the groups of some rows, if there are groups."""
        return None if self.groups is None else self.groups[rows]

    def folds(self, n_folds: int, seed: int) -> list[tuple[Array, Array]]:
        """Return training and test rows of every fold; groups are kept together."""
        return folds(self.labels, n_folds, seed, groups=self.groups)

    @cached_property
    def size(self) -> Size:
        """What methods are made for: one procedure for all folds, and for all rows in the end."""
        every = np.arange(len(self.labels))
        columns = self.encoded(every, every[:1])[0].shape[1]
        return Size.of(self.labels, columns, grouped=self.groups is not None)

    @cached_property
    def classes(self) -> Array:
        """The classes in their order."""
        return np.unique(self.labels)

    @cached_property
    def hash(self) -> str:
        """Hash of the values that enter the comparison."""
        digest = hashlib.sha256()
        digest.update(repr((self.columns.numbers, self.columns.levels)).encode())
        digest.update(self.frame.to_csv(index=False).encode())
        digest.update("\n".join(map(str, self.labels.tolist())).encode())
        if self.groups is not None:
            digest.update(self.groups.tobytes())
        return digest.hexdigest()[:24]

    @property
    def row_numbers(self) -> Array:
        """The number of each row in the file; 1 is the first below the heading."""
        return np.asarray(self.frame.index) + 1

    def encoded(self, train: Array, test: Array) -> tuple[Array, Array]:
        """Return rows as numbers; medians, scales and levels are those of the training rows."""
        encode = self.encoder(train)
        return encode(self.frame.iloc[train]), encode(self.frame.iloc[test])

    def encoder(self, train: Array) -> Callable[[pd.DataFrame], Array]:
        """Return what makes numbers of rows, learnt from the training rows."""
        from marginfold.data.columns import encoder

        fitted = encoder(self.columns, "standard").fit(self.frame.iloc[train])
        return lambda frame: np.asarray(fitted.transform(frame), dtype=np.float64)


def _state(path: Path) -> tuple[Any, ...]:
    """Return what differs when another file is meant or the file has changed."""
    found = path.stat() if path.exists() else None
    return path.absolute(), found and (found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=2)
def _read(source: Source, state: tuple[Any, ...]) -> LabelledTable:
    from marginfold.data import inspect_columns, read_labelled
    from marginfold.data.columns import arrange

    reading = source.reading
    features, labels = read_labelled(
        *(source.path, source.target),
        drop=source.drop,
        drop_missing=source.drop_missing,
        reading=reading,
    )
    features, groups = parted(features, source)
    columns = inspect_columns(features, categorical=source.categorical, reading=reading)
    arranged = arrange(features, columns.numbers, columns.levels, columns.written)
    n = len(labels)
    if source.n_taken is not None:
        taken = sample_rows(labels, source.n_taken)
        arranged, labels = arranged.iloc[taken], labels[taken]
        groups = None if groups is None else groups[taken]
    return LabelledTable(Path(source.path).name, arranged, labels, columns, n, groups)


def parted(features: pd.DataFrame, source: Source) -> tuple[pd.DataFrame, Array | None]:
    """Return the features, and which rows belong together if a column says so."""
    from marginfold.data.target import split_groups

    column = source.group
    if column is None:
        return features, None
    if column == source.target:
        raise InvalidInputError(
            f"--group {quote(column)} is the target; name the column of persons or series."
        )
    if column in source.drop:
        raise InvalidInputError(
            f"--group {quote(column)} is left out with --drop; --group keeps it out of the "
            "features by itself."
        )
    return split_groups(features, column)


def sample_rows(labels: Array, n_rows: int) -> Array:
    """Return the numbers of rows drawn in the proportions of the classes, in their order.

    The same labels give the same rows.  Of a rare class `RARE` rows are kept, or all it has.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.compare.table import sample_rows
    >>> labels = np.repeat(["a", "b", "c"], [900, 95, 5])
    >>> np.unique(labels[sample_rows(labels, 100)], return_counts=True)[1].tolist()
    [90, 10, 5]
    """
    codes = np.unique(labels, return_inverse=True)[1]
    counts = np.bincount(codes)
    wanted = np.maximum(np.round(counts * n_rows / len(labels)).astype(int), RARE)
    rng = np.random.default_rng(SAMPLE_SEED)
    parts = [
        rng.permutation(np.flatnonzero(codes == code))[:count] for code, count in enumerate(wanted)
    ]
    return np.sort(np.concatenate(parts))
