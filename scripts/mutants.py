"""Would the tests notice a slip in the numerical core?  Change it in many small ways and see.

    python scripts/mutants.py [--count 300] [--seed 0] [--jobs 2] [--rooms svm geometry graphs]
                              [--out mutants.jsonl]

A mutant is the package with one operator, number, condition or statement changed.  It is noticed if
a test fails, or does not end.  The tests of its own room come first, then those that hold every
method against literal references and invariants.  Each finding is written at once: the same command
goes on where it was stopped.  What survives is printed with its line; it is worth a test, or a word
why it cannot matter.

The tests are collected once and run once as they are, which tells how long each takes.  A mutant is
a process forked from there with the code of one function replaced; quick tests come first.

Tuning constants are left alone: they decide how long an answer takes, and the tests count that for
a few of them only.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/marginfold"

ROOMS = ("svm", "geometry", "graphs")

WIDE = (
    "tests/test_degeneracy.py",
    "tests/test_degeneracy_eigen.py",
    "tests/test_equivalences.py",
    "tests/test_equivalences_classifiers.py",
    "tests/test_equivalences_subspaces.py",
    "tests/test_invariants.py",
    "tests/test_invariants_eigen.py",
    "tests/test_literal.py",
    "tests/test_literal_embeddings.py",
    "tests/test_sample_weight.py",
    "tests/test_units_and_far_rows.py",
    "tests/estimators",
)
"""Tests of what the core is for, asked when those of the room noticed nothing."""

LONGER, LEAST_SECONDS = 20, 20
"""A test that takes so many times its seconds, and so many more, has met a loop without end."""

SURVIVED, BY_ROOM, NOTICED, BROKEN = 0, 1, 2, 3
OUTCOMES = {SURVIVED: "survived", BY_ROOM: "noticed by its room", NOTICED: "noticed"}

COMPILED = {"svm/kernels.py", "svm/sweeps.py"}
"""What numba compiles."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the characters from ``begin`` to ``end`` become ``after``."""

    file: str
    line: int
    begin: int
    end: int
    before: str
    after: str

    def source(self, text: str) -> str:
        """Return the file with the change."""
        data = text.encode()
        return (data[: self.begin] + self.after.encode() + data[self.end :]).decode()


def main(arguments: list[str] | None = None) -> int:
    """Try the mutants, print what survives; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS))
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    options = parser.parse_args(arguments)
    chosen = sample(options.rooms, options.count, options.seed)
    found = recorded(options.out)
    todo = [mutant for mutant in chosen if mutant not in found]
    with options.out.open("a") as out:

        def report(mutant: Mutant, outcome: str) -> None:
            found[mutant] = outcome
            out.write(json.dumps(asdict(mutant) | {"outcome": outcome}) + "\n")
            out.flush()
            print(f"{len(found)}/{len(chosen)} {outcome}: {described(mutant)}", flush=True)

        if todo:
            try_all(todo, options.jobs, options.rooms, report)
    summarise([(mutant, found[mutant]) for mutant in chosen])
    return 0


def sample(rooms: list[str], count: int, seed: int) -> list[Mutant]:
    """Return mutants drawn at random, each place of a change as likely as another."""
    paths = [p for room in rooms for p in sorted((ROOT / PACKAGE / room).glob("*.py"))]
    every = [
        m for path in paths for m in mutants(path.read_text(), f"{path.parent.name}/{path.name}")
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def mutants(text: str, file: str) -> Iterator[Mutant]:
    """Yield all mutants of one file."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    data = text.encode()
    for node, after in changes(ast.parse(text)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        yield Mutant(file, node.lineno, begin, end, data[begin:end].decode(), after)


def changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield every node that can be changed with what it becomes; functions' bodies only."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for node in _inside(statement):
                yield from _changed(node)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what it holds; no nested functions, types, messages or documentation."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Raise | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield from _inside(node.value)
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _inside(child)


def _changed(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in COMPARISONS:
            other = ast.Compare(left, [COMPARISONS[type(operator)]()], [right])
            yield node, f"({ast.unparse(other)})"
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            other_sum = ast.BinOp(left, OPERATORS[type(operator)](), right)
            yield node, f"({ast.unparse(other_sum)})"
        case ast.BoolOp(operator, values):
            swapped = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(swapped, values))})"
        case ast.UnaryOp(ast.Not() | ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(bool(value)):
            yield node, str(not value)
        case ast.Constant(int(value) | float(value)):
            yield node, f"({value + 1})" if isinstance(value, int) else f"({2 * value or 1.0})"
        case ast.IfExp(test, body, orelse):
            yield node, f"({ast.unparse(ast.IfExp(test, orelse, body))})"
        case ast.AugAssign() | ast.Expr(ast.Call()):
            yield node, "pass"


def recorded(path: Path) -> dict[Mutant, str]:
    """Return what an earlier run found."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        Mutant(**{k: v for k, v in row.items() if k != "outcome"}): row["outcome"] for row in rows
    }


def try_all(
    mutants: list[Mutant], jobs: int, rooms: list[str], report: Callable[[Mutant, str], None]
) -> None:
    """Report each mutant with its outcome, as they come."""
    os.chdir(ROOT)
    tests = [f"tests/{room}" for room in rooms] + [f"{PACKAGE}/{room}" for room in rooms]
    arguments = ["-s", "-p", "no:cacheprovider", "-p", "no:terminal", *tests, *WIDE]
    code = pytest.main(arguments, plugins=[Trials(mutants, jobs, report)])
    if code:
        raise SystemExit(f"the tests could not be collected: pytest ended with {code!r}")


class Trials:
    """A plugin that runs the collected tests on one mutant after another."""

    def __init__(self, mutants: list[Mutant], jobs: int, report: Callable[[Mutant, str], None]):
        self.mutants = mutants
        self.jobs = jobs
        self.report = report

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests as they are, then as many as it takes for each mutant."""
        seconds = self._as_they_are(session)
        running: dict[int, Mutant] = {}
        for mutant in self.mutants:
            if len(running) == self.jobs:
                self._wait(running)
            parts = ordered(session.items, mutant.file, seconds)
            running[forked(partial(_try, session, mutant, parts, seconds))] = mutant
        while running:
            self._wait(running)
        return True

    def _as_they_are(self, session: pytest.Session) -> dict[str, float]:
        """Return the seconds of each test; those that fail, or are not run, have none."""
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / str(job) for job in range(self.jobs)]
            for job, file in enumerate(files):
                forked(partial(_time, session, session.items[job :: self.jobs], file))
            for _ in files:
                os.wait()
            return {name: s for file in files for name, s in json.loads(file.read_text()).items()}

    def _wait(self, running: dict[int, Mutant]) -> None:
        process, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        self.report(running.pop(process), OUTCOMES.get(code, "did not end"))


def ordered(
    items: list[pytest.Item], file: str, seconds: dict[str, float]
) -> list[list[pytest.Item]]:
    """Return the tests of a file's room, those that bear its name first, and the wide ones."""
    room, name = file.removesuffix(".py").split("/")
    own = (f"tests/{room}/", f"{PACKAGE}/{file}")
    parts: list[list[pytest.Item]] = [[], []]
    for item in items:
        if item.nodeid in seconds:
            wide = not item.nodeid.startswith(own)
            if wide and not item.nodeid.startswith(WIDE):
                continue
            parts[wide].append(item)
    for part in parts:
        part.sort(key=lambda item: (name not in item.path.stem, seconds[item.nodeid]))
    return parts


def forked(work: Callable[[], int]) -> int:
    """Do the work in a child without a voice; return the child's number."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code = BROKEN
    try:
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        code = work()
    finally:
        os._exit(code)


def _time(session: pytest.Session, items: list[pytest.Item], file: Path) -> int:
    seconds = {}
    for item, after in zip(items, [*items[1:], None], strict=True):
        begin, failed = time.process_time(), session.testsfailed
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed == failed:
            seconds[item.nodeid] = time.process_time() - begin
    file.write_text(json.dumps(seconds))
    return 0


def _try(
    session: pytest.Session,
    mutant: Mutant,
    parts: list[list[pytest.Item]],
    seconds: dict[str, float],
) -> int:
    """Change the code, run the tests up to the first that fails; return a code of `OUTCOMES`."""
    replace(mutant)
    every = [
        (item, code) for part, code in zip(parts, (BY_ROOM, NOTICED), strict=True) for item in part
    ]
    for number, (item, code) in enumerate(every):
        after = every[number + 1][0] if number + 1 < len(every) else None
        limit = LONGER * seconds[item.nodeid] + LEAST_SECONDS
        signal.setitimer(signal.ITIMER_PROF, limit)  # its signal ends the process
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return code
    return SURVIVED


def replace(mutant: Mutant) -> None:
    """Give every function of the mutant's file the code that it has in the mutant."""
    path = ROOT / PACKAGE / mutant.file
    before, after = (
        {(code.co_qualname, code.co_firstlineno): code for code in codes(text, path)}
        for text in (path.read_text(), mutant.source(path.read_text()))
    )
    if mutant.file in COMPILED:
        without_kept_code(import_module(f"marginfold.{mutant.file[:-3].replace('/', '.')}"))
    for function in [f for f in gc.get_objects() if isinstance(f, FunctionType)]:
        key = (function.__code__.co_qualname, function.__code__.co_firstlineno)
        if function.__code__.co_filename == str(path) and before.get(key) != after.get(key):
            function.__code__ = after[key]


def codes(text: str, path: Path) -> Iterator[CodeType]:
    """Yield the code of every function of a file, nested ones too."""
    found = [compile(text, str(path), "exec")]
    while found:
        code = found.pop()
        yield code
        found += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def without_kept_code(module: ModuleType) -> None:
    """Let numba compile a module's functions anew: what it kept is of the unchanged file."""
    from numba.core.caching import NullCache

    for value in vars(module).values():
        if hasattr(value, "py_func"):
            value._cache = NullCache()


def summarise(outcomes: list[tuple[Mutant, str]]) -> None:
    """Print how many mutants were noticed, and those that were not."""
    survivors = [mutant for mutant, outcome in outcomes if outcome == "survived"]
    for mutant in sorted(survivors, key=lambda m: (m.file, m.line)):
        print(described(mutant))
    for outcome, count in Counter(outcome for _, outcome in outcomes).most_common():
        print(f"{outcome}: {count}")
    share = 1 - len(survivors) / max(len(outcomes), 1)
    print(f"{len(outcomes) - len(survivors)} of {len(outcomes)} noticed ({share:.0%})")


def described(mutant: Mutant) -> str:
    before = " ".join(mutant.before.split())
    return f"{mutant.file}:{mutant.line}: {before}  ->  {mutant.after}"


if __name__ == "__main__":
    sys.exit(main())
