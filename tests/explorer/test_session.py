from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from mixed_table import mixed_frame
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsClassifier

from marginfold import GESVC, LSVA, NeighborGraph, NeighborsClassifier
from marginfold.data import TableModel, inspect_columns, read_labelled
from marginfold.data.models import load_model
from marginfold.errors import InvalidInputError
from marginfold.explorer import Opened, Session, Table, open_table
from marginfold.explorer.fits import Rows
from marginfold.explorer.methods import METHODS, estimator_of
from marginfold.explorer.session import WEIGHTS
from marginfold.explorer.table import HELD_OUT
from marginfold.protocols.splits import folds


def session_of(frame: pd.DataFrame, workers, **how) -> Session:
    return Session(Table.of(Opened("t.csv", frame, "t.csv"), **how), workers=workers)


# Description -------------------------------------------------------------------------------------


def test_a_table_is_described_with_its_target_guessed_and_unused_columns_explained(workers):
    body, arrays = session_of(mixed_frame(), workers).handle("describe", {})
    assert body["target"] == "species"
    kinds = {column["name"]: column["kind"] for column in body["columns"]}
    assert kinds == {
        "size": "number",
        "species": "target",
        "width": "number",
        "hue": "category",
        "unit": "left out",
        "note": "left out",
    }
    why = {column["name"]: column["why"] for column in body["columns"]}
    assert why["unit"] == "constant"
    assert "free text" in why["note"]
    assert sum(each["count"] for each in body["classes"]) == body["shown"] == 120
    assert arrays["held_out"].sum() == body["split"]["held_out"]
    np.testing.assert_array_equal(arrays["number"], np.arange(1, 121))
    assert [each["name"] for each in body["methods"]][:5] == [
        *("PCA", "LDA", "LSVA", "WSVDA", "MarginMap")
    ]


def test_without_a_table_the_page_is_told_which_sets_there_are(workers):
    session = Session(workers=workers)
    body, arrays = session.handle("describe", {})
    assert body["target"] is None
    assert body["shown"] == len(arrays["class"]) == 0
    assert "iris" in body["sets"]
    with pytest.raises(InvalidInputError, match="no table is open"):
        session.handle("fit", {"method": "LSVA"})
    assert session.handle("open_set", {"name": "iris"})[0]["shown"] == 150


def test_a_set_is_opened_by_its_name_only(workers):
    with pytest.raises(InvalidInputError, match="there is no set"):
        Session(workers=workers).handle("open_set", {"name": "/etc/passwd"})


def test_a_column_that_cannot_be_used_is_left_out_with_the_reason(workers):
    frame = mixed_frame()
    odd = [f"{k}.5" for k in range(100)] + [f"w{k}" for k in range(20)]
    frame["odd"] = odd
    body, _ = session_of(frame, workers).handle("describe", {})
    column = next(column for column in body["columns"] if column["name"] == "odd")
    assert column["kind"] == "left out"
    assert "mixes types" in column["why"]


def test_the_split_holds_out_a_share_of_every_class_and_the_seed_decides_which(workers):
    session = session_of(mixed_frame(), workers)
    first = session.handle("describe", {})[1]
    again = session.handle("choose", {"seed": 0, "held_out": HELD_OUT})[1]
    other = session.handle("choose", {"seed": 1, "held_out": 0.5})[1]
    np.testing.assert_array_equal(first["held_out"], again["held_out"])
    assert (first["held_out"] != other["held_out"]).any()
    for code in range(3):
        own = other["class"] == code
        assert abs(other["held_out"][own].sum() - own.sum() / 2) <= 0.5


def test_choosing_another_target_and_ignoring_columns_changes_what_is_learnt(workers):
    session = session_of(mixed_frame(), workers)
    body, _ = session.handle("choose", {"target": "hue", "ignored": ["size", "species"]})
    assert [each["name"] for each in body["classes"]] == ["blue", "green", "red"]
    kinds = {column["name"]: (column["kind"], column["why"]) for column in body["columns"]}
    assert kinds["size"] == ("left out", "ignored by you")
    assert any("3 rows have no 'hue'" in note for note in body["notes"])
    with pytest.raises(InvalidInputError, match="choose one"):
        session.handle("choose", {"target": "hue", "ignored": ["hue"]})


def test_above_200000_rows_a_stratified_sample_is_drawn_and_said(workers):
    n = 200_500
    labels = np.repeat(["a", "b"], [n - 20_050, 20_050])
    frame = pd.DataFrame({"x": np.arange(n) % 977 / 977, "kind": labels})
    body, arrays = session_of(frame, workers).handle("describe", {})
    assert body["shown"] <= 200_000
    assert body["rows"] == n
    assert f"{body['shown']} of {n} rows are shown" in body["sampled"]
    assert abs(body["classes"][1]["count"] / body["shown"] - 0.1) < 1e-4
    assert arrays["number"].max() > 200_000


def test_rows_are_shown_as_they_stand_in_the_table(workers):
    frame = mixed_frame()
    body, _ = session_of(frame, workers).handle("rows", {"ids": [119, 0]})
    assert body["columns"] == list(frame.columns)
    assert body["cells"][0][1] == frame["species"][119]
    assert float(body["cells"][0][0]) == pytest.approx(frame["size"][119], rel=1e-14)
    assert body["cells"][1][2] == ""  # a gap stays a gap


# Fits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_coordinates_equal_those_of_a_fit_to_the_training_rows_by_hand(workers, method):
    frame = mixed_frame()
    session = session_of(frame, workers)
    held_out = session.handle("describe", {})[1]["held_out"].astype(bool)
    body, arrays = session.handle("fit", {"method": method})
    features, labels = frame.drop(columns="species"), frame["species"].to_numpy(dtype=str)
    estimator = estimator_of(method, session.table.size, {})
    model = TableModel.fit(
        *(estimator, features[~held_out], labels[~held_out], "species", inspect_columns(features))
    )
    expected = model.transform(features)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(arrays["coordinates"], expected, atol=1e-6 * scale)
    assert len(body["axes"]) == expected.shape[1]


@pytest.mark.parametrize("method", METHODS)
def test_permuting_the_labels_of_held_out_rows_changes_no_coordinate(workers, method):
    frame = mixed_frame()
    held_out = np.arange(len(frame)) % 3 == 0
    permuted = frame.copy()
    rng = np.random.default_rng(1)
    permuted.loc[held_out, "species"] = rng.permutation(frame["species"][held_out])
    found = []
    for each in (frame, permuted):
        session = session_of(each, workers, held_out=held_out)
        body, arrays = session.handle("fit", {"method": method})
        found.append((arrays["coordinates"], body["errors"]["held_out"]["value"]))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    if method != "PCA":
        assert found[0][1] < found[1][1]  # the labels were read, by the error alone


def test_values_of_held_out_rows_do_not_move_training_rows(workers):
    frame = mixed_frame()
    held_out = np.arange(len(frame)) % 3 == 0
    far = frame.copy()
    far.loc[held_out, "size"] *= 1000.0
    found = []
    for each in (frame, far):
        session = session_of(each, workers, held_out=held_out)
        found.append(session.handle("fit", {"method": "LSVA"})[1]["coordinates"])
    np.testing.assert_array_equal(found[0][~held_out], found[1][~held_out])


def test_errors_are_those_of_nearest_neighbors_on_rows_that_are_not_their_own(wine):
    body, arrays = wine.handle("fit", {"method": "LDA"})
    Z, held_out, labels = arrays["coordinates"].astype(float), wine.table.held_out, wine.table.codes
    judge = KNeighborsClassifier(5).fit(Z[~held_out], labels[~held_out])
    wrong = judge.predict(Z[held_out]) != labels[held_out]
    assert body["errors"]["held_out"]["value"] == pytest.approx(wrong.mean())
    train = np.flatnonzero(~held_out)
    alone = [
        KNeighborsClassifier(5).fit(Z[rest], labels[rest]).predict(Z[[row]])[0] != labels[row]
        for row in train
        for rest in [train[train != row]]
    ]
    assert body["errors"]["training"]["value"] == pytest.approx(np.mean(alone))
    error = body["errors"]["held_out"]
    assert error["low"] <= error["value"] <= error["high"]
    assert error["text"].endswith(f"of {held_out.sum()} rows")


def test_errors_are_those_of_the_axes_that_are_drawn_and_of_all_components(wine):
    body, arrays = wine.handle("fit", {"method": "PCA"})
    Z, held_out, labels = arrays["coordinates"].astype(float), wine.table.held_out, wine.table.codes

    def error(*axes):
        Z_train, y_train = Z[~held_out][:, axes], labels[~held_out]
        judge = KNeighborsClassifier(5).fit(Z_train, y_train)
        return np.mean(judge.predict(Z[held_out][:, axes]) != labels[held_out])

    assert body["errors"]["held_out"]["value"] == pytest.approx(error(0, 1))
    assert body["errors"]["all"]["held_out"]["value"] == pytest.approx(error(0, 1, 2, 3))
    for axes in ([2, 3], [3, 2], [1, 1]):
        other, _ = wine.handle("errors", {"map": body["map"], "axes": axes})
        assert other["held_out"]["value"] == pytest.approx(error(*sorted(set(axes))))


def test_a_path_equals_separate_fits_within_its_step(wine):
    body, arrays = wine.handle("path", {"method": "LSVA", "params": {"n_components": 2}})
    assert body["weights"] == WEIGHTS
    assert body["weights"][body["chosen"]] == 1.0
    held_out = wine.table.held_out
    X, y = wine.table.encoded, wine.table.labels
    for step in (0, 1, 15, 29):
        weight = WEIGHTS[step]
        lsva = LSVA(2, graph=NeighborGraph(10), graph_weight=weight)
        expected = lsva.fit(X[~held_out], y[~held_out]).transform(X)
        low, high = (arrays[end][step].astype(float) for end in ("low", "high"))
        found = low + (high - low) * arrays["steps"][step] / 65535
        found *= np.sign((found * expected).sum(axis=0))
        half = 0.5 * (high - low) / 65535
        assert (np.abs(found - expected) <= half + 1e-5 * np.abs(expected).max()).all()
        whole, more = wine.handle("path_map", {"path": body["path"], "index": step})
        assert whole["params"]["graph_weight"] == weight
        np.testing.assert_allclose(more["coordinates"], expected, atol=1e-5)
        assert whole["errors"]["held_out"] == body["errors"][step]


def test_points_of_a_path_never_jump_to_the_other_side(wine):
    _, arrays = wine.handle("path", {"method": "LSVA"})
    low, high = arrays["low"][:, None], arrays["high"][:, None]
    Z = low + (high - low) * (arrays["steps"] / 65535)
    assert ((Z[1:] * Z[:-1]).sum(axis=1) >= 0).all()


def test_only_methods_with_a_graph_weight_have_a_path(wine):
    with pytest.raises(InvalidInputError, match="LSVA has"):
        wine.handle("path", {"method": "PCA"})


def test_the_control_shows_a_map_of_a_permuted_graph_and_the_sentence_of_the_test(wine):
    number = wine.handle("fit", {"method": "LSVA", "params": {"graph_weight": 10.0}})[0]["map"]
    body, arrays = wine.handle("control", {"map": number})
    assert arrays["coordinates"].shape[0] == 178
    assert len(body["permuted"]) == 19
    above = sum(score >= body["observed"] - 1e-12 for score in body["permuted"])
    assert body["p_value"] == pytest.approx((1 + above) / 20)
    assert "permuted" in body["sentence"]


def test_regions_are_the_answers_of_the_classifier_top_row_first(wine):
    number = wine.handle("fit", {"method": "LDA"})[0]["map"]
    Z = wine.handle("fit", {"method": "LDA"})[1]["coordinates"].astype(float)
    body, arrays = wine.handle("regions", {"map": number, "classifier": "GESVC", "size": 21})
    x0, x1, y0, y1 = body["extent"]
    train = ~wine.table.held_out
    mean, deviation = Z[train].mean(axis=0), Z[train].std(axis=0)
    machine = GESVC().fit((Z[train] - mean) / deviation, wine.table.codes[train])
    corners = np.array([[x0, y1], [x1, y1], [x0, y0], [x1, y0]])
    expected = machine.predict((corners - mean) / deviation)
    grid = arrays["grid"]
    assert [grid[0, 0], grid[0, -1], grid[-1, 0], grid[-1, -1]] == expected.tolist()
    assert body["error"]["n"] == int(wine.table.held_out.sum())


@pytest.mark.parametrize("classifier", ["GEPSVC", "TwinSVC", "SVC"])
def test_other_classifiers_draw_regions_too(wine, classifier):
    number = wine.handle("fit", {"method": "LSVA"})[0]["map"]
    body, arrays = wine.handle(
        "regions", {"map": number, "classifier": classifier, "size": 16, "axes": [1, 0]}
    )
    assert set(np.unique(arrays["grid"])) <= {0, 1, 2}
    assert body["error"]["value"] < 0.3


def test_a_plan_says_seconds_and_bytes_without_a_fit(wine):
    body, _ = wine.handle("plan", {"method": "LSVA"})
    assert 0 < body["seconds"][0] < body["seconds"][1]
    assert body["memory"] > 0
    assert " to " in body["text"]


# One row -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PCA", "LSVA", "KLSVA"])
def test_pushes_of_all_columns_sum_to_the_move_of_the_row(workers, method):
    frame = mixed_frame().drop(columns="note")
    session = session_of(frame, workers)
    body, arrays = session.handle("fit", {"method": method})
    pushes = session.handle("loadings", {"map": body["map"], "row": 5, "axes": [1, 0]})[0]
    total = np.sum([column["push"] for column in pushes["columns"]], axis=0)
    fitted = session._maps.get(body["map"]).fitted.estimator
    centre = session.table.encoded[~session.table.held_out].mean(axis=0, keepdims=True)
    move = (arrays["coordinates"][5] - fitted.transform(centre)[0])[[1, 0]]
    np.testing.assert_allclose(total, move, atol=1e-4 * np.abs(arrays["coordinates"]).max())
    assert {column["name"] for column in pushes["columns"]} == {"size", "width", "hue"}
    sizes = [np.abs(column["push"]).sum() for column in pushes["columns"]]
    assert sizes == sorted(sizes, reverse=True)


def test_a_preimage_maps_back_to_where_it_was_asked(wine):
    body, _ = wine.handle("fit", {"method": "LSVA", "params": {"n_components": 2}})
    found, _ = wine.handle("preimage", {"map": body["map"], "at": [1.5, -0.5]})
    row = pd.DataFrame([{each["name"]: float(each["value"]) for each in found["columns"]}])
    X = wine.table.encoder.transform(row)
    back = wine._maps.get(body["map"]).fitted.estimator.transform(X)[0]
    np.testing.assert_allclose(back, [1.5, -0.5], atol=0.02)  # values have four digits


def test_a_map_without_loadings_or_preimages_says_so(wine):
    body, _ = wine.handle("fit", {"method": "MarginMap"})
    assert body["has"] == {
        "loadings": False,
        "preimage": False,
        "path": False,
        "control": False,
        "suspects": True,
    }
    assert len(body["anchors"]) == 3
    for call, more in (("loadings", {"row": 0}), ("preimage", {"at": [0.0, 0.0]})):
        with pytest.raises(InvalidInputError, match="linear map"):
            wine.handle(call, {"map": body["map"], **more})


# Labels ------------------------------------------------------------------------------------------


def test_suspects_are_training_rows_judged_by_fits_that_have_not_seen_them(workers):
    frame = mixed_frame()
    session = session_of(frame, workers)
    body, _ = session.handle("fit", {"method": "LDA"})
    found, _ = session.handle("suspects", {"map": body["map"]})
    table = session.table
    train = np.flatnonzero(~table.held_out)
    X, y = table.encoded[train], table.labels[train]
    estimator = estimator_of("LDA", table.size, {})
    expected = {}
    for seen, unseen in folds(y, 5, seed=0):
        fitted = estimator.fit(X[seen], y[seen])
        judge = NeighborsClassifier(15).fit(fitted.transform(X[seen]), y[seen])
        shares = judge.predict_proba(fitted.transform(X[unseen]))
        own = shares[np.arange(len(unseen)), np.searchsorted(judge.classes_, y[unseen])]
        expected |= dict(zip(train[unseen].tolist(), shares.max(axis=1) - own, strict=True))
    suspects = {each["id"]: each["margin"] for each in found["rows"]}
    assert suspects == pytest.approx({row: m for row, m in expected.items() if m > 0})
    assert not table.held_out[list(suspects)].any()


def test_a_wrong_label_is_a_suspect_and_the_right_one_is_suggested(workers):
    X, y = load_wine(return_X_y=True)
    frame = pd.DataFrame(X).rename(columns=str).assign(kind=y)
    session = session_of(frame, workers)
    row = int(np.flatnonzero(~session.table.held_out & (y == 0))[3])
    session.handle("relabel", {"ids": [row], "label": 2})
    body, _ = session.handle("fit", {"method": "LDA"})
    first = session.handle("suspects", {"map": body["map"]})[0]["rows"][0]
    assert (first["id"], first["label"], first["suggested"]) == (row, 2, 0)


def test_relabelling_locks_held_out_rows_and_counts_and_undoes_edits(wine):
    training, held_out = np.flatnonzero(~wine.table.held_out), np.flatnonzero(wine.table.held_out)
    before = wine.handle("describe", {})[1]["class"]
    with pytest.raises(InvalidInputError, match="locked"):
        wine.handle("relabel", {"ids": [int(training[0]), int(held_out[0])], "label": 1})
    np.testing.assert_array_equal(wine.handle("describe", {})[1]["class"], before)
    two = [int(training[0]), int(training[1])]
    body, arrays = wine.handle("relabel", {"ids": two, "label": 2})
    assert body == {"edits": 1, "edited": "2 labels edited after looking"}
    assert arrays["class"][two].tolist() == [2, 2]
    edited = wine.handle("fit", {"method": "LDA"})[1]["coordinates"]
    assert wine.handle("describe", {})[0]["edited"] == "2 labels edited after looking"
    body, arrays = wine.handle("undo", {})
    assert body == {"edits": 0, "edited": None}
    np.testing.assert_array_equal(arrays["class"], before)
    plain = wine.handle("fit", {"method": "LDA"})[1]["coordinates"]
    assert np.abs(plain - edited).max() > 1e-3
    with pytest.raises(InvalidInputError, match="nothing to undo"):
        wine.handle("undo", {})


def test_the_last_but_one_class_cannot_be_edited_away(wine):
    training = np.flatnonzero(~wine.table.held_out).tolist()
    with pytest.raises(InvalidInputError, match="two classes"):
        wine.handle("relabel", {"ids": training, "label": 1})


# Exports -----------------------------------------------------------------------------------------


def content_of(session: Session, number: int, kind: str) -> tuple[str, bytes]:
    body, arrays = session.handle("export", {"map": number, "kind": kind})
    return body["file_name"], arrays["content"].tobytes()


def test_an_exported_csv_has_the_coordinates_and_no_formula(workers, tmp_path):
    frame = mixed_frame().replace({"species": {"ant": "=cmd|' /C calc'!A0"}})
    session = session_of(frame, workers)
    body, arrays = session.handle("fit", {"method": "LSVA"})
    name, content = content_of(session, body["map"], "csv")
    assert name == "t-LSVA.csv"
    (tmp_path / name).write_bytes(content)
    read = pd.read_csv(tmp_path / name)
    np.testing.assert_allclose(read["LSVA 2"], arrays["coordinates"][:, 1], atol=1e-6)
    assert read["species"].isin(["'=cmd|' /C calc'!A0", "bee", "cow"]).all()
    assert read["held_out"].tolist() == session.table.held_out.tolist()


def test_an_exported_model_places_rows_as_the_map_does(workers, tmp_path):
    frame = mixed_frame()
    session = session_of(frame, workers)
    body, arrays = session.handle("fit", {"method": "KLSVA"})
    name, content = content_of(session, body["map"], "skops")
    (tmp_path / name).write_bytes(content)
    found = load_model(tmp_path / name).transform(frame)
    np.testing.assert_allclose(found, arrays["coordinates"], atol=1e-6)


def test_pictures_are_pictures(wine):
    body, _ = wine.handle("fit", {"method": "LDA"})
    assert content_of(wine, body["map"], "svg")[1].startswith(b"<svg")
    assert content_of(wine, body["map"], "png")[1].startswith(b"\x89PNG")


def test_the_name_of_an_exported_file_has_no_path(workers):
    frame = mixed_frame()
    opened = Opened("../..//etc/<script>.csv", frame, "t.csv")
    session = Session(Table.of(opened), workers=workers)
    body, _ = session.handle("fit", {"method": "LDA"})
    name, _ = content_of(session, body["map"], "csv")
    assert re.fullmatch(r"[\w-]+\.csv", name)


def test_a_map_of_another_table_is_gone(wine):
    number = wine.handle("fit", {"method": "LDA"})[0]["map"]
    wine.handle("open_set", {"name": "iris"})
    with pytest.raises(InvalidInputError, match="no map"):
        wine.handle("loadings", {"map": number, "row": 0})


def test_a_file_is_read_as_compare_reads_it(tmp_path, workers):
    path = tmp_path / "t.csv"
    mixed_frame().to_csv(path, index=False)
    table = Table.of(open_table(path))
    features, labels = read_labelled(path, "species")
    assert table.columns == inspect_columns(features)
    assert table.labels.tolist() == labels.tolist()
    assert isinstance(Session(table, workers=workers).rows, Rows)
