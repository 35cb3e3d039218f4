from __future__ import annotations

from collections import Counter

import pytest
from score_card import HELD, KIND, OPEN, PROPERTY, ScoreCard, table


def ended(name: str, *cases: list, outcome: str = "passed", when: str = "teardown") -> object:
    return pytest.TestReport(
        nodeid=name,
        location=(name, 0, name),
        keywords={},
        outcome=outcome,
        longrepr=None,
        when=when,
        user_properties=[(PROPERTY, list(cases))],
    )


def test_cards_of_several_tests_are_summed_and_what_is_open_comes_last():
    score = ScoreCard()
    score.pytest_runtest_logreport(ended("one", ["rows", "right", 2], ["rows", OPEN, 1]))
    score.pytest_runtest_logreport(ended("two", ["rows", "right", 3], ["labels", "refused", 4]))
    lines = table(score.counts, [])
    assert [line.split() for line in lines[:4]] == [
        ["refused", "right", "open", "tried"],
        ["labels", "4", "0", "0", "4"],
        ["rows", "0", "5", "1", "6"],
        ["all", "4", "5", "1", "10"],
    ]
    assert lines[-1] == "10 cases tried, 1 open, 0 tests failed"


def test_a_marked_test_is_a_case_of_its_kind_once():
    score = ScoreCard()
    for outcome in ("passed", "failed", "skipped"):
        for when in ("setup", "call", "teardown"):
            report = ended(outcome, outcome=outcome if when == "call" else "passed", when=when)
            report.user_properties[:] = [(KIND, "tables")]
            score.pytest_runtest_logreport(report)
    assert score.counts == {("tables", HELD): 1, ("tables", OPEN): 1}
    assert score.failed & score.holders == {"failed"}


def test_a_failed_test_is_listed_only_if_it_holds_a_card():
    score = ScoreCard()
    for name in ("attack", "other"):
        score.pytest_runtest_logreport(ended(name, outcome="failed", when="call"))
    score.pytest_runtest_logreport(ended("attack", ["rows", "right", 1]))
    assert score.failed & score.holders == {"attack"}
    assert "  failed: attack" in table(Counter(), ["attack"])
