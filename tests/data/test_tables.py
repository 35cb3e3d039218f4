"""Tables: what is read, what is refused and how, and the numbers that columns become."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="tables need pandas")

from marginfold import GESVC, LSVA  # noqa: E402
from marginfold.data import (  # noqa: E402
    TableModel,
    inspect_columns,
    read_table,
    split_target,
    write_table,
)
from marginfold.data.columns import arrange, encoder  # noqa: E402
from marginfold.data.models import load_model, save_model  # noqa: E402
from marginfold.errors import InvalidInputError, InvalidParameterError  # noqa: E402

pytestmark = pytest.mark.attack("hostile tables")


def frame_of(n=12, **columns):
    base = {"size": np.arange(n) + 0.5, "hue": ["red", "blue"] * (n // 2)}
    return pd.DataFrame({**base, **columns})


PLAIN = frame_of()


def text_of(delimiter=",", frame=PLAIN):
    return frame.to_csv(index=False, sep=delimiter)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
@pytest.mark.parametrize("packed", [False, True], ids=["text", "gzip"])
def test_every_way_to_write_a_table_is_the_same_table(delimiter, mark, packed, tmp_path):
    content = mark + text_of(delimiter).encode()
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    pd.testing.assert_frame_equal(
        read_table(path), PLAIN.astype({"hue": read_table(path)["hue"].dtype})
    )


def test_a_delimiter_inside_quotes_or_values_is_no_delimiter(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('name;"a, b, c";kind\n' + "1,5;x|y;k\n" * 12)
    assert list(read_table(path).columns) == ["name", "a, b, c", "kind"]


def test_quoted_line_breaks_and_blank_lines_are_no_records(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + '1,"two\nlines"\n\n' * 12)
    assert read_table(path).shape == (12, 2)


@pytest.mark.parametrize("word", ["", "NA", "nan", "?", "null"])
def test_words_for_missing_values_leave_a_column_numeric(word, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 11 + f"{word},2\n")
    table = read_table(path)
    assert table["a"].dtype.kind == "f"
    assert table["a"].isna().sum() == 1


def test_parquet_is_read_with_its_types(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    table = frame_of(flag=pd.array([True, None] * 6, dtype="boolean"))
    write_table(table, tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")
    assert read["size"].tolist() == table["size"].tolist()
    assert read["flag"].isna().sum() == 6
    assert inspect_columns(read).levels == ("hue", "flag")


ROW = b"1,2\n"
BAD_FILES = {
    "empty": (b"", "is empty"),
    "blank": (b"\n \n", "blank lines"),
    "header only": (b"a,b\n", "header and no rows"),
    "short": (b"a,b\n" + ROW * 5, "only 5 rows; at least 10"),
    "one row": (b"a,b\n" + ROW, "only 1 row;"),
    "twice": (b"a,b,a\n" + b"1,2,3\n" * 12, "more than one column 'a'"),
    "long line": (b"a,b\n" + ROW * 12 + b"1,2,3\n", "line 14 has 3 fields, the header has 2"),
    "all longer": (b"a,b\n" + b"1,2,3\n" * 12, "line 2 has 3 fields"),
    "short line": (b"a,b\n" + ROW * 12 + b"1\n", "line 14 has 1 field,"),
    "latin1": (
        b"a,b\n" + ROW * 12 + "é,2\n".encode("latin1"),
        r"not UTF-8: byte 0xe9 at position 52 \(line 14\).*--encoding latin-1",
    ),
    "utf16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), "--encoding utf-16-le"),
    "zero byte": (b"a,b\n" + ROW * 12 + b"\0,2\n", "line 14 has a zero byte"),
    "half gzip": (gzip.compress(b"a,b\n" + ROW * 12)[:-9], "damaged gzip"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_is_no_table_is_refused_in_words(case, tmp_path):
    content, message = BAD_FILES[case]
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_table(tmp_path / "t.csv")
    assert "t.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folders_missing_files_and_false_parquet_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="there is no file"):
        read_table(tmp_path / "t.csv")
    with pytest.raises(InvalidInputError, match="not a regular file"):
        read_table(tmp_path)
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    (tmp_path / "t.parquet").write_bytes(b"a,b\n" + ROW * 12)
    with pytest.raises(InvalidInputError, match="not a Parquet file"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_numbers_are_written_without_loss(suffix, tmp_path):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    values = np.random.default_rng(0).standard_normal(40) * 10.0 ** np.arange(-20, 20)
    write_table(pd.DataFrame({"v": values}), tmp_path / f"t{suffix}")
    np.testing.assert_array_equal(read_table(tmp_path / f"t{suffix}")["v"], values)


def test_an_output_of_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="must end with one of"):
        write_table(PLAIN, tmp_path / "t.xlsx")
    assert list(tmp_path.iterdir()) == []


BAD_TARGETS = {
    "one class": ([1] * 12, "one class"),
    "unique": (list(range(12)), "12 different values in 12 rows"),
    "unique words": (list("abcdefghijkl"), "an identifier or a quantity"),
    "rare": ([0] * 11 + [7], "only one row of class 7"),
    "missing": (["a", "b", None] * 4, "missing in 4 of 12 rows.*--drop-missing-target"),
    "nothing": ([None] * 12, "missing in 12 of 12"),
}


@pytest.mark.parametrize("case", BAD_TARGETS)
def test_a_target_without_classes_is_refused(case):
    values, message = BAD_TARGETS[case]
    with pytest.raises(InvalidInputError, match=message):
        split_target(frame_of(kind=values), "kind")


def test_a_quantity_is_no_target_but_many_classes_are():
    n = 180
    quantity = np.repeat(np.arange(n // 2), 2) * 0.1
    with pytest.raises(InvalidInputError, match=r"90 different numbers in 180 rows.*regression"):
        split_target(frame_of(n, price=quantity), "price")
    _, labels = split_target(frame_of(n, price=[f"p{v}" for v in quantity]), "price")
    assert len(set(labels)) == 90
    _, labels = split_target(frame_of(n, price=np.repeat(np.arange(60), 3)), "price")
    assert len(set(labels)) == 60


def test_an_unknown_target_gets_suggestions():
    with pytest.raises(InvalidInputError, match="Did you mean 'size'\\? The columns are size, hue"):
        split_target(PLAIN, "sice")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["b", "a"] * 6, ["b", "a"] * 6),
        ([2.0, 1.0] * 6, [2, 1] * 6),
        ([True, False] * 6, ["True", "False"] * 6),
        ([0.5, 1.5] * 6, ["0.5", "1.5"] * 6),
        (pd.Categorical(["b", "a"] * 6), ["b", "a"] * 6),
        (pd.array([1, 2] * 6, dtype="Int64"), [1, 2] * 6),
    ],
)
def test_labels_are_whole_numbers_or_strings(values, expected):
    features, labels = split_target(frame_of(kind=values), "kind")
    assert labels.tolist() == expected
    assert labels.dtype.kind in "iU"
    assert list(features.columns) == ["size", "hue"]


def test_unlabelled_rows_are_left_out_if_told():
    table = frame_of(kind=[1, 2, None] * 4)
    features, labels = split_target(table, "kind", drop_missing=True)
    assert labels.tolist() == [1, 2] * 4
    assert labels.dtype.kind == "i"
    assert features["size"].tolist() == table["size"][table["kind"].notna()].tolist()


def test_a_table_of_nothing_but_the_target_is_refused():
    with pytest.raises(InvalidInputError, match="no column beside"):
        split_target(PLAIN[["hue"]], "hue")


N = 40
BAD_COLUMNS = {
    "mixed": ([1.5, 2, "x", *range(9)], "11 numbers and 1 words.*'x' in row 3"),
    "infinite": ([1.0, np.inf] * 6, "infinite value in row 2"),
    "decimals or thousands": (["7", "7,500"] * 6, "'7,500'.*--decimal , .*--categorical odd"),
    "two currencies": (["$5", "€7"] * 6, "several ways \\('\\$5', '€7'\\)"),
    "percent or not": (["5 %", "7"] * 6, "several ways"),
    "lists": ([[1, 2]] * 12, "list values"),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_a_column_that_cannot_be_used_is_refused_by_name(case):
    values, message = BAD_COLUMNS[case]
    with pytest.raises(InvalidInputError, match=f"column 'odd'.*{message}"):
        inspect_columns(frame_of(odd=values))


LEFT_OUT = {
    "text": ([f"sentence {k}" for k in range(12)], "free text or an id.*--categorical odd"),
    "nearly all words": ([*"abcdefg", None, "7", *"hij"], "free text or an id"),
    "the index": (range(7, 19), "the number of the row"),
    "dates": (pd.date_range("2020-01-01", periods=12), "dates .--dates"),
    "dates in words": (["2020-01-31", "2020-02-01 10:30"] * 6, "dates .--dates"),
    "dates with points": (["31.1.2020", "1.2.2020"] * 6, "dates .--dates"),
    "other dates": (["2020/1/31", "5/31/24", "31-05-2024"] * 4, "dates .--dates"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_a_column_that_tells_only_the_row_is_left_out_with_a_note(case):
    values, message = LEFT_OUT[case]
    found = inspect_columns(frame_of(odd=values))
    assert found.dropped == ("odd",)
    assert re.search(f"column 'odd' is {message}.*: dropped", str(found.notes))


def test_a_few_numbers_and_words_are_categories_with_a_note():
    for values, told in (
        ([1.5, 2, "x", 4] * 3, "9 numbers and 3 words, the first odd value being 'x' in row 3"),
        (["a", "b", None, "7"] * 3, "3 numbers and 6 words, the first odd value being '7' in row"),
    ):
        found = inspect_columns(frame_of(odd=values))
        assert found.levels == ("hue", "odd")
        assert told in str(found.notes)
        assert "all are taken as categories" in str(found.notes)


@pytest.mark.parametrize("values", [["3.9.18", "3.10.13"], ["1.2.42", "1.2.3"], ["12/31", "1/2"]])
def test_versions_and_codes_are_no_dates(values):
    assert inspect_columns(frame_of(odd=values * 6)).levels == ("hue", "odd")


def test_long_text_that_repeats_a_little_is_still_text():
    words = [f"w{k % 35}" for k in range(60)]
    found = inspect_columns(frame_of(60, odd=words))
    assert found.dropped == ("odd",)
    assert "35 different values in 60 rows" in str(found.notes)
    assert "35 levels" in str(inspect_columns(frame_of(80, odd=[f"w{k % 35}" for k in range(80)])))


def test_useless_columns_are_dropped_and_odd_ones_noted():
    found = inspect_columns(
        frame_of(
            empty=[None] * 12, same=3, one_word="x", ident=range(24, 0, -2), gap=[1.0, None] * 6
        )
    )
    assert found.dropped == ("empty", "same", "one_word", "gap")
    assert found.numbers == ("size", "ident")
    assert [note for note in found.notes if "identifier" in note and "'ident'" in note]


def test_a_word_that_is_there_or_missing_is_information():
    found = inspect_columns(frame_of(flag=["yes", None] * 6))
    assert "flag" in found.levels


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(InvalidInputError, match="there is no column to learn from: a, b"):
        inspect_columns(pd.DataFrame({"a": [1] * 12, "b": [None] * 12}))


def test_codes_are_categories_if_told():
    codes = frame_of(code=[10, 20, "x"] * 4)
    assert inspect_columns(codes, categorical=["code"]).levels == ("hue", "code")
    with pytest.raises(InvalidInputError, match="'cod' is not a column"):
        inspect_columns(codes, categorical=["cod"])


def test_objects_are_no_codes_whatever_is_told():
    with pytest.raises(InvalidInputError, match="column 'odd' has list values"):
        inspect_columns(frame_of(odd=[[1, 2]] * 12), categorical=["odd"])


def encoded(frame, scale="standard"):
    found = inspect_columns(frame)
    return encoder(found, scale), arrange(frame, found.numbers, found.levels)


def test_the_numbers_are_those_of_the_formulas():
    frame = pd.DataFrame({"v": [1.0, 2.0, None, 9.0], "w": ["a", None, "b", "a"]})
    part, rows = encoded(frame)
    filled = np.array([1.0, 2.0, 2.0, 9.0])
    np.testing.assert_allclose(
        part.fit_transform(rows),
        np.column_stack(
            [
                (filled - filled.mean()) / filled.std(),
                [0, 1, 0, 0],
                [1, 0, 0, 1],
                [0, 0, 1, 0],
            ]
        ),
    )
    part, rows = encoded(frame, scale="range")
    np.testing.assert_allclose(part.fit_transform(rows)[:, 0], (filled - 5) / 4)
    part, rows = encoded(frame, scale="none")
    np.testing.assert_allclose(part.fit_transform(rows)[:, 0], filled)


def test_an_unknown_scale_is_refused():
    with pytest.raises(InvalidParameterError, match="scale must be one of 'standard'"):
        encoder(inspect_columns(PLAIN), "log")


def labelled(n=60):
    rng = np.random.default_rng(0)
    y = np.array(["p", "q", "r"])[np.arange(n) % 3]
    frame = pd.DataFrame(
        {
            "v": rng.standard_normal(n) + (y == "q"),
            "w": rng.standard_normal(n) - 2 * (y == "r"),
            "hue": np.where(y == "p", "red", rng.choice(["blue", "red"], n)),
            "flag": rng.random(n) < 0.5,
        }
    )
    frame.loc[4, "v"] = None
    frame.loc[5, "hue"] = None
    return frame, y


@pytest.mark.parametrize("method", [LSVA(), GESVC(kernel="rbf")], ids=["transformer", "classifier"])
def test_a_table_model_is_the_same_after_loading(method, tmp_path):
    pytest.importorskip("skops", reason="model files need skops")
    frame, y = labelled()
    model = TableModel.fit(method, frame, y, "kind", inspect_columns(frame))
    save_model(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    assert loaded.columns == model.columns == ("v", "w", "hue", "flag")
    assert (loaded.target, loaded.classes) == ("kind", ("p", "q", "r"))
    answer = "transform" if hasattr(method, "transform") else "predict"
    np.testing.assert_array_equal(getattr(loaded, answer)(frame), getattr(model, answer)(frame))


def test_a_row_depends_on_no_other_row_no_order_of_columns_and_no_unused_one():
    frame, y = labelled()
    model = TableModel.fit(LSVA(), frame, y, "kind", inspect_columns(frame))
    whole = model.transform(frame)
    shuffled = frame[["flag", "w", "hue", "v"]].assign(more="x")
    np.testing.assert_allclose(model.transform(shuffled), whole, atol=1e-12)
    for k in (0, 4, 5):
        np.testing.assert_allclose(model.transform(frame.iloc[[k]]), whole[[k]], atol=1e-12)


def test_new_levels_and_missing_values_are_answered_and_missing_columns_named():
    frame, y = labelled()
    model = TableModel.fit(LSVA(), frame, y, "kind", inspect_columns(frame))
    strange = frame.iloc[:3].assign(hue="green", v=None)
    assert np.isfinite(model.transform(strange)).all()
    with pytest.raises(InvalidInputError, match="lacks 2 of the model's 4 columns: v, hue"):
        model.transform(frame.drop(columns=["v", "hue"]))
    with pytest.raises(
        InvalidInputError, match="column 'v' was numbers when the model was fitted; row 1"
    ):
        model.transform(frame.assign(v=["a", "b", "c"] * 20))


def test_the_table_that_is_given_is_not_written_to():
    frame, y = labelled()
    before = frame.copy(deep=True)
    TableModel.fit(LSVA(), frame, y, "kind", inspect_columns(frame)).transform(frame)
    pd.testing.assert_frame_equal(frame, before)
