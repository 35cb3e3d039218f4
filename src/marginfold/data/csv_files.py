"""A CSV file as a data frame: its encoding, its delimiter and its decimal mark are found."""

from __future__ import annotations

import codecs
import csv
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from marginfold.data.reading import SPELLINGS, Reading
from marginfold.data.written import NumberStyle, is_written_number, number_style
from marginfold.errors import InvalidInputError
from marginfold.runtime.extras import require
from marginfold.runtime.memory import readable, require_memory

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = (",", ";", "\t", "|")
"""What may stand between the fields of a CSV file."""

SAMPLED_RECORDS = 50
"""Records from which the delimiter is found."""

MISSING = ("?",)
"""Words for a missing value beside the usual ones."""

USUAL_MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
"""Words that pandas takes for missing values, but for `NONE`."""

NONE = "None"
"""A missing value among numbers; elsewhere a word like any other, as "None" beside "Brick"."""

EXACT_PANDAS = (3, 1)
"""First version of pandas that reads numbers to the last bit and deprecates the option for it."""

MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
"""First bytes that tell the encoding, longer ones first; spreadsheets write UTF-16 as "Unicode
text"."""

LINE_END = re.compile(r"\r\n|\r|\n")
"""Between lines; \\r alone is that of old Macs."""

SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""First bytes of .xlsx and .ods files, which are zip archives, and of .xls files."""

PIECE = 1 << 20
"""Bytes that are decompressed, or decoded, at a time."""

CSV_MEMORY = 12
"""Bytes of memory that a table takes while it is read, for each byte of its text: measured 2.8 for
floats of 17 digits, 7.6 for short ones with decimal commas, 11.8 for words of one letter (resident
memory, pandas 3.1)."""

DECIMAL = "marginfold.decimal"
"""Attribute of a frame: what stands before decimals in its file, where that is known."""


BOTH = ".,"
"""Value of that attribute for a file with both marks, each in columns of its own."""


def read_csv(file: Path, content: bytes, reading: Reading) -> pd.DataFrame:
    """Return the frame of a CSV file's content; the file is only named in errors.

    Its ``attrs`` say what stands before decimals, if the file tells.
    """
    require("pandas")
    if content.startswith(SPREADSHEETS):
        raise InvalidInputError(
            f"{file} is a spreadsheet or an archive; save the table as CSV (UTF-8) and give that."
        )
    content, named = _without_sep_line(_unzipped(file, content))
    encoding = _encoding(content, reading.encoding)
    _check_text(file, content, encoding)
    text = _Text(file, content, encoding)
    delimiter = reading.delimiter or named or _delimiter(text)
    _check_records(text, delimiter, reading)
    frame = _parsed(text, delimiter, reading)
    frame, decimal = _settled(frame, text, delimiter, reading)
    if decimal is not None:
        frame.attrs[DECIMAL] = decimal
    return frame


def _settled(
    frame: pd.DataFrame, text: _Text, delimiter: str, reading: Reading
) -> tuple[pd.DataFrame, str | None]:
    """Return the frame with numbers as they are meant, and what stands before decimals in it."""
    if reading.decimal is not None:
        return frame, reading.decimal
    shows_commas = _shows(frame, ",")
    if not shows_commas and reading.likely_decimal != ",":
        return frame, "." if _has_fractions(frame) or _shows(frame, ".") else None
    again = _parsed(text, delimiter, replace(reading, decimal=","))
    shows_points = _shows(again, ".")
    if shows_commas:
        return again, BOTH if shows_points else ","
    return (frame, ".") if shows_points else (again, ",")


def require_table_memory(n_bytes: float, file: Path, unpacked: int = 0) -> None:
    """Refuse a table that takes more memory while it is read than there is.

    Of a compressed file ``unpacked`` bytes are known, and more may come.
    """
    so_far = f", of which {readable(unpacked)} are unpacked so far," if unpacked else ""
    require_memory(
        n_bytes,
        f"Reading {file}{so_far}",
        "take a part of the rows or columns of the table, or raise MARGINFOLD_MEMORY_LIMIT if it "
        "is set.",
    )


class _Text:
    """The content of a file, whose lines can be read again and again without a copy of it."""

    def __init__(self, file: Path, content: bytes, encoding: str) -> None:
        self.file, self.content, self.encoding = file, content, encoding

    def lines(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(self.content), encoding=self.encoding, newline="")

    def records(self, delimiter: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the last line of each record that is not blank, and its fields."""
        reader = csv.reader(self.lines(), delimiter=delimiter, skipinitialspace=True)
        try:
            yield from ((reader.line_num, record) for record in reader if record)
        except csv.Error as error:
            raise csv.Error(f"line {reader.line_num}: {first_line(error)}") from error


def _unzipped(file: Path, content: bytes) -> bytes:
    """Return the content of a gzip file; one that grows beyond the memory is not unpacked."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    unpacked = bytearray()
    try:
        while content:
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                piece = member.decompress(content, PIECE)
                content = member.unconsumed_tail
                if not piece and not content and not member.eof:
                    raise EOFError("the file ends too early")
                unpacked += piece
                require_table_memory(CSV_MEMORY * len(unpacked), file, len(unpacked))
            content = member.unused_data.lstrip(b"\0")
    except (EOFError, zlib.error) as error:
        raise InvalidInputError(
            f"{file} is a damaged gzip file ({first_line(error)}); copy it again."
        ) from error
    return bytes(unpacked)


def _without_sep_line(content: bytes) -> tuple[bytes, str | None]:
    """Return the content without a first line "sep=;", which spreadsheets write and obey."""
    match = re.match(rb'(?:\xef\xbb\xbf)?"?sep=(.)"?(?:\r\n|\r|\n)', content)
    return (content[match.end() :], match[1].decode("latin-1")) if match else (content, None)


def _encoding(content: bytes, given: str | None) -> str:
    marked = next((name for mark, name in MARKS.items() if content.startswith(mark)), None)
    if given is None:
        return marked or "utf-8"
    known = codecs.lookup(given).name
    return "utf-8-sig" if known == "utf-8" else known


def _check_text(file: Path, content: bytes, encoding: str) -> None:
    """Refuse what is no text, or not in this encoding, by line."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
    line, blank = 1, True
    try:
        for begin in range(0, len(content), PIECE):
            end = begin + PIECE
            text = decoder.decode(content[begin:end], final=end >= len(content))
            if "\0" in text:
                line += text.count("\n", 0, text.index("\0"))
                kind = _unmarked(content)
                raise InvalidInputError(
                    f"{file} is not a text file: line {line} has a zero byte. If it is "
                    f"{kind[:6].upper()} without a mark, say --encoding {kind}."
                )
            line += text.count("\n")
            blank = blank and not text.strip()
    except UnicodeError as error:
        raise InvalidInputError(_not_decoded(file, content, encoding, error)) from error
    if blank:
        raise InvalidInputError(
            f"{file} has nothing but blank lines; a header and rows are needed."
        )


def _unmarked(content: bytes) -> str:
    """Return which encoding with zero bytes the first letters look like."""
    zeros = [not byte for byte in content[:4]]
    width = "32" if sum(zeros) == 3 else "16"
    return f"utf-{width}-{'be' if zeros[0] else 'le'}"


def _not_decoded(file: Path, content: bytes, encoding: str, error: UnicodeError) -> str:
    try:
        content.decode(encoding)
    except UnicodeDecodeError as whole:
        before = content[: whole.start].decode(encoding, errors="replace")
        line = len(LINE_END.findall(before)) + 1
        what = f"byte 0x{content[whole.start]:02x} at position {whole.start} (line {line})"
    except UnicodeError:
        what = first_line(error)
    name = {"utf-8-sig": "UTF-8", "utf-8": "UTF-8"}.get(encoding, encoding)
    others = [other for other in ("latin-1", "cp1252") if other != name]
    return (
        f"{file} is not {name}: {what}. Say what it is, such as "
        f"{' or '.join(f'--encoding {other}' for other in others)}."
    )


def _delimiter(text: _Text) -> str:
    """Return the delimiter that parts all lines alike and leaves no other one inside of fields."""
    samples = {delimiter: _sample(text, delimiter) for delimiter in DELIMITERS}
    lengths = {delimiter: [len(r) for r in records] for delimiter, records in samples.items()}
    steady = [d for d, counts in lengths.items() if len(set(counts)) == 1 and counts[0] > 1]
    if not steady:
        return max(DELIMITERS, key=lambda d: lengths[d][0] if lengths[d] else 0)
    torn = {d: _torn_share(samples[d], [o for o in steady if o != d]) for d in steady}
    least = min(torn.values())
    best = [d for d in steady if torn[d] == least]
    if len(best) > 1:
        ways = " or ".join(f"{shown_delimiter(d)} ({lengths[d][0]} fields)" for d in best)
        raise InvalidInputError(
            f"the fields of {text.file} may be separated by {ways}; say which: "
            f"{' or '.join(f'--sep {shown_delimiter(d)}' for d in best)}."
        )
    return best[0]


def shown_delimiter(delimiter: str) -> str:
    """Return how a delimiter is given on the command line."""
    words = {character: word for word, character in SPELLINGS.items() if word.isalpha()}
    return words["\t"] if delimiter == "\t" else quote(delimiter)


def _sample(text: _Text, delimiter: str) -> list[list[str]]:
    try:
        return [record for _, record in islice(text.records(delimiter), SAMPLED_RECORDS)]
    except csv.Error:
        return []


def _torn_share(records: list[list[str]], others: list[str]) -> float:
    """Return the share of fields with another delimiter inside that is no decimal comma."""
    fields = [field for record in records for field in record]
    torn = [f for f in fields if any(o in f for o in others) and not is_written_number(f)]
    return len(torn) / len(fields)


def _check_records(text: _Text, delimiter: str, reading: Reading) -> None:
    """Refuse names given twice, and records with more or fewer fields than the first."""
    first: list[str] = []
    told = "the header" if reading.header else "the first line"
    try:
        for line, record in text.records(delimiter):
            if not first:
                first = record
                if reading.header:
                    refuse_duplicates(text.file, first)
            elif len(record) != len(first):
                fields = "1 field" if len(record) == 1 else f"{len(record)} fields"
                raise InvalidInputError(
                    f"{text.file}: line {line} has {fields}, {told} has {len(first)} (separated by "
                    f"{shown_delimiter(delimiter)}); correct or remove the line, or say what is "
                    "between the fields with --sep."
                )
    except csv.Error as error:
        raise InvalidInputError(
            f"{text.file} cannot be read as a table ({first_line(error)}); look there for a "
            "quotation mark that is not closed."
        ) from error


def refuse_duplicates(file: Path, names: list[str]) -> None:
    """Refuse a name that more than one column has."""
    counts = Counter(name.strip() for name in names if name.strip())
    twice = [repr(name) for name, count in counts.items() if count > 1]
    if twice:
        hint = no_header_hint(names)
        raise InvalidInputError(
            f"{file} names more than one column {', '.join(twice)}; every column needs a name of "
            f"its own.{hint}"
        )


def no_header_hint(names: list[str]) -> str:
    """Return advice for names of columns of which some are numbers; they may be values."""
    numbers = [name for name in names if is_written_number(name)]
    return " If the first line has values instead of names, say --no-header." if numbers else ""


def _parsed(text: _Text, delimiter: str, reading: Reading) -> pd.DataFrame:
    import pandas

    try:
        frame = pandas.read_csv(
            io.BytesIO(text.content),
            encoding=text.encoding,
            sep=delimiter,
            header=0 if reading.header else None,
            decimal=reading.decimal or ".",
            keep_default_na=False,
            na_values=[*USUAL_MISSING, *MISSING],
            skipinitialspace=True,
            index_col=False,
            low_memory=False,
            **_exact_numbers(pandas.__version__),
        )
    except (ValueError, pandas.errors.ParserError) as error:
        raise InvalidInputError(
            f"{text.file} cannot be read as a table ({first_line(error)})."
        ) from error
    if not reading.header:
        frame.columns = [f"c{j}" for j in range(1, frame.shape[1] + 1)]
    return _without_none_among_numbers(frame)


def _without_none_among_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table, with `NONE` missing in columns whose other words are numbers."""
    import pandas

    for name in frame.columns:
        if frame[name].dtype.kind in "iufb":
            continue
        is_none = (frame[name] == NONE).to_numpy(dtype=bool, na_value=False)
        others = frame[name][~is_none].dropna().unique().tolist()
        if is_none.any() and others and all(is_written_number(str(text)) for text in others):
            rest = frame[name].where(~is_none)
            try:
                frame[name] = pandas.to_numeric(rest)
            except ValueError:
                frame[name] = rest
    return frame


def _exact_numbers(pandas_version: str) -> dict[str, Any]:
    """Return the option that reads numbers to the last bit, which later versions always do."""
    major, minor = pandas_version.split(".")[:2]
    return {} if (int(major), int(minor)) >= EXACT_PANDAS else {"float_precision": "round_trip"}


def _has_fractions(frame: pd.DataFrame) -> bool:
    return any((frame[name] % 1 > 0).any() for name in frame if frame[name].dtype.kind == "f")


def _shows(frame: pd.DataFrame, mark: str) -> bool:
    """Return whether a column of text is numbers with this mark before decimals, and only then."""
    other = "," if mark == "." else "."
    return any(
        style.decimal == mark
        and any(replace(style, decimal=other).number(t) is None for t in texts)
        for style, texts in _styles(frame)
    )


def _styles(frame: pd.DataFrame) -> Iterator[tuple[NumberStyle, list[str]]]:
    """Yield how columns of text write numbers, and their distinct values."""
    for name in frame.columns:
        if frame[name].dtype.kind not in "iufb":
            texts = frame[name].dropna().astype(str).unique().tolist()
            style = number_style(texts)
            if style is not None:
                yield style, texts


def first_line(error: Exception) -> str:
    """Return what an error says, in one line without a full stop."""
    return " ".join(str(error).split()).rstrip(".")
