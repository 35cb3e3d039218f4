"""The changes that `make mutants` makes."""

from __future__ import annotations

import ast
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from mutants import PACKAGE, ROOMS, ROOT, Mutant, main, mutants, replace, sample

TEXT = '''"""Words are left alone: 1 + 1."""

LIMIT = 3


def scale(a: int, b: float = 2.0) -> float:
    """Return 5 * a."""
    if not a < b and b != 0:
        raise ValueError("1 + 1")
    b += 1
    for a, b in zip((a,), (b,), strict=True):
        return -a if b > 0 else b / 3


def first_call() -> None:
    """Compile."""
    scale(7)
'''


def test_every_operator_number_and_statement_of_a_body_is_changed_once() -> None:
    found = sorted((m.before, m.after) for m in mutants(TEXT, "room/file.py"))
    assert found == sorted(
        [
            ("not a < b and b != 0", "(not a < b or b != 0)"),
            ("not a < b", "(a < b)"),
            ("a < b", "(a <= b)"),
            ("b != 0", "(b == 0)"),
            ("0", "(1)"),
            ("b += 1", "pass"),
            ("1", "(2)"),
            ("-a if b > 0 else b / 3", "(b / 3 if b > 0 else -a)"),
            ("-a", "(a)"),
            ("b > 0", "(b >= 0)"),
            ("0", "(1)"),
            ("b / 3", "(b * 3)"),
            ("3", "(4)"),
        ]
    )


def test_a_mutant_changes_its_place_and_nothing_else() -> None:
    for mutant in mutants(TEXT, "room/file.py"):
        changed = mutant.source(TEXT)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(TEXT))
        assert changed.replace(mutant.after, mutant.before, 1).count("\n") == TEXT.count("\n")


@pytest.mark.parametrize("room", ROOMS)
def test_mutants_of_the_core_are_python(room: str) -> None:
    for mutant in sample([room], 100, seed=0):
        text = (ROOT / PACKAGE / mutant.file).read_text()
        compile(mutant.source(text), mutant.file, "exec")


def test_the_same_seed_draws_the_same_mutants() -> None:
    first, again, other = (sample(list(ROOMS), 20, seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_functions_that_others_hold_get_the_code_of_the_mutant(tmp_path, monkeypatch) -> None:
    path = tmp_path / PACKAGE / "room" / "file.py"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    spec = spec_from_file_location("a_file_of_a_room", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    held = module.scale
    assert held(1) == -1
    monkeypatch.setattr("mutants.ROOT", tmp_path)
    replace(next(m for m in mutants(TEXT, "room/file.py") if m.after == "(a)"))
    assert held(1) == 1


def test_a_run_goes_on_where_it_was_stopped(tmp_path, capsys) -> None:
    (one,) = sample(["geometry"], 1, seed=0)
    records = tmp_path / "mutants.jsonl"
    records.write_text(_line(one, "survived"))
    main(["--count", "1", "--rooms", "geometry", "--out", str(records)])
    printed = capsys.readouterr().out
    assert f"{one.file}:{one.line}" in printed
    assert "0 of 1 noticed (0%)" in printed
    assert records.read_text() == _line(one, "survived")


def _line(mutant: Mutant, outcome: str) -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(mutant) | {"outcome": outcome}) + "\n"
