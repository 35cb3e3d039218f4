"""Tables that nobody here made: from statsmodels, and from R's packages as Debian ships them.

Nothing of it needs R or an administrator: packages of Debian are downloaded and unpacked into a
folder, unless R is installed and has them, and their tables are read by the package rdata.
"""

from __future__ import annotations

import lzma
import shutil
import subprocess
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

INSTALLED = [
    Path(prefix, "lib", "R", folder)
    for prefix in ("/usr", "/usr/local")
    for folder in ("library", "site-library")
]
"""Where R keeps its packages."""

RAW_LZMA = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
"""How R compresses a table of type Z."""

HOLDS_NOTHING = "NA"
"""How R writes a missing value."""


class MissingTableError(Exception):
    """A table that cannot be had here, and why."""


@dataclass(frozen=True)
class ForeignTable:
    """A table of another package.

    Attributes
    ----------
    package, name : str
        R's package, or "statsmodels", and what the table is called there.
    target : str
        The column with the classes.
    why : str
        What is special about it.
    debian : str
        The package of Debian that has it; "" for statsmodels.
    """

    package: str
    name: str
    target: str
    why: str
    debian: str = ""

    def __str__(self) -> str:
        return f"{self.package}/{self.name}"


TABLES = (
    ForeignTable("statsmodels", "anes96", "vote", "classes 0 and 1, codes as numbers"),
    ForeignTable("statsmodels", "modechoice", "choice", "numbers of travellers, four rows each"),
    ForeignTable("MASS", "biopsy", "class", "an id, missing values", "r-cran-mass"),
    ForeignTable("MASS", "survey", "W.Hnd", "one in 13 is positive, words", "r-cran-mass"),
    ForeignTable("MASS", "fgl", "type", "six classes, 214 rows", "r-cran-mass"),
    ForeignTable("MASS", "Cars93", "Type", "names, many levels, 93 rows", "r-cran-mass"),
    ForeignTable("mlbench", "Soybean", "Class", "19 classes, missing codes", "r-cran-mlbench"),
    ForeignTable("mlbench", "HouseVotes84", "Class", "y, n and missing only", "r-cran-mlbench"),
    ForeignTable("caret", "dhfr", "Y", "wide: 228 features, 325 rows", "r-cran-caret"),
    ForeignTable("carData", "TitanicSurvival", "survived", "names of rows", "r-cran-cardata"),
    ForeignTable(
        "palmerpenguins",
        "penguins_raw",
        "Species",
        "ids, dates, remarks, blanks in names",
        "r-cran-palmerpenguins",
    ),
    ForeignTable("modeldata", "attrition", "Attrition", "one in six leaves", "r-cran-modeldata"),
)
"""Two and many classes, rare ones, words, codes, ids, missing values, few rows and many columns.

seaborn's wheel carries no tables: it fetches them from the internet when it is asked for them."""


def read_table(table: ForeignTable, folder: Path) -> pd.DataFrame:
    """Return a table with its cells as they are written, downloaded into the folder if need be."""
    if table.package == "statsmodels":
        return _cells(_statsmodels_file(table.name))
    package = _r_package(table, folder)
    if (package / "extdata" / f"{table.name}.csv").is_file():
        return _cells(package / "extdata" / f"{table.name}.csv")
    return as_written(_read_object(package / "data", table.name))


def as_written(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the text that R's ``write.csv`` puts into the cells, names of rows included."""
    named = not all(str(name).isdigit() for name in frame.index)
    cells = frame.astype(object).apply(lambda column: column.map(_text))
    if named:
        cells.insert(0, "", [str(name) for name in frame.index])
    return cells.reset_index(drop=True)


def _text(value: Any) -> str:
    if pd.isna(value):
        return HOLDS_NOTHING
    if isinstance(value, bool):
        return str(value).upper()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _cells(file: Path) -> pd.DataFrame:
    """Return the cells of a text file with any delimiter and either quotes."""
    text = file.read_text(encoding="utf-8")
    first = text.partition("\n")[0]
    delimiter, quote = max(",;\t", key=first.count), max("\"'", key=first.count)
    return pd.read_csv(
        file, sep=delimiter, quotechar=quote, dtype=str, keep_default_na=False, encoding="utf-8"
    )


# statsmodels ------------------------------------------------------------------------------------


def _statsmodels_file(name: str) -> Path:
    found = find_spec("statsmodels")
    if found is None or found.origin is None:
        raise MissingTableError("statsmodels is not installed (make try installs it)")
    return Path(found.origin).parent / "datasets" / name / f"{name}.csv"


# R ----------------------------------------------------------------------------------------------


def _r_package(table: ForeignTable, folder: Path) -> Path:
    """Return the folder of an R package: of the R that is installed, or unpacked here."""
    unpacked = [folder / place.relative_to("/") for place in INSTALLED]
    found = _first_with(table.package, [*INSTALLED, *unpacked])
    if found is None:
        _unpack(table.debian, folder)
        found = _first_with(table.package, unpacked)
    if found is None:
        raise MissingTableError(f"{table.debian} of Debian does not hold {table.package}")
    return found


def _first_with(package: str, places: Iterable[Path]) -> Path | None:
    return next((place / package for place in places if (place / package / "data").is_dir()), None)


def _unpack(package: str, folder: Path) -> None:
    """Download a package of Debian and unpack it into the folder; no rights are needed."""
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise MissingTableError(f"there is no {program} here; install {package} or R's own")
    folder.mkdir(parents=True, exist_ok=True)
    got = subprocess.run(
        ["apt-get", "download", package], cwd=folder, capture_output=True, text=True
    )
    archives = sorted(folder.glob(f"{package}_*.deb"))
    if got.returncode or not archives:
        why = got.stderr.strip().splitlines()
        raise MissingTableError(f"apt-get cannot download {package}: {why[-1] if why else '?'}")
    subprocess.run(["dpkg-deb", "-x", archives[-1].name, "."], cwd=folder, check=True)


def _read_object(folder: Path, name: str) -> pd.DataFrame:
    """Return a table of the data folder of an R package, whichever way it is kept."""
    for suffix in (".rda", ".RData"):
        if (folder / f"{name}{suffix}").is_file():
            return _frame(_converted((folder / f"{name}{suffix}").read_bytes()), name)
    if not (folder / "Rdata.rdx").is_file():
        raise MissingTableError(f"{folder} holds no table {name}")
    places = _converted((folder / "Rdata.rdx").read_bytes())["variables"]
    if name not in places:
        raise MissingTableError(f"{folder} holds no table {name}")
    start, length = (int(number) for number in places[name])
    part = (folder / "Rdata.rdb").read_bytes()[start : start + length]
    return _frame(_converted(decompressed(part)), name)


def decompressed(part: bytes) -> bytes:
    """Return an object of an ``.rdb`` file: four bytes for its size, then a letter for the kind."""
    body = part[4:]
    if body[:1] == b"Z":
        return lzma.decompress(body[1:], lzma.FORMAT_RAW, filters=RAW_LZMA)
    return zlib.decompress(body)


def _converted(content: bytes) -> Any:
    try:
        import rdata
    except ImportError as error:
        raise MissingTableError("rdata is not installed (make try installs it)") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of attributes such as formulas, which tables do not need
        return rdata.conversion.convert(rdata.parser.parse_data(content))


def _frame(found: Any, name: str) -> pd.DataFrame:
    return found if isinstance(found, pd.DataFrame) else found[name]
