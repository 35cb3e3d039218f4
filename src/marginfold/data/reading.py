"""How a table is to be read: what its user says beyond the name of the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from shlex import quote

from marginfold.errors import InvalidParameterError
from marginfold.validation.parameters import shown

SPELLINGS = {"tab": "\t", r"\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}
"""Words for delimiters that are hard to type."""

DECIMALS = (".", ",")
"""What may stand before the decimals of a number."""


@dataclass(frozen=True)
class Reading:
    """How a table is to be read; what is None is found by looking at the file.

    Parameters
    ----------
    sep : str or None, default=None
        The character between the fields of a CSV file, or one of the words "tab", "comma",
        "semicolon", "bar" and "space" (several spaces are one).
    decimal : {".", ","} or None, default=None
        What stands before decimals; the other one then groups thousands.
    encoding : str or None, default=None
        The encoding of a CSV file, such as "latin-1"; None is UTF-8, or UTF-16 where the file
        begins with its mark.
    header : bool, default=True
        Whether the first line has the names of the columns; they are c1, c2, ... otherwise.
    drop_ids : bool, default=False
        Whether columns of whole numbers or words that all differ are left out.
    dates : bool, default=False
        Whether columns of dates become numbers: days since the earliest.
    likely_decimal : {".", ","} or None, default=None
        What stands before decimals if neither ``decimal`` nor the file tells.

    Examples
    --------
    >>> from marginfold.data import Reading
    >>> Reading(sep="tab", decimal=",", header=False).options()
    ['--sep tab', '--decimal ,', '--no-header']
    >>> Reading(header=False).column("3")
    'c3'
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool = True
    drop_ids: bool = False
    dates: bool = False
    likely_decimal: str | None = None

    def __post_init__(self) -> None:
        if self.sep is not None:
            if len(self.delimiter or "") != 1 or self.delimiter in ('"', "\n", "\r"):
                raise InvalidParameterError(
                    f"--sep must be one character, or one of {', '.join(SPELLINGS)}; got "
                    f"{shown(self.sep)}."
                )
            if self.delimiter == self.decimal:
                raise InvalidParameterError(
                    f"--sep and --decimal are both {shown(self.decimal)}; they must differ."
                )
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise InvalidParameterError(
                f"--decimal must be . (a point) or , (a comma); got {shown(self.decimal)}."
            )
        if self.encoding is not None and not _is_encoding(self.encoding):
            raise InvalidParameterError(
                f"--encoding {shown(self.encoding)} is unknown; such as utf-8, latin-1, cp1252, "
                "utf-16 or cp932 is needed."
            )

    @property
    def delimiter(self) -> str | None:
        """The character that `sep` stands for."""
        return None if self.sep is None else SPELLINGS.get(self.sep, self.sep)

    def column(self, name: str) -> str:
        """Return the column that is meant: without a header a number will do."""
        return f"c{int(name)}" if not self.header and name.isdecimal() else name

    def columns(self, names: Iterable[str]) -> list[str]:
        """Return the columns that are meant."""
        return [self.column(name) for name in names]

    def like(self, earlier: Reading) -> Reading:
        """Return how another table is read: as the earlier one, where nothing else is said."""
        return replace(self, likely_decimal=earlier.decimal, header=self.header and earlier.header)

    def options(self) -> list[str]:
        """Return the options of the command line that say the same, quoted for a shell."""
        sep = "tab" if self.sep == "\t" else self.sep
        values = {"--sep": sep, "--decimal": self.decimal, "--encoding": self.encoding}
        flags = {
            "--no-header": not self.header,
            "--drop-ids": self.drop_ids,
            "--dates": self.dates,
        }
        words = [f"{option} {quote(value)}" for option, value in values.items() if value]
        return words + [option for option, given in flags.items() if given]


def _is_encoding(name: str) -> bool:
    try:
        b"a".decode(name, "ignore")
    except (LookupError, ValueError):
        return False
    return True


AS_FOUND = Reading()
"""Everything is found by looking at the file."""
