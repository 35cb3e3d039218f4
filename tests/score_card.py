"""The score card: what an attack tried and how it ended, summed over all test processes.

A test that is one case has a marker with its kind, ``@pytest.mark.attack("hostile tables")``. A
test of many cases says them one by one with the fixture `card`::

    def test_rows_of_every_type_are_read_or_refused(card):
        for name, rows in TYPES.items():
            card.add("types of rows", outcome_of(rows))

With ``--score-card`` the table of kinds by outcomes is printed after the last test. The outcome
``OPEN`` and the failed tests among those that hold a card are what is left to mend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

OPEN, HELD = "open", "held"
"""The outcome of a case that is neither right nor refused in clear words, and of a marked test that
passed."""

KIND = "kind of attack"
"""The name under which the kind of a marked test travels in its report."""

PROPERTY = "score card"
"""The name under which the cases of a test travel in its report, also between processes."""


class Card:
    """Counts cases by their kind and outcome.

    >>> card = Card()
    >>> card.add("types of rows", "refused")
    >>> card.counts
    Counter({('types of rows', 'refused'): 1})
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, kind: str, outcome: str) -> None:
        """Note one case that was tried."""
        self.counts[kind, outcome] += 1


@pytest.fixture
def card(request: pytest.FixtureRequest) -> Iterator[Card]:
    """Give the card of one test."""
    card = Card()
    yield card
    cases = [[kind, outcome, count] for (kind, outcome), count in card.counts.items()]
    request.node.user_properties.append((PROPERTY, cases))


class ScoreCard:
    """Gathers the cards of all tests and prints them as one."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.failed: set[str] = set()
        self.holders: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the cases of a test that has ended."""
        if report.failed:
            self.failed.add(report.nodeid)
        for name, said in report.user_properties:
            if report.when == "teardown" and name == PROPERTY:
                self.holders.add(report.nodeid)
                self.counts.update({(kind, outcome): count for kind, outcome, count in said})
            if report.when == "call" and name == KIND and not report.skipped:
                self.holders.add(report.nodeid)
                self.counts[said, HELD if report.passed else OPEN] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table, if any test held a card."""
        if self.holders:
            terminalreporter.section("score card")
            for line in table(self.counts, sorted(self.failed & self.holders)):
                terminalreporter.write_line(line)


def table(counts: Counter[tuple[str, str]], failed: list[str]) -> list[str]:
    """Return the lines of the score card: kinds by outcomes, their sums, and what is open."""
    kinds = sorted({kind for kind, _ in counts})
    outcomes = sorted({outcome for _, outcome in counts}, key=lambda name: (name == OPEN, name))
    rows = [["", *outcomes, "tried"]]
    rows += [[kind, *row(counts, [kind], outcomes)] for kind in kinds]
    rows += [["all", *row(counts, kinds, outcomes)]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])])
        for first, *others in rows
    ]
    left = sum(count for (_, outcome), count in counts.items() if outcome == OPEN)
    said = f"{sum(counts.values())} cases tried, {left} open, {len(failed)} tests failed"
    return [*lines, "", said, *(f"  failed: {name}" for name in failed)]


def row(counts: Counter[tuple[str, str]], kinds: list[str], outcomes: list[str]) -> list[str]:
    """Return the counts of some kinds together, by outcome and in all."""
    found = [sum(counts[kind, outcome] for kind in kinds) for outcome in outcomes]
    return [*map(str, found), str(sum(found))]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the reports of marked tests say their kind."""
    for item in items:
        for marker in item.iter_markers("attack"):
            item.user_properties.extend((KIND, kind) for kind in marker.args)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Know the option."""
    parser.addoption("--score-card", action="store_true", help="print cases by kind and outcome")


def pytest_configure(config: pytest.Config) -> None:
    """Gather where the summary is printed: not in the workers of pytest-xdist."""
    if config.option.score_card and not hasattr(config, "workerinput"):
        config.pluginmanager.register(ScoreCard(), "marginfold-score-card")
