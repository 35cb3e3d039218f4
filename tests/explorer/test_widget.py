"""The widget: what a notebook's page says to it, and what it answers."""

from __future__ import annotations

import time

import numpy as np
import pytest
import traitlets
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from marginfold import LDA
from marginfold.errors import InvalidInputError
from marginfold.explorer.frames import read_frame
from marginfold.explorer.widget import Explorer

X, Y = load_iris(return_X_y=True)
TRAIN, TEST, Y_TRAIN, Y_TEST = train_test_split(X, Y, stratify=Y, random_state=0)


class Page:
    """The other end of a widget: what it is sent is decoded and kept."""

    def __init__(self, widget):
        self.widget, self.frames, self.last = widget, {}, 0
        widget.send = lambda content, buffers: self.frames.setdefault(content["id"], []).append(
            read_frame(buffers[0])
        )

    def say(self, call, **params):
        self.last += 1
        self.widget._handle_custom_msg({"id": self.last, "call": call, "params": params}, [])
        return self.last

    def answer(self, number, seconds=60.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for kind, body, arrays in self.frames.get(number, []):
                if kind != "progress":
                    return kind, body, arrays
            time.sleep(0.02)
        raise AssertionError("no answer")

    def ask(self, call, **params):
        return self.answer(self.say(call, **params))


@pytest.fixture
def page():
    widget = Explorer(TRAIN, Y_TRAIN, held_out=(TEST, Y_TEST))
    yield Page(widget)
    widget.close()


def test_held_out_rows_are_those_given(page):
    _, body, arrays = page.ask("describe")
    assert body["split"]["held_out"] == len(TEST)
    np.testing.assert_array_equal(np.flatnonzero(arrays["held_out"]), np.arange(len(TRAIN), len(X)))


def test_the_split_stays_when_columns_are_chosen(page):
    kind, body, arrays = page.ask("choose", target="label", ignored=["x1"], seed=3, held_out=0.5)
    assert kind == "result", body
    assert arrays["held_out"].sum() == len(TEST)


def test_a_fitted_map_places_the_rows_as_its_transform_does():
    fitted = LDA(n_components=2).fit(TRAIN, Y_TRAIN)
    widget = Explorer(fitted, TRAIN, Y_TRAIN, held_out=(TEST, Y_TEST))
    page = Page(widget)
    _, body, _ = page.ask("describe")
    assert body["methods"][0]["name"] == body["maps"][0]["method"] == "LDA as fitted"
    _, found, arrays = page.ask("fit", method="LDA as fitted", params={})
    whole = np.vstack([TRAIN, TEST])
    np.testing.assert_allclose(arrays["coordinates"], fitted.transform(whole), atol=1e-5)
    assert not any(found["has"].values())
    widget.close()


def test_labels_follow_edits_and_undo(page):
    before = list(page.widget.labels)
    kind, body, _ = page.ask("relabel", ids=[0], label=(before[0] + 1) % 3)
    assert kind == "result", body
    deadline = time.monotonic() + 5
    while page.widget.labels == before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert page.widget.labels[0] == (before[0] + 1) % 3
    page.ask("undo")
    while page.widget.labels != before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert page.widget.labels == before


def test_a_call_can_be_cancelled(page):
    number = page.say("fit", method="KLSVA", params={})
    page.widget._handle_custom_msg({"id": number, "cancel": True}, [])
    kind, body, _ = page.answer(number)
    assert (kind, body.get("type")) in {("error", "Cancelled"), ("result", None)}


def test_messages_that_are_no_calls_are_left_alone(page):
    for nonsense in (None, [], {"id": "x"}, {"call": "describe"}, {"id": 1, "cancel": True}):
        page.widget._handle_custom_msg(nonsense, [])
    kind, body, _ = page.ask("eval", text="1")
    assert kind == "error"
    assert "eval" in body["message"]
    assert page.ask("describe")[0] == "result"


def test_a_selection_names_rows_that_there_are(page):
    page.widget.selection = [0, 149]
    with pytest.raises(traitlets.TraitError, match="from 0 to 149"):
        page.widget.selection = [150]
    assert page.widget.selection == [0, 149]


def test_a_file_is_not_replaced_unasked(page, tmp_path):
    file = tmp_path / "maps.html"
    page.widget.export_html(file)
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(InvalidInputError, match="exists"):
        page.widget.export_html(file)
    page.widget.export_html(file, overwrite=True)


@pytest.mark.parametrize(
    ("rows", "held_out", "said"),
    [
        ((X,), None, "X, y or fitted, X, y"),
        ((X, Y[:-1]), None, "150 rows have 149 labels"),
        ((X, Y), (X[:, :2], Y), "other columns"),
        ((3, X, Y), None, "has no transform"),
    ],
)
def test_what_cannot_be_shown_is_refused(rows, held_out, said):
    with pytest.raises(InvalidInputError, match=said):
        Explorer(*rows, held_out=held_out)
