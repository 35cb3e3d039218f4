"""The page of reproduced tables is made of records alone."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import pytest

from marginfold.errors import InvalidParameterError
from marginfold.papers import ABSENT_FIGURES, STUDIES, absent_figures, lsva, study
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.studies import STUDY_SIZES

SCRIPT = Path(__file__).parents[2] / "scripts" / "write_reproduction.py"
ONE = replace(STUDY_SIZES["quick"], n_seeds=1)


@pytest.fixture
def script(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("write_reproduction", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    return module


def test_the_page_counts_printed_numbers_once_and_says_what_is_beside(
    script, tmp_path, monkeypatch
):
    """LLSVA far from print, its variant at the printed number, and 1-NN in both tables."""
    beside = printed("lsva", "I")["heart", "LLSVA"].value / 100
    errors = {"LLSVA": 0.5, "LLSVA margin": beside, "1-NN": 0.2444, "KPCA": 0.2963}
    with RecordStore(tmp_path / "run") as store:
        for task in [t for n in ("I", "II") for t in lsva.study_tasks(ONE, n)]:
            if task.dataset == "heart" and task.method in errors:
                result = Result("error", errors[task.method], {"head": "1-nn"}, 1)
                store.write(task, [result], seconds=0.0)
    monkeypatch.setattr(script.sys, "argv", ["", str(tmp_path / "run"), "quick", "1"])
    script.main()
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "Of 3 compared cells 2 agree, 0 are near and 1 differs." in page
    assert "| 000 (lsva), Table I | 2 | 1 | 0 | 1 | 1 |" in page
    assert "| 000 (lsva), Table II | 1 | 1 | 0 | 0 | 0 |" in page
    assert "over 1 partition" in page
    assert "## 001" not in page


def test_the_page_names_columns_on_fewer_partitions_than_planned(script, tmp_path, monkeypatch):
    with RecordStore(tmp_path / "run") as store:
        for task in lsva.study_tasks(STUDY_SIZES["quick"], "I"):
            if task.dataset == "heart" and (task.method, task.seed) in {
                *(("LDA", 0), ("LDA", 1), ("PCA", 1)),
            }:
                store.write(task, [Result("error", 0.2, {"head": "1-nn"}, 1)], seconds=0.0)
    monkeypatch.setattr(script.sys, "argv", ["", str(tmp_path / "run"), "quick"])
    script.main()
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "fewer than 2 partitions so far, at least: PCA 1." in page


def test_every_figure_of_a_paper_is_drawn_or_has_a_reason():
    counts = {"lsva": 2, "wsvda": 4, "gesvm": 0, "mrgepsvm": 6, "svmpca": 5}
    for name in STUDIES:
        drawn = {t.removeprefix("figure ") for t in _drawn(name)} - {*ABSENT_FIGURES.get(name, {})}
        absent = set(ABSENT_FIGURES.get(name, {}))
        assert drawn | absent == {str(n) for n in range(1, counts[name] + 1)}
        assert all(f"Figure {n}, " in absent_figures(name) for n in absent)


def _drawn(name):
    module = study(name)
    for number in range(1, 10):
        try:
            module.study_tasks(ONE, f"figure {number}")
        except InvalidParameterError:
            continue
        yield f"figure {number}"


def test_every_table_with_printed_numbers_says_what_was_fitted_and_what_is_honest():
    page = (SCRIPT.parents[1] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    parts = re.split(r"\n##+ ", page)[1:]
    tables = [part for part in parts if "| --- |" in part and "compared cells" in part]
    assert len(tables) == 10
    for table in tables:
        assert "\nProtocol: " in table
        assert "\nFitted to print: " in table
        assert "\nChosen honestly: " in table
