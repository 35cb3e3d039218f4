"""Would the tests notice a slip in the numerical core?  Change it in many small ways and see.

    python scripts/mutants.py [--count 300] [--seed 0] [--jobs 2] [--rooms svm geometry graphs]
                              [--quick 1.5] [--out mutants.jsonl]

A mutant is the package with one operator, number, condition or statement changed.  It is noticed if
a test fails, or does not end.  The tests of its own room come first, then those that hold every
method against literal references and invariants.  Each finding is written at once: the same command
goes on where it was stopped.  What survives is printed with its line; it is worth a test, or a word
why it cannot matter.

The tests are collected once and run once as they are, which tells how long each takes and what it
calls.  A mutant is a process forked from there with the code of one function replaced; the tests
that call this function are run, quick ones first.  ``--quick 1.5`` leaves out tests of more than
1.5 CPU seconds: what survives may then still be noticed by a long one.

Tuning constants are left alone: they decide how long an answer takes, and the tests count that for
a few of them only.  So are ``strict`` of zip, which checks once more what holds, and ``first_call``
of what is compiled, whose numbers nobody sees.
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
    "tests/runtime/test_progress.py",
)
"""Tests of what the core is for, asked when those of the room noticed nothing."""

LONGER, LEAST_SECONDS = 20, 20
"""A test that takes so many times its seconds, and so many more, has met a loop without end."""

SURVIVED, BY_ROOM, NOTICED, BROKEN = 0, 1, 2, 3
OUTCOMES = {
    SURVIVED: "survived",
    BY_ROOM: "noticed by its room",
    NOTICED: "noticed",
    BROKEN: "could not be made",
}

COMPILED = {"svm/kernels.py", "svm/sweeps.py"}
"""What numba compiles, and calls unseen: tests in files that speak of what is compiled are run."""

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
        """Return the file with the change; what follows stays on its line."""
        data = text.encode()
        lines = "\n" * self.before.count("\n")
        inside = self.after.endswith(")")
        after = self.after[:-1] + lines + ")" if inside else self.after + lines
        return (data[: self.begin] + after.encode() + data[self.end :]).decode()


def main(arguments: list[str] | None = None) -> int:
    """Try the mutants, print what survives; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS))
    parser.add_argument("--quick", type=float, default=float("inf"))
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
            try_all(todo, options.jobs, options.rooms, options.quick, report)
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
        if not isinstance(function, ast.FunctionDef) or function.name == "first_call":
            continue
        for statement in function.body:
            for node in _inside(statement):
                yield from _changed(node)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what it holds; no nested functions, types, messages or documentation."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Raise | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
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
    mutants: list[Mutant],
    jobs: int,
    rooms: list[str],
    most_seconds: float,
    report: Callable[[Mutant, str], None],
) -> None:
    """Report each mutant with its outcome, as they come."""
    os.chdir(ROOT)
    tests = [f"tests/{room}" for room in rooms] + [f"{PACKAGE}/{room}" for room in rooms]
    arguments = ["-s", "-p", "no:cacheprovider", "-p", "no:terminal", *tests, *WIDE]
    code = pytest.main(arguments, plugins=[Trials(mutants, jobs, most_seconds, report)])
    if code:
        raise SystemExit(f"the tests could not be collected: pytest ended with {code!r}")


class Trials:
    """A plugin that runs the collected tests on one mutant after another."""

    def __init__(
        self,
        mutants: list[Mutant],
        jobs: int,
        most_seconds: float,
        report: Callable[[Mutant, str], None],
    ) -> None:
        self.mutants = mutants
        self.jobs = jobs
        self.most_seconds = most_seconds
        self.report = report

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests as they are, then as many as it takes for each mutant."""
        known = self._as_they_are(session)
        running: dict[int, Mutant] = {}
        for mutant in self.mutants:
            if len(running) == self.jobs:
                self._wait(running)
            tests = chosen_tests(session.items, mutant, known)
            running[forked(partial(_try, session, mutant, tests, known))] = mutant
        while running:
            self._wait(running)
        return True

    def _as_they_are(self, session: pytest.Session) -> dict[str, Known]:
        """Return what is known of each test that passes."""
        with tempfile.TemporaryDirectory() as folder:
            n, files = len(session.items), [Path(folder) / str(job) for job in range(self.jobs)]
            for job, file in enumerate(files):
                share = slice(job * n // self.jobs, (job + 1) * n // self.jobs)
                forked(partial(_learn, session, session.items[share], file))
            for _ in files:
                os.wait()
            rows = [row for file in files for row in json.loads(file.read_text())]
            known = {name: Known(seconds, frozenset(calls)) for name, seconds, calls in rows}
        for item in session.items:
            if item.nodeid not in known:
                print(f"left out, it fails without a change: {item.nodeid}", flush=True)
        return {name: test for name, test in known.items() if test.seconds <= self.most_seconds}

    def _wait(self, running: dict[int, Mutant]) -> None:
        process, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        self.report(running.pop(process), OUTCOMES.get(code, "did not end"))


@dataclass(frozen=True)
class Known:
    """The CPU seconds of a test, and the functions of the package that it calls."""

    seconds: float
    calls: frozenset[str]


def chosen_tests(
    items: list[pytest.Item], mutant: Mutant, known: dict[str, Known]
) -> list[tuple[pytest.Item, int]]:
    """Return the tests to run with what a failure of each means, those of the room first."""
    room, name = mutant.file.removesuffix(".py").split("/")
    own = (f"tests/{room}/", f"{PACKAGE}/{mutant.file}")
    touched = {_key(code) for code, _ in changed_codes(mutant)}
    found = []
    for item in items:
        ours, wide = item.nodeid.startswith(own), item.nodeid.startswith(WIDE)
        if item.nodeid not in known or not (ours or wide):
            continue
        test = known[item.nodeid]
        compiled = mutant.file in COMPILED and "compiled" in item.path.read_text()
        if compiled or touched & test.calls:
            order = (not ours, name not in item.path.stem, test.seconds)
            found.append((order, item, BY_ROOM if ours else NOTICED))
    return [(item, code) for _, item, code in sorted(found, key=lambda entry: entry[0])]


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


def _learn(session: pytest.Session, items: list[pytest.Item], file: Path) -> int:
    """Run tests as they are; write the seconds and the calls of those that pass."""
    rows = []
    for item, after in zip(items, [*items[1:], None], strict=True):
        calls: set[CodeType] = set()
        begin, failed = time.process_time(), session.testsfailed
        sys.setprofile(lambda frame, *_, add=calls.add: add(frame.f_code))
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        sys.setprofile(None)
        if session.testsfailed == failed:
            ours = [_key(code) for code in calls if str(ROOT / PACKAGE) in code.co_filename]
            rows.append((item.nodeid, time.process_time() - begin, ours))
    file.write_text(json.dumps(rows))
    return 0


def _key(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}:{code.co_qualname}"


def _try(
    session: pytest.Session,
    mutant: Mutant,
    tests: list[tuple[pytest.Item, int]],
    known: dict[str, Known],
) -> int:
    """Change the code, run the tests up to the first that fails; return a code of `OUTCOMES`."""
    replace(mutant)
    followers = [*(item for item, _ in tests[1:]), None]
    for (item, code), after in zip(tests, followers, strict=False):
        limit = LONGER * known[item.nodeid].seconds + LEAST_SECONDS
        signal.setitimer(signal.ITIMER_PROF, limit)  # its signal ends the process
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return code
    return SURVIVED


def replace(mutant: Mutant) -> None:
    """Give the functions that the mutant changes their new code, wherever they are held."""
    if mutant.file in COMPILED:
        without_kept_code(import_module(f"marginfold.{mutant.file[:-3].replace('/', '.')}"))
    new = {_key(before): after for before, after in changed_codes(mutant)}
    for function in [f for f in gc.get_objects() if isinstance(f, FunctionType)]:
        if _key(function.__code__) in new:
            code, held = new[_key(function.__code__)], function.__code__.co_freevars
            function.__code__ = code if code.co_freevars else code.replace(co_freevars=held)


def changed_codes(mutant: Mutant) -> list[tuple[CodeType, CodeType]]:
    """Return the code of the functions that the mutant changes, before and after."""
    path = ROOT / PACKAGE / mutant.file
    text = path.read_text()
    new = {_key(code): code for code in codes(mutant.source(text), path)}
    pairs = [(code, new.get(_key(code), code)) for code in codes(text, path)]
    return [(before, after) for before, after in pairs if before != after]


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
            value.overloads.clear()
            value._reset_overloads()


def summarise(outcomes: list[tuple[Mutant, str]]) -> None:
    """Print how many mutants were noticed, and those that were not."""
    unnoticed = ("survived", "could not be made")
    survivors = [mutant for mutant, outcome in outcomes if outcome in unnoticed]
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
