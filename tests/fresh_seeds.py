"""Where long random searches begin: at 0 in `make test`, anywhere in `make torture`.

A search takes the fixture `first_seed` and counts up from it. A test that fails says with which
``--seed`` it fails again, and so does the end of the run.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

FRESH = "fresh"
"""The value of ``--seed`` that stands for a new number."""

MOST = 10**9
"""Fresh seeds are below this."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Know the option."""
    parser.addoption(
        "--seed", default="0", metavar="N", help=f"where random searches begin, or '{FRESH}'"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw the number once; the workers of pytest-xdist are handed it."""
    if config.option.seed == FRESH:
        config.option.seed = str(secrets.randbelow(MOST))


@pytest.fixture(scope="session")
def first_seed(pytestconfig: pytest.Config) -> int:
    """Give the number at which a random search begins."""
    return int(pytestconfig.option.seed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Iterator[None]:
    """Say with which seed a failed search fails again."""
    report: Any = yield
    if report.failed and "first_seed" in item.fixturenames:
        report.sections.append(("seed", f"again with --seed {item.config.option.seed}"))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say which seed was drawn."""
    if config.option.seed != "0":
        terminalreporter.write_line(f"random searches began at --seed {config.option.seed}")
