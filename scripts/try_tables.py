"""The main road, tried on tables of others: compare, keep the best, predict rows never seen.

    python scripts/try_tables.py [--only NAME ...] [--keep FOLDER]

Every table of `foreign_tables.py` is written to a CSV file as it is, without a stratified third of
its rows.  ``marginfold compare FILE --target COLUMN --save MODEL`` and ``marginfold predict MODEL
REST`` run as a user types them, with no other choice, and three things must hold:

1. **honest**: the kept model's error on the held-out third lies within the interval around the
   error that ``compare`` reported (`compared_interval`, 99 %);
2. **no worse than the usual**: it is not more than one point behind the better of logistic
   regression and SVC, both tuned, on the same rows, beyond what the rows on which they differ leave
   to chance (`behind`, 99 %, one-sided), in each table and in the mean of all;
3. **no fault**: every command ends with exit code 0 and without a traceback.

One answer is no fault: where ``compare`` finds that nothing can be predicted it keeps no model; the
largest class is then its prediction, and the first two points are asked of that.

The exit code is 1 if something does not hold, 2 if it holds but tables could not be had.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from foreign_tables import HOLDS_NOTHING, TABLES, ForeignTable, MissingTableError, read_table
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[1]
DOWNLOADS = ROOT / "build" / "try"
COMMAND = str(ROOT / ".venv" / "bin" / "marginfold")

HELD_OUT = 1 / 3
"""Share of the rows that compare never sees."""

TWO_SIDED, ONE_SIDED = 2.576, 2.326
"""Standard deviations of a 99 % interval, and of a 99 % bound."""

NOTHING = "no method is shown to be better than the largest class"
"""What ``compare`` says, with exit code 1, where there is nothing to keep."""

ALLOWED = 1.0
"""Points that the choice may be behind the better of logistic regression and SVC."""

PSEUDO_ROWS = 4
"""Rows, half of them wrong, that are added where a variance is estimated: no error is no proof."""

MANY_LEVELS = 0.5
"""A column of words with more levels than this share of the rows is an id: the usual leaves it
out."""

LONGEST = 600.0
"""Seconds that all tables may take together, on two cores that do nothing else."""


@dataclass(frozen=True)
class Tried:
    """What came out of one table; errors in percent."""

    table: ForeignTable
    method: str
    compared: float
    interval: tuple[float, float]
    held_out: float
    usual: float
    usual_name: str
    behind: float
    noise: float
    seconds: float

    @property
    def is_honest(self) -> bool:
        """Whether the held-out error is what the comparison said."""
        return self.interval[0] <= self.held_out <= self.interval[1]

    @property
    def is_good(self) -> bool:
        """Whether the choice is not behind, by more than is allowed and beyond chance."""
        return self.behind <= ALLOWED + ONE_SIDED * self.noise


class BrokenRoadError(Exception):
    """A command that failed, with what it said."""


def main(arguments: list[str]) -> int:
    """Try the tables and print the score card."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], help="names of tables")
    parser.add_argument("--keep", type=Path, help="folder for the files (else they are temporary)")
    options = parser.parse_args(arguments)
    begun, tried, broken, missing = time.perf_counter(), [], [], []
    with tempfile.TemporaryDirectory() as temporary:
        for table in TABLES:
            if options.only and table.name not in options.only:
                continue
            folder = (options.keep or Path(temporary)) / table.name
            folder.mkdir(parents=True, exist_ok=True)
            try:
                tried.append(try_table(table, folder))
                print(line_of(tried[-1]), flush=True)
            except MissingTableError as error:
                missing.append(f"{table}: {error}")
                print(f"{table!s:28} MISSING  {error}", flush=True)
            except BrokenRoadError as error:
                broken.append(f"{table}: {error}")
                print(f"{table!s:28} BROKEN   {error}", flush=True)
    print(card(tried, broken, missing, time.perf_counter() - begun))
    return 1 if failures(tried) or broken else 2 if missing else 0


# One table ---------------------------------------------------------------------------------------


def try_table(table: ForeignTable, folder: Path) -> Tried:
    """Go the whole road with one table."""
    begun = time.perf_counter()
    train, test = split(read_table(table, DOWNLOADS), table.target)
    train.to_csv(folder / "train.csv", index=False)
    test.drop(columns=table.target).to_csv(folder / "rest.csv", index=False)
    answer = compare(table.target, folder)
    if answer.keeps:
        run(["predict", "m.skops", "rest.csv", "--out", "predicted.csv"], folder)
        written = pd.read_csv(folder / "predicted.csv", dtype=str, keep_default_na=False)
        predicted = written.iloc[:, -1].to_numpy()
    else:
        predicted = train[table.target].mode()[0]
    seconds = time.perf_counter() - begun
    wrong = np.asarray(predicted != test[table.target].to_numpy())
    usual_name, usual_wrong = usual(train, test, table.target)
    error, spread, n_results, folds = answer.measured
    return Tried(
        table,
        answer.method if answer.keeps else "the largest class",
        error,
        compared_interval(error, spread, n_results, folds, len(train), len(test)),
        100 * float(wrong.mean()),
        100 * float(usual_wrong.mean()),
        usual_name,
        *behind(wrong, usual_wrong),
        seconds,
    )


@dataclass(frozen=True)
class Answer:
    """What ``compare`` said: the best method, its error in percent, its spread over folds, the
    number of results and of folds; whether it kept a model."""

    method: str
    measured: tuple[float, float, int, int]
    keeps: bool


def compare(target: str, folder: Path) -> Answer:
    """Compare and keep."""
    words = ["compare", "train.csv", "--target", target, "--save", "m.skops", "--json"]
    done = command(words, folder)
    keeps = not (done.returncode == 1 and NOTHING in done.stderr)
    if keeps:
        check(words, done)
    said = json.loads(done.stdout)
    best = next(row for row in said["methods"] if row["method"] == said["best"])
    measured = (best["error"], best["spread"], best["n_folds"], said["folds"])
    return Answer(said["best"], measured, keeps)


def split(table: pd.DataFrame, target: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Hold out a stratified third; rows without a class are left out, there is nothing to check."""
    known = table[~table[target].isin(["", HOLDS_NOTHING])]
    train, test = train_test_split(
        known, test_size=HELD_OUT, stratify=known[target], random_state=0
    )
    return train.reset_index(drop=True), test.reset_index(drop=True)


def run(words: list[str], folder: Path) -> None:
    """Run a command that must not fail in a folder."""
    check(words, command(words, folder))


def command(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line of the package as a user does."""
    return subprocess.run([COMMAND, *words], cwd=folder, capture_output=True, text=True)


def check(words: list[str], done: subprocess.CompletedProcess[str]) -> None:
    """Refuse an exit code that is not 0, and a traceback."""
    if done.returncode or "Traceback" in done.stderr:
        last = "".join(done.stderr.strip().splitlines()[-1:])
        typed = shlex.join(["marginfold", *words])
        raise BrokenRoadError(f"{typed} (exit code {done.returncode}): {last}")


# What must hold ----------------------------------------------------------------------------------


def compared_interval(
    error: float, spread: float, n_results: int, folds: int, n_train: int, n_test: int
) -> tuple[float, float]:
    """Return where the error on held-out rows lies in 99 of 100 cases, in percent.

    The variance is that of two estimates: of the held-out rows, binomial, and of the
    cross-validated error, by the spread over folds with the correction of Nadeau and Bengio (2003)
    for folds that share their training rows, but not less than binomial either.
    """
    p = (error / 100 * n_train + PSEUDO_ROWS / 2) / (n_train + PSEUDO_ROWS)
    of_folds = (spread / 100) ** 2 * (1 / n_results + 1 / (folds - 1))
    variance = p * (1 - p) / n_test + max(of_folds, p * (1 - p) / n_train)
    width = 100 * TWO_SIDED * sqrt(variance)
    return max(0.0, error - width), min(100.0, error + width)


def behind(wrong: np.ndarray, usual_wrong: np.ndarray) -> tuple[float, float]:
    """Return how many points the first is behind, and the standard deviation of that.

    Both answer the same rows: only those that one of them alone gets wrong count (McNemar).
    """
    n = len(wrong)
    worse, better = np.count_nonzero(wrong & ~usual_wrong), np.count_nonzero(~wrong & usual_wrong)
    share = (worse - better) / n
    differing = (worse + better + 1) / n  # one more: where both agree, chance is not excluded
    return 100 * share, 100 * sqrt(max(differing - share**2, 0.0) / n)


def usual(train: pd.DataFrame, test: pd.DataFrame, target: str) -> tuple[str, np.ndarray]:
    """Return the better of tuned logistic regression and SVC on the held-out rows, with errors."""
    rows, new = (features(frame, train, target) for frame in (train, test))
    columns = make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
            make_column_selector(dtype_include="number"),
        ),
        (
            OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    costs = np.logspace(-2, 3, 6)
    models = {
        "logistic regression": (LogisticRegression(max_iter=2000), {"C": costs}),
        "SVC": (SVC(), {"C": costs, "gamma": ["scale", 0.01, 0.1]}),
    }
    found = {}
    for name, (model, grid) in models.items():
        step = type(model).__name__.lower()
        search = GridSearchCV(
            make_pipeline(columns, model), {f"{step}__{key}": v for key, v in grid.items()}, cv=3
        )
        with threadpool_limits(1):  # more would only wait for each other
            predicted = search.fit(rows, train[target]).predict(new)
        found[name] = predicted != test[target].to_numpy()
    return min(found.items(), key=lambda item: item[1].mean())


def features(frame: pd.DataFrame, train: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return the columns as a data scientist would type them: numbers, words, no ids."""
    found = {}
    for name in train.columns.drop(target):
        cells = train[name].replace({"": None, HOLDS_NOTHING: None})
        numbers = pd.to_numeric(cells, errors="coerce")
        if numbers.notna().sum() == cells.notna().sum() > 0:
            found[name] = pd.to_numeric(frame[name], errors="coerce")
        elif 1 < cells.nunique() <= MANY_LEVELS * len(train):
            found[name] = frame[name].astype(object)
    return pd.DataFrame(found)


# The score card ----------------------------------------------------------------------------------


def line_of(tried: Tried) -> str:
    """Return what came out of one table, in one line."""
    low, high = tried.interval
    marks = ("" if tried.is_honest else " NOT HONEST") + ("" if tried.is_good else " BEHIND")
    return (
        f"{tried.table!s:28} {tried.method:20} compared {tried.compared:5.1f}  held out "
        f"{tried.held_out:5.1f} in [{low:4.1f}, {high:5.1f}]  {tried.usual_name} "
        f"{tried.usual:5.1f} ({tried.behind:+.1f} +- {tried.noise:.1f})  {tried.seconds:3.0f} s"
        f"{marks or ' ok'}"
    )


def failures(tried: list[Tried]) -> list[str]:
    """Return what does not hold."""
    found = [f"{each.table}: held-out error outside" for each in tried if not each.is_honest]
    found += [f"{each.table}: behind {each.usual_name}" for each in tried if not each.is_good]
    if tried and mean_behind(tried)[0] > ALLOWED + ONE_SIDED * mean_behind(tried)[1]:
        found.append("behind in the mean of all tables")
    return found


def mean_behind(tried: list[Tried]) -> tuple[float, float]:
    """Return the mean over tables of how far the choice is behind, and its standard deviation."""
    n = len(tried)
    return sum(t.behind for t in tried) / n, sqrt(sum(t.noise**2 for t in tried)) / n


def card(tried: list[Tried], broken: list[str], missing: list[str], seconds: float) -> str:
    """Return the whole result."""
    lines = ["", f"tables           {len(tried)} of {len(tried) + len(broken) + len(missing)}"]
    if tried:
        mean, noise = mean_behind(tried)
        lines += [
            f"honest           {sum(t.is_honest for t in tried)} of {len(tried)} (99 % intervals)",
            f"not behind       {sum(t.is_good for t in tried)} of {len(tried)} (1 point, 99 %)",
            f"mean difference  {mean:+.2f} points to the better of two (+- {noise:.2f})",
        ]
    lines.append(f"time             {seconds:.0f} s of {LONGEST:.0f}, {os.cpu_count()} cores")
    lines += [f"does not hold: {what}" for what in failures(tried)]
    lines += [f"broken: {what}" for what in broken]
    lines += [f"could not be had: {what}" for what in missing]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
