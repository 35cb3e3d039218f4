"""The reading of a table while the page comes up: its error, its end."""

from __future__ import annotations

import threading

import pytest

from marginfold.errors import CancelledError, InvalidInputError
from marginfold.explorer.jobs import Job
from marginfold.explorer.server import Opening


def unreadable():
    raise InvalidInputError("no such table.")


def test_the_error_of_a_table_is_the_answer_to_every_call(workers):
    told = threading.Event()
    opening = Opening(unreadable, told.set)
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="no such table"):
            opening.session(workers, Job())
    assert told.is_set()
    assert isinstance(opening.error, InvalidInputError)


def test_a_call_that_waits_for_a_table_can_be_cancelled(workers):
    read, job = threading.Event(), Job()
    opening = Opening(lambda: read.wait(30) and None)
    threading.Timer(0.1, job.cancel).start()
    with pytest.raises(CancelledError, match="before the table was read"):
        opening.session(workers, job)
    assert opening.error is None
    read.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_no_call_waits_for_ever_if_nobody_can_be_told_of_the_error(workers):
    def failed():
        raise RuntimeError("can't start new thread")

    job = Job()
    limit = threading.Timer(10, job.cancel)
    limit.start()
    with pytest.raises(InvalidInputError, match="no such table"):
        Opening(unreadable, failed).session(workers, job)
    limit.cancel()
