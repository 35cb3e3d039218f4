"""Would the tests notice a slip in the numerical core?  Change it in many small ways and see.

    python scripts/mutants.py [--count 300] [--seed 0] [--jobs 2] [--rooms svm geometry graphs]
                              [--out mutants.jsonl]

A mutant is the package with one operator, number, condition or statement changed.  It is noticed if
a test fails, or does not end.  The tests of its own room come first, then those that hold every
method against literal references and invariants.  Each finding is written at once: the same command
goes on where it was stopped.  What survives is printed with its line; it is worth a test, or a word
why it cannot matter.

Tuning constants are left alone: they decide how long an answer takes, and the tests count that for
a few of them only.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

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

CPU_SECONDS = 400
"""A run of tests that takes more has met a loop without end; a sound one takes a third of it."""

COMPILED = {"svm/kernels.py", "svm/sweeps.py"}
"""What numba compiles: what it kept of one mutant must not answer for the next."""

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
        for mutant, outcome in tried(todo, options.jobs):
            found[mutant] = outcome
            out.write(json.dumps(asdict(mutant) | {"outcome": outcome}) + "\n")
            out.flush()
            print(f"{len(found)}/{len(chosen)} {outcome}: {described(mutant)}", flush=True)
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


def tried(mutants: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant with its outcome, as they come."""
    with tempfile.TemporaryDirectory() as folder:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(copied(Path(folder) / str(number)))
        with ThreadPoolExecutor(jobs) as pool:
            futures = [(mutant, pool.submit(outcome_of, mutant, copies)) for mutant in mutants]
            for mutant, future in futures:
                yield mutant, future.result()


def copied(folder: Path) -> Path:
    """Copy what the tests need."""
    for name in ("src", "tests", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def outcome_of(mutant: Mutant, copies: Queue[Path]) -> str:
    """Return "noticed by its room", "noticed", "did not end" or "survived"."""
    copy = copies.get()
    path = copy / PACKAGE / mutant.file
    text = path.read_text()
    try:
        path.write_text(mutant.source(text))
        for tests, noticed in (
            (room_tests(mutant.file, copy), "noticed by its room"),
            (WIDE, "noticed"),
        ):
            code = run(tests, copy, fresh=mutant.file in COMPILED)
            if code < 0:
                return "did not end"
            if code:
                return noticed
        return "survived"
    finally:
        path.write_text(text)
        copies.put(copy)


def room_tests(file: str, copy: Path) -> list[str]:
    """Return the tests of a file's room, those that bear its name first."""
    room, name = file.removesuffix(".py").split("/")
    tests = sorted((copy / "tests" / room).glob("test_*.py"))
    tests.sort(key=lambda path: name not in path.stem)
    return [str(path.relative_to(copy)) for path in tests] + [f"{PACKAGE}/{file}"]


def run(tests: list[str] | tuple[str, ...], copy: Path, *, fresh: bool) -> int:
    """Run tests up to the first failure; return 0 if there was none, below 0 if time ran out."""
    with tempfile.TemporaryDirectory() as own:
        kept = own if fresh else str(copy / "numba")
        settings = {"PYTHONPATH": str(copy / "src"), "NUMBA_CACHE_DIR": kept}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        return subprocess.run(
            command,
            cwd=copy,
            env=os.environ | settings | {"PYTHONDONTWRITEBYTECODE": ""},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_limited,
        ).returncode


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


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
