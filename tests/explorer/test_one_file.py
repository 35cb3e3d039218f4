"""One HTML file: it holds what the session answers, whatever the table says, and asks nobody."""

from __future__ import annotations

import base64
import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest

from marginfold.explorer import Session
from marginfold.explorer.frames import read_frame
from marginfold.explorer.one_file import KEPT_ID, embedded, one_file
from marginfold.explorer.table import array_table

HOSTILE = "</script><script>alert(1)</script><!--"


@pytest.fixture(scope="module")
def session():
    rng = np.random.default_rng(0)
    labels = np.array(["red", HOSTILE] * 40)
    X = rng.normal(size=(80, 3)) + (labels == "red")[:, None]
    frame = pd.DataFrame(X, columns=["a", "b", HOSTILE])
    with Session(array_table(frame, labels)) as session:
        yield session


@pytest.fixture(scope="module")
def page(session):
    return session.page()


def answers(page):
    (text,) = re.findall(rf'id="{KEPT_ID}">(.*?)</script>', page, flags=re.DOTALL)
    return {
        (each["call"], json.dumps(each["params"], sort_keys=True)): read_frame(
            gzip.decompress(base64.b64decode(each["frame"]))
        )
        for each in json.loads(text)["answers"]
    }


def test_it_holds_the_maps_as_the_session_fits_them(session, page):
    found = answers(page)
    (_, description, arrays) = found["describe", "{}"]
    assert [each["method"] for each in description["maps"]] == ["PCA", "LSVA"]
    assert arrays["held_out"].sum() == description["split"]["held_out"]
    for each in description["maps"]:
        kind, body, arrays = found["fit", json.dumps(each, sort_keys=True)]
        fresh, again = session.handle("fit", each)
        assert kind == "result"
        assert body["errors"] == json.loads(json.dumps(fresh["errors"]))
        np.testing.assert_allclose(arrays["coordinates"], again["coordinates"], atol=1e-6)


def test_only_a_map_on_a_path_offers_its_slider(page):
    found = answers(page)
    fits = {body["method"]: body for (call, _), (_, body, _) in found.items() if call == "fit"}
    assert fits["LSVA"]["has"]["path"]
    assert not fits["PCA"]["has"]["path"]
    assert not any(fits["LSVA"]["has"][name] for name in ("preimage", "control", "suspects"))
    paths = [body for (call, _), (_, body, _) in found.items() if call == "path"]
    assert len(paths) == 1
    assert paths[0]["weights"][paths[0]["chosen"]] == fits["LSVA"]["params"]["graph_weight"]


def test_a_path_is_within_a_pixel(session, page):
    kept = next(arrays for (call, _), (_, _, arrays) in answers(page).items() if call == "path")
    _, whole = session.handle("path", {"method": "LSVA", "params": {}})
    lost = whole["steps"].astype(int) - kept["steps"]
    assert 0 <= lost.min() <= lost.max() < 65536 / 4000


def test_loadings_computed_from_the_cells_are_those_of_the_session():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(120) < 0.1, np.nan, rng.normal(2000.0, 5.0, 120)),
            "shape": rng.choice(["round", "long", ""], 120),
            "always": 1.0,
            "count": rng.integers(0, 9, 120),
        }
    )
    with Session(array_table(frame, rng.choice(["a", "b", "c"], 120))) as session:
        map_ = session.handle("fit", {"method": "LSVA"})[0]["map"]
        found = answers(session.page([map_]))
        rule = found["loadings", json.dumps({"map": map_})][1]["columns"]
        cells = found["rows", "{}"][1]
        for row in range(120):
            values = dict(zip(cells["columns"], cells["cells"][row], strict=True))
            wanted = session.handle("loadings", {"map": map_, "row": row})[0]["columns"]
            assert {each["name"] for each in wanted} == {each["name"] for each in rule}
            for each in wanted:
                column = next(one for one in rule if one["name"] == each["name"])
                text = values[each["name"]]
                moved = column["words"].get(text)
                if moved is None:
                    moved = np.array(column["start"]) + np.array(column["slope"]) * float(text)
                np.testing.assert_allclose(moved[:2], each["push"], atol=2e-3)


def test_every_pair_of_axes_has_its_errors(session, page):
    found = answers(page)
    described = found["describe", "{}"][1]
    for each in described["maps"]:
        body = found["fit", json.dumps(each, sort_keys=True)][1]
        for axes in ([0, 1], [0, 2], [1, 2]):
            asked = {"map": body["map"], "axes": axes}
            kept = found["errors", json.dumps(asked, sort_keys=True)][1]
            assert kept == json.loads(json.dumps(session.handle("errors", asked)[0]))


def test_cells_of_all_rows_are_there(session, page):
    _, body, _ = answers(page)["rows", "{}"]
    whole = session.table.cells(np.arange(80))
    for short, cells in zip(body["cells"], whole, strict=True):
        assert short[-1] == cells[-1]
        np.testing.assert_allclose(
            np.array(short[:3], float), np.array(cells[:3], float), rtol=1e-5
        )


def test_names_of_a_table_end_no_element(page):
    assert HOSTILE not in page
    assert page.count("</script>") == 2  # of the answers and of the page's own code
    assert "alert(1)</" not in page


def test_it_may_ask_nobody(page):
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)


def test_it_shows_pictures_where_scripts_are_off(page):
    (plain,) = re.findall(r"<noscript>(.*?)</noscript>", page, flags=re.DOTALL)
    assert plain.count("<img alt=") == 2
    assert "Held-out error" in plain


def test_text_that_closes_elements_is_written_with_escapes():
    assert embedded({"a": "</x>&"}) == '{"a": "\\u003c/x\\u003e\\u0026"}'
    assert "<title>a &lt; b</title>" in one_file("a < b", [])
