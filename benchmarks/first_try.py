"""What a user types first, on real tables: our defaults beside the usual choices.

``python benchmarks/first_try.py`` measures everything (about 40 minutes), ``--quick`` four small
tables, two splits each (under three minutes); ``--only vowel usps`` some tables and ``--methods
MarginMap UMAP`` the methods with one of these words in their names.

Five stratified splits, 70 to 30, columns standardised by the training rows, one thread.  Every
method has a process of its own on every table: CPU seconds of the fit after a fit of few rows, and
how far the peak memory (Linux) rose above that of the process with its rows.  Subspaces and maps
are judged by five neighbors and their seconds include the images of the training rows.  A fit is
stopped after `LIMIT` CPU seconds; a method that has used `ENOUGH` seconds on a table is not
repeated there, and what was stopped on 20,000 rows of mnist is not tried on 60,000.  mnist has the
10,000 test rows that belong to it, and with 60,000 rows one split.

vowel, vehicle, glass, ecoli, usps, image, splice, waveform, ionosphere and german are loaded by
``marginfold.data``, digits by scikit-learn; satellite.csv.gz, spam.csv.gz, letters.csv.gz (UCI's
letter recognition, 20,000 rows; columns, then ``label``) and mnist.npz (``X``, ``y``, 70,000 rows)
are read from the folder MARGINFOLD_DATA, or left out with a line that says so.  "26 classes" is
made by scikit-learn and does not count among the real ones.  So are the `FRESH` tables, in the same
form (UCI and ELENA; numbers as in the repository KEEL, rows with missing values left out): nothing
in the package was chosen by a look at them.  ``--only fresh`` means all of them.

The costs of `MarginMap` were chosen by a look at the tables up to 5000 rows.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from lines import Line
from sklearn.datasets import load_digits, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from marginfold import GESVC, KDA, LDA, LSVA, WSVDA, MarginMap, TwinSVC
from marginfold.data import load, read_labelled
from marginfold.data.catalogue import folder
from marginfold.errors import MarginfoldError
from marginfold.protocols.statistics import paired_interval

SPLITS = 5
LIMIT, QUICK_LIMIT = 120, 10
"""CPU seconds after which a fit is stopped."""

ENOUGH = 10
"""CPU seconds of a method on a table after which it is not repeated."""

SHORT, AGAIN = 0.1, 10
"""A fit of fewer CPU seconds is repeated so many times: the clock is coarse."""

WARM_ROWS = 20
"""Rows of each class in the fit that is not counted."""

SMALLEST = 0.1
"""CPU seconds of the rival's fit from which ratios of times are formed."""

FRESH = (
    "wdbc",
    "led7digit",
    "saheart",
    "mammographic",
    "movement_libras",
    "contraceptive",
    "segment",
    "phoneme",
    "texture",
    "optdigits",
    "penbased",
    "magic",
)
QUICK = ("glass", "ecoli", "ionosphere", "vowel")
MANY = "mnist 60,000"
CLASSES_26, LETTERS = "26 classes", "letters"


@dataclass(frozen=True)
class Table:
    """Rows with their splits."""

    name: str
    X: np.ndarray
    y: np.ndarray
    splits: tuple[tuple[np.ndarray, np.ndarray], ...]

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y))

    @property
    def n_train(self) -> int:
        return len(self.splits[0][0])

    def __str__(self) -> str:
        return f"{self.name} ({self.n_train:,} x {self.X.shape[1]}, {self.n_classes} classes)"


@dataclass(frozen=True)
class Method:
    """A method: how it is made for so many classes, and on which tables it takes part."""

    family: str
    make: Callable[[int], Any]
    ours: bool = False
    takes: Callable[[Table], bool] = lambda table: True
    limit: int = LIMIT


@dataclass
class Found:
    """What a method reached on the splits of a table."""

    accuracy: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    failure: str = ""

    @property
    def mean(self) -> float:
        return float(np.mean(self.accuracy)) if self.accuracy else np.nan

    @property
    def time(self) -> float:
        return float(np.median(self.seconds)) if self.seconds else np.inf

    def __str__(self) -> str:
        if not self.accuracy:
            return self.failure or "-"
        return f"{self.mean:.3f} ({self.time:.2g} s, {max(self.memory):.0f} MB)"


Results = dict[str, dict[str, Found]]
"""By table, by method."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four small tables (< 3 min)")
    parser.add_argument("--only", nargs="*", choices=["fresh", *TABLES], help="these tables")
    parser.add_argument("--methods", nargs="*", help="methods with one of these words")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    tables, found = [], {}
    for table, results in measured(chosen.quick, chosen.only, chosen.methods):
        for name, result in results.items():
            write(f"{table}: {name}: {result}")
        tables.append(table)
        found[table.name] = results
    for family in FAMILIES:
        write(markdown(family, tables, found))
    write("\n| figure | found | reached | needed |\n|---|---|---|---|")
    for line in figures(tables, found):
        write(f"| {line.work} | {line.ours} | {line.ratio} | {line.needed} |")


def lines(quick: bool) -> Iterator[Line]:
    """Return a line for each table and family, then one for each figure to reach."""
    tables, found = [], {}
    for table, results in measured(quick):
        tables.append(table)
        found[table.name] = results
        for family in FAMILIES:
            cells = [
                "; ".join(
                    f"{name} {results[name]}"
                    for name, method in METHODS.items()
                    if method.family == family and method.ours == ours and name in results
                )
                for ours in (True, False)
            ]
            yield Line(f"{table}, {family}", *(cell or "-" for cell in cells))
    yield from figures(tables, found)


def write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# ----------------------------------------------------------------------------------- measuring


def measured(
    quick: bool, only: Sequence[str] | None = None, words: Sequence[str] | None = None
) -> Iterator[tuple[Table, dict[str, Found]]]:
    """Yield each table with what the methods reach on it."""
    stopped: set[str] = set()
    for name, loader in TABLES.items():
        wanted = only or (QUICK if quick else TABLES)
        if name not in wanted and not ("fresh" in wanted and name in FRESH):
            continue
        try:
            table = loader(name, 2 if quick else SPLITS)
        except (OSError, MarginfoldError) as error:
            write(f"{name} is left out: {error}")
            continue
        results = {}
        for label, method in METHODS.items():
            if (words and not any(word in label for word in words)) or not method.takes(table):
                continue
            if name == MANY and label in stopped:
                results[label] = Found(failure="not tried: stopped on 20,000 rows")
                continue
            limit = min(method.limit, QUICK_LIMIT) if quick else method.limit
            results[label] = measure(method, table, limit)
            if name == "mnist 20,000" and not results[label].accuracy:
                stopped.add(label)
        yield table, results


def measure(method: Method, table: Table, limit: int) -> Found:
    """Fit on every split, in a process of its own."""
    context = multiprocessing.get_context("fork")  # the rows need not be sent
    results, sender = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(method, table, limit, sender))
    process.start()
    sender.close()
    found = Found()
    while True:
        try:
            result = results.recv()
        except EOFError:
            break
        if isinstance(result, str):
            found.failure = result
        else:
            for values, value in zip(
                (found.accuracy, found.seconds, found.memory), result, strict=True
            ):
                values.append(value)
    process.join()
    if process.exitcode == -signal.SIGXCPU:
        found.failure = f"more than {limit} s"
    elif process.exitcode:
        found.failure = found.failure or f"died with code {process.exitcode}"
    return found


def work(method: Method, table: Table, limit: int, sender: Any) -> None:
    """Send accuracy, seconds and memory of every split, or the name of an error."""
    with threadpool_limits(1):
        try:
            for result in fits(method, table, limit):
                sender.send(result)
        except Exception as error:  # one method must not end the table
            sender.send(f"{type(error).__name__}")
    sender.close()


def fits(method: Method, table: Table, limit: int) -> Iterator[tuple[float, float, float]]:
    warmed = False
    used = 0.0
    for train, test in table.splits:
        scaler = StandardScaler().fit(table.X[train])
        X, y = scaler.transform(table.X[train]), table.y[train]
        if not warmed:
            warm(method, X, y)
            warmed = True
        model = method.make(table.n_classes)
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what came before is not counted
        Path("/proc/self/clear_refs").write_text("5")
        bare, start = peak(), time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(start) + limit + 1, resource.RLIM_INFINITY))
        model.fit(X, y)
        seconds = time.process_time() - start
        memory = peak() - bare
        if seconds < SHORT:
            start = time.process_time()
            for _ in range(AGAIN):
                method.make(table.n_classes).fit(X, y)
            seconds = (time.process_time() - start) / AGAIN
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        accuracy = float(np.mean(model.predict(scaler.transform(table.X[test])) == table.y[test]))
        yield accuracy, seconds, memory
        used += seconds
        if used > ENOUGH:
            return


def warm(method: Method, X: np.ndarray, y: np.ndarray) -> None:
    """Fit few rows, so that no compilation is counted; UMAP goes another way on many."""
    rows = np.concatenate([np.flatnonzero(y == label)[:WARM_ROWS] for label in np.unique(y)])
    method.make(len(np.unique(y))).fit(X[rows], y[rows])
    if method is METHODS.get(UMAP_NAME) and len(X) > 4096:
        noise = np.random.default_rng(0).normal(size=(4200, 5))
        method.make(3).fit(noise, np.arange(4200) % 3)


def peak() -> float:
    """Return the peak memory of this process in MB (Linux)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024


# -------------------------------------------------------------------------------------- tables


def split(name: str, X: Any, y: Any, n_splits: int) -> Table:
    X, y = np.asarray(X, dtype=np.float64), np.unique(np.asarray(y), return_inverse=True)[1]
    splitter = StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=0)
    return Table(name, X, y, tuple(splitter.split(X, y)))


def of_catalogue(name: str, n_splits: int, entry: str = "") -> Table:
    data = load(entry or name)
    return split(name, data.X, data.y, n_splits)


def of_folder(name: str, n_splits: int) -> Table:
    return split(name, *read_labelled(present(f"{name}.csv.gz"), "label"), n_splits)


def mnist(name: str, n_splits: int, n_rows: int) -> Table:
    with np.load(present("mnist.npz")) as file:
        X, y = file["X"], file["y"].astype(np.intp)
    first, new = np.arange(60_000), np.arange(60_000, 70_000)
    if n_rows == len(first):
        return Table(name, X, y, ((first, new),))
    drawn = (
        train_test_split(first, train_size=n_rows, stratify=y[first], random_state=seed)[0]
        for seed in range(n_splits)
    )
    return Table(name, X, y, tuple((rows, new) for rows in drawn))


def digits(name: str, n_splits: int) -> Table:
    return split(name, *load_digits(return_X_y=True), n_splits)


def classes_26(name: str, n_splits: int) -> Table:
    X, y = make_classification(
        21_429,  # 70 % of which are 15,000
        16,
        n_informative=12,
        n_redundant=2,
        n_classes=26,
        n_clusters_per_class=3,
        class_sep=2.5,
        random_state=0,
    )
    return split(name, X, y, n_splits)


def present(file: str) -> Path:
    path = folder() / file
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; MARGINFOLD_DATA names the folder")
    return path


TABLES: dict[str, Callable[[str, int], Table]] = {
    "glass": of_catalogue,
    "ecoli": of_catalogue,
    "ionosphere": of_catalogue,
    "vehicle": of_catalogue,
    "vowel": of_catalogue,
    "german": of_catalogue,
    "digits": digits,
    "image": partial(of_catalogue, entry="ida_image"),
    "splice": of_catalogue,
    "spam": of_folder,
    "waveform": partial(of_catalogue, entry="ida_waveform"),
    "satellite": of_folder,
    "usps": of_catalogue,
    "mnist 5000": partial(mnist, n_rows=5000),
    CLASSES_26: classes_26,
    LETTERS: of_folder,
    **dict.fromkeys(FRESH, of_folder),
    "mnist 20,000": partial(mnist, n_rows=20_000),
    MANY: partial(mnist, n_rows=60_000),
}


# ------------------------------------------------------------------------------------- methods


def near(*steps: Any) -> Any:
    """Five neighbors behind a map."""
    return make_pipeline(*steps, KNeighborsClassifier(5))


def lda(dimensions: int, n_classes: int) -> Any:
    return LinearDiscriminantAnalysis(n_components=min(dimensions, n_classes - 1))


def umap() -> Any:
    import numba
    from umap import UMAP

    numba.set_num_threads(1)
    return UMAP(random_state=0)


def many_classes(table: Table) -> bool:
    return table.n_classes > 6


def many_rows(table: Table) -> bool:
    return table.name == MANY


UMAP_NAME = "UMAP, supervised"
FAMILIES = ("classifiers", "subspaces, 5-NN", "two dimensions, 5-NN")
CLASSIFIER, SUBSPACE, MAP = FAMILIES

METHODS = {
    "GESVC()": Method(CLASSIFIER, lambda c: GESVC(), True),
    "GESVC(kernel='rbf', C=10)": Method(
        CLASSIFIER, lambda c: GESVC(kernel="rbf", C=10), True, limit=300
    ),
    "the same, graph_weight=0": Method(
        CLASSIFIER,
        lambda c: GESVC(kernel="rbf", C=10, graph_weight=0),
        True,
        lambda table: table.n_train <= 20_000,
    ),
    "TwinSVC()": Method(CLASSIFIER, lambda c: TwinSVC(), True),
    "TwinSVC(kernel='rbf')": Method(CLASSIFIER, lambda c: TwinSVC(kernel="rbf"), True),
    "SVC(kernel='linear')": Method(CLASSIFIER, lambda c: SVC(kernel="linear")),
    "SVC(C=10)": Method(CLASSIFIER, lambda c: SVC(C=10)),
    "LinearSVC()": Method(CLASSIFIER, lambda c: LinearSVC()),
    "LDA": Method(CLASSIFIER, lambda c: LinearDiscriminantAnalysis()),
    "HistGradientBoosting": Method(
        CLASSIFIER, lambda c: HistGradientBoostingClassifier(random_state=0)
    ),
    "LSVA(5)": Method(SUBSPACE, lambda c: near(LSVA(5)), True),
    "WSVDA(5)": Method(SUBSPACE, lambda c: near(WSVDA(5)), True),
    "LDA(5)": Method(SUBSPACE, lambda c: near(LDA(min(5, c - 1)))),
    "LSVA(5, kernel='rbf')": Method(
        SUBSPACE, lambda c: near(LSVA(5, kernel="rbf")), True, many_classes
    ),
    "KDA(5)": Method(SUBSPACE, lambda c: near(KDA(min(5, c - 1))), takes=many_classes),
    "LSVA(10)": Method(SUBSPACE, lambda c: near(LSVA(10)), True, many_rows),
    "LSVA(10, graph='anchors')": Method(
        SUBSPACE, lambda c: near(LSVA(10, graph="anchors")), True, many_rows
    ),
    "LDA(10)": Method(SUBSPACE, lambda c: near(lda(10, c)), takes=many_rows),
    "MarginMap()": Method(MAP, lambda c: near(MarginMap()), True),
    "LDA(2)": Method(MAP, lambda c: near(lda(2, c))),
    "Nystroem(500) + LDA(2)": Method(
        MAP, lambda c: near(Nystroem(n_components=500, random_state=0), lda(2, c))
    ),
    "NCA(2)": Method(MAP, lambda c: near(NeighborhoodComponentsAnalysis(2, random_state=0))),
}
if find_spec("umap"):
    METHODS[UMAP_NAME] = Method(MAP, lambda c: near(umap()))


# ------------------------------------------------------------------------------------- figures


def markdown(family: str, tables: Sequence[Table], found: Results) -> str:
    """Return accuracy, seconds and memory, a row for each table."""
    names = [name for name, method in METHODS.items() if method.family == family]
    names = [name for name in names if any(name in found[table.name] for table in tables)]
    if not names:
        return ""
    rows = [["table", *names], ["---"] * (1 + len(names))]
    for table in tables:
        results = found[table.name]
        rows.append([str(table), *(str(results.get(name, Found())) for name in names)])
    return "\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows)


def figures(tables: Sequence[Table], found: Results) -> Iterator[Line]:
    """Return the figures that were set, with yes or no; one without fits is left out."""
    real = [table for table in tables if table.name != CLASSES_26]
    linear, rbf = "GESVC()", "GESVC(kernel='rbf', C=10)"
    for ours, theirs in ((linear, "SVC(kernel='linear')"), (rbf, "SVC(C=10)")):
        apart = differences(tables, found, ours, theirs)
        if apart:
            worst, mean = min(apart.values()), float(np.mean(list(apart.values())))
            yield figure(
                f"{ours} beside {theirs}, accuracy",
                f"worst {points(worst)} ({least(apart)}), mean {points(mean)}; "
                + intervals(tables, found, ours, theirs),
                worst >= -0.01 and mean >= -0.002,
                "worst >= -1, mean >= -0.2 points",
            )
    for ours, theirs in (("TwinSVC()", linear), ("TwinSVC(kernel='rbf')", rbf)):
        apart = differences(tables, found, ours, theirs)
        if apart:
            below = [f"{name} {points(value)}" for name, value in apart.items() if value < -0.02]
            yield figure(
                f"{ours} beside {theirs}, accuracy",
                ", ".join(below) or f"worst {points(min(apart.values()))}",
                len(below) <= 3,
                "more than 2 points below on at most three tables",
            )
    yield from kernel_times(tables, found)
    yield from map_figures(real, tables, found)
    yield from subspace_figures(tables, found)


def kernel_times(tables: Sequence[Table], found: Results) -> Iterator[Line]:
    ratios = {
        table.name: found[table.name]["the same, graph_weight=0"].time
        / found[table.name]["SVC(C=10)"].time
        for table in tables
        if {"the same, graph_weight=0", "SVC(C=10)"} <= found[table.name].keys()
        and SMALLEST <= found[table.name]["SVC(C=10)"].time < np.inf
    }
    if ratios:
        worst = max(ratios, key=lambda name: ratios[name])
        yield figure(
            "GESVC(kernel='rbf', C=10, graph_weight=0), time / SVC's, up to 20,000 rows",
            f"{ratios[worst]:.2g} ({worst})",
            ratios[worst] <= 1.5,
            "<= 1.5",
        )
    bars = ((CLASSES_26, 20.0, np.inf), (LETTERS, 20.0, np.inf), (MANY, 300.0, 4096.0))
    for name, seconds, megabytes in bars:
        result = found.get(name, {}).get("GESVC(kernel='rbf', C=10)")
        if result is not None:
            used = max(result.memory, default=np.inf)
            yield figure(
                f"GESVC(kernel='rbf', C=10) on {name}",
                str(result),
                result.time <= seconds and used <= megabytes,
                f"<= {seconds:.0f} s" + (", <= 4 GB" if megabytes < np.inf else ""),
            )


def map_figures(real: Sequence[Table], tables: Sequence[Table], found: Results) -> Iterator[Line]:
    rivals = [name for name, method in METHODS.items() if method.family == MAP and not method.ours]
    behind, slower = {}, {}
    for table in tables:
        results = found[table.name]
        apart = [pairs_of(results, "MarginMap()", name) for name in rivals]
        apart = [paired.mean() for paired in apart if len(paired)]
        if not apart:
            continue
        ours = results["MarginMap()"]
        if table in real:
            behind[table.name] = float(min(apart))
        umap_time = results.get(UMAP_NAME, Found()).time
        if np.isfinite(umap_time):
            slower[table.name] = ours.time / umap_time
    if behind:
        best = sum(value >= 0 for value in behind.values())
        worst = min(behind.values())
        yield figure(
            "MarginMap() in two dimensions, 5-NN accuracy",
            f"best on {best} of {len(behind)}, worst {points(worst)} ({least(behind)})",
            best >= 0.8 * len(behind) and worst >= -0.01,
            "best on 80 %, nowhere more than 1 point below the best",
        )
    if slower:
        most = max(slower, key=lambda name: slower[name])
        yield figure(
            "MarginMap(), time / UMAP's",
            f"{slower[most]:.2g} ({most})",
            slower[most] <= 0.2,
            "<= 1/5 everywhere",
        )
    small = [table.name for table in tables if table.n_train <= 1000]
    for names, bar in ((small, 1.0), ([CLASSES_26], 10.0), ([LETTERS], 10.0), ([MANY], 90.0)):
        times = {
            name: found[name]["MarginMap()"].time
            for name in names
            if "MarginMap()" in found.get(name, {})
        }
        if times:
            most = max(times, key=lambda name: times[name])
            yield figure(
                f"MarginMap(), seconds on {'up to 1000 rows' if names is small else most}",
                f"{times[most]:.2g} s ({most})",
                times[most] <= bar,
                f"<= {bar:.0f} s",
            )


def subspace_figures(tables: Sequence[Table], found: Results) -> Iterator[Line]:
    many = [table for table in tables if many_classes(table)]
    pairs = (("LSVA(5)", "LDA(5)"), ("WSVDA(5)", "LDA(5)"), ("LSVA(5, kernel='rbf')", "KDA(5)"))
    for ours, theirs in pairs:
        apart = differences(many, found, ours, theirs)
        if apart:
            mean, wins = float(np.mean(list(apart.values()))), sum(v > 0 for v in apart.values())
            yield figure(
                f"{ours} beside {theirs}, more than 6 classes, accuracy",
                f"mean {points(mean)}, above on {wins} of {len(apart)}; "
                + intervals(many, found, ours, theirs),
                mean >= 0 and wins > len(apart) / 2,
                "not below in the mean, above on most",
            )
    results = found.get(MANY, {})
    for name in ("LSVA(10)", "LSVA(10, graph='anchors')"):
        if name in results and "LDA(10)" in results:
            ours, theirs = results[name], results["LDA(10)"]
            fits_in = ours.time <= 60 and max(ours.memory, default=np.inf) <= 3072
            yield figure(
                f"{name} on {MANY}",
                f"{ours}; LDA {theirs}",
                fits_in and ours.mean >= theirs.mean,
                "<= 60 s, <= 3 GB, not below LDA",
            )


def differences(
    tables: Sequence[Table], found: Results, ours: str, theirs: str
) -> dict[str, float]:
    """Return the mean difference of accuracies on the splits that both have, by table."""
    apart = {}
    for table in tables:
        paired = pairs_of(found[table.name], ours, theirs)
        if len(paired):
            apart[table.name] = float(paired.mean())
    return apart


def pairs_of(results: dict[str, Found], ours: str, theirs: str) -> np.ndarray:
    if ours not in results or theirs not in results:
        return np.empty(0)
    both = zip(results[ours].accuracy, results[theirs].accuracy, strict=False)
    return np.array([a - b for a, b in both])


def intervals(tables: Sequence[Table], found: Results, ours: str, theirs: str) -> str:
    """Say on which tables the 95 % interval of the paired difference leaves out 0."""
    above, below = [], []
    for table in tables:
        paired = pairs_of(found[table.name], ours, theirs)
        if len(paired) < 2:
            continue
        train, test = table.splits[0]
        interval = paired_interval(paired, len(train), len(test))
        text = f"{table.name} ({points(interval.low)} to {points(interval.high)})"
        if interval.low > 0:
            above.append(text)
        elif interval.high < 0:
            below.append(text)
    return f"surely above on {', '.join(above) or 'none'}, below on {', '.join(below) or 'none'}"


def figure(what: str, found: str, reached: bool, needed: str) -> Line:
    return Line(what, found, "-", "yes" if reached else "no", needed)


def least(values: dict[str, float]) -> str:
    return min(values, key=lambda name: values[name])


def points(difference: float) -> str:
    return f"{100 * difference:+.1f}"


if __name__ == "__main__":
    main()
