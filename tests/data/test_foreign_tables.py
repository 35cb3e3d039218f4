"""One table in the many ways that people write it: all of them are the same table."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="tables need pandas")

from marginfold.data import (  # noqa: E402
    Reading,
    inspect_columns,
    read_labelled,
    read_table,
    split_target,
    write_table,
)
from marginfold.data.columns import arrange  # noqa: E402
from marginfold.data.reading import AS_FOUND  # noqa: E402
from marginfold.errors import InvalidInputError, InvalidParameterError, TooLargeError  # noqa: E402

N = 24
RNG = np.random.default_rng(7)
BASE = pd.DataFrame(
    {
        "größe": np.round(RNG.normal(0, 3, N), 2),
        "list price": np.round(RNG.uniform(900, 2_000_000, N), 2),
        "share": np.round(RNG.uniform(0, 100, N), 1),
        "hue": RNG.choice(["blau", "grün", "rot"], N),
        "kind": np.array(["a", "b"])[np.arange(N) % 2],
    }
)
BASE.loc[5, "größe"] = None
BASE.loc[6, "hue"] = None


def text(frame=BASE, **options):
    options = {"index": False, "lineterminator": "\n", **options}
    return frame.to_csv(**options)


def grouped(group, decimal, pattern="{}"):
    """The prices with grouped thousands, in a pattern that has their unit."""
    plain = [f"{value:,.2f}" for value in BASE["list price"]]
    swapped = [v.translate({ord(","): group, ord("."): decimal}) for v in plain]
    return BASE.assign(**{"list price": [pattern.format(v) for v in swapped]})


def with_commas(frame=BASE, sep=";"):
    return text(frame, sep=sep, decimal=",")


PERCENT = BASE.assign(share=[f"{v} %" for v in BASE["share"]])
BRACKETS = BASE.assign(
    größe=["" if np.isnan(v) else f"({-v} €)" if v < 0 else f"{v} €" for v in BASE["größe"]]
)
MINUS = BASE.assign(
    größe=["" if np.isnan(v) else f"{v} €".replace("-", "−") for v in BASE["größe"]]
)
BLANKS = BASE.assign(
    hue=[f"{v}  " if isinstance(v, str) else v for v in BASE["hue"]], kind=BASE["kind"] + "\t"
)

WAYS = {
    "comma": (text().encode(), Reading()),
    "semicolon": (text(sep=";").encode(), Reading()),
    "semicolon and decimal comma": (with_commas().encode(), Reading()),
    "tab and decimal comma": (with_commas(sep="\t").encode(), Reading()),
    "bar and decimal comma": (with_commas(sep="|").encode(), Reading()),
    "comma and decimal comma in quotes": (with_commas(sep=",").encode(), Reading()),
    "told": (with_commas(sep="#").encode(), Reading(sep="#", decimal=",")),
    "spaces": (text(sep=" ", na_rep="NA").encode(), Reading(sep="space")),
    "sep= of spreadsheets": (b"sep=;\r\n" + with_commas().encode(), Reading()),
    "everything in quotes": (text(quoting=1).encode(), Reading()),
    "Windows": (text(lineterminator="\r\n").encode(), Reading()),
    "old Mac": (text(lineterminator="\r").encode(), Reading()),
    "blank lines": (text(lineterminator="\n\n").encode() + b"\n\n", Reading()),
    "byte order mark": (b"\xef\xbb\xbf" + text().encode(), Reading()),
    "byte order mark, told": (b"\xef\xbb\xbf" + text().encode(), Reading(encoding="UTF8")),
    "Unicode text of a spreadsheet": (with_commas(sep="\t").encode("utf-16"), Reading()),
    "UTF-16 without a mark": (text().encode("utf-16-le"), Reading(encoding="utf-16-le")),
    "latin-1": (text().encode("latin-1"), Reading(encoding="latin-1")),
    "cp1252 with euros": (
        with_commas(grouped(".", ",", "{} €")).encode("cp1252"),
        Reading(encoding="cp1252"),
    ),
    "gzip": (gzip.compress(text().encode()), Reading()),
    "gzip of two parts": (
        gzip.compress(text().encode()[:300]) + gzip.compress(text().encode()[300:]),
        Reading(),
    ),
    "dollars": (text(grouped(",", ".", "${}")).encode(), Reading()),
    "codes of a currency": (text(grouped(",", ".", "CHF {}")).encode(), Reading()),
    "apostrophes": (text(grouped("'", ".")).encode(), Reading()),
    "unbreakable spaces": (with_commas(grouped("\u202f", ",")).encode(), Reading()),
    "points in thousands": (with_commas(grouped(".", ",")).encode(), Reading()),
    "percent": (text(PERCENT).encode(), Reading()),
    "percent with commas": (
        with_commas(PERCENT.assign(share=PERCENT["share"].str.replace(".", ","))).encode(),
        Reading(),
    ),
    "negative in brackets": (text(BRACKETS).encode(), Reading()),
    "the minus of typesetters": (text(MINUS).encode(), Reading()),
    "blanks around words": (text(BLANKS).encode(), Reading()),
    "blanks around names": (
        text(BASE.rename(columns=lambda name: f" {name} ")).encode(),
        Reading(),
    ),
    "blank around a missing word": (text().replace(",,", ",NA ,").encode(), Reading()),
}


def arranged(path, reading=AS_FOUND, target="kind", **options):
    features, labels = read_labelled(path, target, reading=reading, **options)
    columns = inspect_columns(features, reading=reading)
    rows = arrange(features, columns.numbers, columns.levels, columns.written)
    return rows, labels, columns


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_a_table_is_the_same_table(way, tmp_path):
    content, reading = WAYS[way]
    (tmp_path / "t.csv").write_bytes(content)
    rows, labels, columns = arranged(tmp_path / "t.csv", reading)
    assert columns.numbers == ("größe", "list price", "share")
    assert columns.levels == ("hue",)
    expected = arrange(BASE, columns.numbers, columns.levels)
    pd.testing.assert_frame_equal(rows, expected)
    assert labels.tolist() == BASE["kind"].tolist()


def test_a_table_without_names_has_numbered_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text(header=False), encoding="utf-8")
    for target in ("5", "c5"):
        rows, labels, _ = arranged(path, Reading(header=False), target, drop=["2"])
        assert list(rows) == ["c1", "c3", "c4"]
        assert labels.tolist() == BASE["kind"].tolist()
        np.testing.assert_array_equal(rows["c1"], BASE["größe"])
    with pytest.raises(InvalidInputError, match=r"'kind' is not a column.*say --no-header"):
        read_labelled(path, "kind")
    headless = "1.5;2,5;a\n2.5;3,5;b\n" * 6
    path.write_text(headless)
    frame = read_table(path, reading=Reading(header=False))
    assert frame.shape == (12, 3)


def test_rounding_does_not_depend_on_the_mark_of_decimals(tmp_path):
    values = RNG.standard_normal(40) * 10.0 ** np.arange(-20, 20)
    path = tmp_path / "t.csv"
    path.write_text("v;w\n" + "".join(f"{float(v)!r};1\n".replace(".", ",") for v in values))
    np.testing.assert_array_equal(read_table(path)["v"], values)


def test_notes_say_what_was_read_and_what_was_joined(tmp_path):
    frame = PERCENT.assign(hue=["rot", "rot "] * 12)
    (tmp_path / "t.csv").write_text(text(frame), encoding="utf-8")
    notes = arranged(tmp_path / "t.csv")[2].notes
    assert f"column 'share': '{frame['share'][0]}' is read as the number {BASE['share'][0]}" in str(
        notes
    )
    joined = "column 'hue': blanks around 12 values left out, which joins spellings of 'rot'"
    assert joined in notes
    assert "column 'hue' is constant: dropped" in notes


ISO = pd.date_range("2024-01-30", periods=N, freq="36h")
DATES = {
    "ISO": ISO.strftime("%Y-%m-%d"),
    "with a time": ISO.strftime("%Y-%m-%d %H:%M"),
    "with a zone": ISO.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "points": ISO.strftime("%d.%m.%Y"),
    "slashes, month first": ISO.strftime("%m/%d/%Y"),
    "slashes, day first": ISO.strftime("%d/%m/%y"),
    "names of months": ISO.strftime("%d %b %Y"),
}


@pytest.mark.parametrize("way", DATES)
def test_dates_are_days_since_the_earliest_if_told(way, tmp_path):
    path = tmp_path / "t.csv"
    shuffled = RNG.permutation(N)
    BASE.assign(day=DATES[way][shuffled]).to_csv(path, index=False)
    rows, _, columns = arranged(path, Reading(dates=True))
    days = np.arange(N) * 1.5 if way.startswith("with") else np.floor(np.arange(N) * 1.5)
    np.testing.assert_array_equal(rows["day"], days[shuffled])
    assert "column 'day': dates, taken as days since the earliest, 2024-01-30" in columns.notes
    without, _, columns = arranged(path)
    assert "day" not in without
    told = "column 'day' is dates (--dates takes them as days since the earliest): dropped"
    assert told in columns.notes


def test_dates_of_parquet_files_are_the_same_days(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    frame = BASE.assign(day=ISO, later=ISO.tz_localize("Europe/Berlin"), date=ISO.date)
    frame.loc[3, "day"] = None
    write_table(frame, tmp_path / "t.parquet")
    rows, _, _ = arranged(tmp_path / "t.parquet", Reading(dates=True))
    days = np.arange(N) * 1.5
    np.testing.assert_array_equal(rows["later"], days)
    np.testing.assert_array_equal(rows["date"], np.floor(days))
    np.testing.assert_array_equal(rows["day"], np.where(np.arange(N) == 3, np.nan, days))


def test_dates_that_can_be_read_in_two_ways_are_refused():
    for values in (["5/6/2024", "6/5/2024"], ["31/5/2024", "5/31/2024"]):
        frame = pd.DataFrame({"day": values * 6, "v": np.arange(12.0)})
        with pytest.raises(InvalidInputError, match="day from the month; write them as 2024-05-31"):
            inspect_columns(frame, reading=Reading(dates=True))


def test_identifiers_are_noted_or_left_out():
    frame = BASE.assign(
        number=np.arange(N) * 3 + 1000, code=[f"x{k}" for k in range(N)], day=DATES["points"]
    ).drop(columns="kind")
    assert inspect_columns(frame, reading=Reading(dates=True)).dropped == ("code",)
    found = inspect_columns(frame, reading=Reading(drop_ids=True, dates=True))
    assert found.dropped == ("number", "code")
    assert "day" in found.numbers
    noted = inspect_columns(frame.drop(columns="code"), reading=Reading(dates=True))
    assert "number" in noted.numbers
    assert "--drop number, or --drop-ids" in str(noted.notes)
    kept = inspect_columns(frame, categorical=["code"], reading=Reading(drop_ids=True, dates=True))
    assert kept.levels == ("hue", "code")


def test_numbers_of_shuffled_rows_in_a_column_without_a_name_are_left_out_with_a_note(tmp_path):
    path = tmp_path / "shuffled.csv"
    BASE.sample(frac=1, random_state=0).to_csv(path)
    features, _ = read_labelled(path, "kind")
    found, plain = inspect_columns(features), inspect_columns(BASE.drop(columns="kind"))
    assert found.dropped == ("Unnamed: 0",)
    assert (found.numbers, found.levels) == (plain.numbers, plain.levels)
    assert "column 1 (it has no name) is the number of the row: dropped" in found.notes
    named = features.rename(columns={"Unnamed: 0": "age"})
    assert "age" in inspect_columns(named).numbers


def test_none_is_a_word_among_words_and_missing_among_numbers(tmp_path):
    path = tmp_path / "t.csv"
    words, numbers, money = ["None", "Brick", "Stone"], ["None", "1.5", "2"], ["None", "$1", "$7"]
    lines = [f"{words[k % 3]},{numbers[k % 3]},{money[k % 3]},{'ab'[k % 2]}" for k in range(12)]
    path.write_text("\n".join(["veneer,size,price,kind", *lines]))
    features, _ = read_labelled(path, "kind")
    assert features["veneer"].tolist() == words * 4
    np.testing.assert_array_equal(features["size"], [np.nan, 1.5, 2.0] * 4)
    found = inspect_columns(features)
    assert (found.numbers, found.levels) == (("size", "price"), ("veneer",))
    assert "column 'price': 4 missing values, the median is taken" in found.notes


def test_a_class_may_be_called_none(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("size,kind\n" + "1.5,None\n2.5,some\n" * 6)
    assert read_labelled(path, "kind")[1].tolist() == ["None", "some"] * 6


def test_all_bad_columns_are_named_at_once_and_quoted_for_a_shell():
    frame = BASE.assign(
        **{
            "odd one": [*range(12), *(f"x{k}" for k in range(12))],
            "it's a list": [[k] for k in range(N)],
            "far": [1.0, np.inf] * 12,
        }
    )
    with pytest.raises(InvalidInputError, match="3 columns cannot be used") as caught:
        inspect_columns(frame)
    said = str(caught.value)
    assert "(1) column 'odd one' mixes types: 12 numbers and 12 words" in said
    assert "--categorical 'odd one'" in said
    assert "(3) column 'far' has an infinite value in row 2" in said
    assert said.endswith("""--drop 'odd one' --drop 'it'"'"'s a list' --drop far.""")


def test_a_spreadsheet_and_a_table_of_one_column_get_their_own_advice(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04" + b"\0" * 100)
    with pytest.raises(InvalidInputError, match="spreadsheet or an archive; save the table as CSV"):
        read_table(tmp_path / "t.xlsx")
    (tmp_path / "t.csv").write_text(text(sep="#"), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"one column only: say .* with --sep"):
        read_labelled(tmp_path / "t.csv", "kind")


def test_several_unknown_names_are_refused_at_once(tmp_path):
    (tmp_path / "t.csv").write_text(text(), encoding="utf-8")
    with pytest.raises(
        InvalidInputError, match=r"--drop 'shere' and 'hoe' are not columns.*'share'"
    ):
        read_labelled(tmp_path / "t.csv", "kind", drop=["shere", "hoe"])
    with pytest.raises(InvalidInputError, match="'list price'"):
        read_labelled(tmp_path / "t.csv", "kin")


AMBIGUOUS = {
    "two delimiters": ("x,y|z\n" * 12, r"may be separated by , \(2 fields\) or '\|'.*--sep , or"),
    "thousands or decimals": ("a;k\n" + '"1,250";x\n"2,500";y\n' * 6, "'1,250'.*--decimal , "),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_asked_for(case, tmp_path):
    content, message = AMBIGUOUS[case]
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        inspect_columns(read_table(tmp_path / "t.csv"))


@pytest.mark.parametrize(("decimal", "expected"), [(",", 1.25), (".", 1250.0)])
def test_what_is_said_or_what_the_file_shows_elsewhere_decides(decimal, expected, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;k\n" + "1,250;x\n2,500;y\n" * 6)
    assert arranged(path, Reading(decimal=decimal), "k")[0]["a"][0] == expected
    shown = "0,5" if decimal == "," else "0.5"
    path.write_text("a;b;k\n" + f"1,250;1;x\n2,500;{shown};y\n" * 6)
    assert arranged(path, target="k")[0]["a"][0] == expected


def test_points_that_group_thousands_are_no_decimals_beside_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("inhabitants;share;k\n" + "1.250;0,5;x\n2.500;1,5;y\n" * 6)
    rows, _, _ = arranged(path, target="k")
    assert rows["inhabitants"].tolist() == [1250.0, 2500.0] * 6
    assert rows["share"].tolist() == [0.5, 1.5] * 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sep": ";;"}, "--sep must be one character"),
        ({"sep": "comma", "decimal": ","}, "must differ"),
        ({"decimal": "x"}, "--decimal must be"),
        ({"encoding": "latin-12"}, "--encoding 'latin-12' is unknown"),
        ({"encoding": "hex"}, "is unknown"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        Reading(**options)


def test_options_of_text_are_refused_for_other_files(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    write_table(BASE, tmp_path / "t.parquet")
    for name in (tmp_path / "t.parquet", "iris"):
        with pytest.raises(InvalidInputError, match="--no-header is for CSV files"):
            read_table(name, reading=Reading(header=False))


def test_a_wrong_encoding_is_told_by_what_it_is_not(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + "é,1\n".encode("latin-1") * 12)
    with pytest.raises(InvalidInputError, match=r"not ascii: byte 0xe9 .*line 2\).*latin-1"):
        read_table(tmp_path / "t.csv", reading=Reading(encoding="ascii"))


def test_a_bundled_name_is_a_table_until_a_file_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features, labels = read_labelled("wine")
    assert features.shape == (178, 13)
    assert sorted(set(labels.tolist())) == [1, 2, 3]
    (tmp_path / "wine").write_text(text(), encoding="utf-8")
    assert read_table("wine").shape == BASE.shape


def test_prices_are_refused_as_a_quantity_before_their_classes_are_counted():
    prices = np.round(np.exp(7.8 + np.random.default_rng(0).standard_normal(53_940)))
    whole = pd.DataFrame({"price": prices.astype(int), "v": 0.5})
    for frame in (whole, whole.astype({"price": float}), whole.assign(price=prices + 0.25)):
        with pytest.raises(InvalidInputError, match=r"marginfold does no regression.*qcut"):
            split_target(frame, "price")
    words = whole.assign(price=[f"${v:,.0f}" for v in prices])
    with pytest.raises(InvalidInputError, match=r"quantity: .* different numbers in 53940 rows"):
        split_target(words, "price")


def test_numbers_of_classes_are_classes_however_many():
    for labels in (np.repeat(np.arange(100), 10), np.repeat(np.arange(0, 5, 0.5), 20)):
        frame = pd.DataFrame({"v": np.arange(len(labels)) / 7, "k": labels})
        assert len(set(split_target(frame, "k")[1].tolist())) == len(set(labels.tolist()))


def bomb(n_bytes):
    """A gzip file of a table with one value again and again."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        file.write(b"a,b\n")
        for _ in range(n_bytes // 4_000_000):
            file.write(b"1,2\n" * 1_000_000)
    return packed.getvalue()


def test_what_does_not_fit_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINFOLD_MEMORY_LIMIT", "20MB")
    (tmp_path / "t.csv.gz").write_bytes(bomb(40_000_000))
    with pytest.raises(TooLargeError, match=r"MB are unpacked so far, .* 20 MB are available"):
        read_table(tmp_path / "t.csv.gz")
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,2\n" * 2_000_000)
    with pytest.raises(TooLargeError):
        read_table(tmp_path / "t.csv")


def test_a_parquet_file_is_refused_by_what_it_says_of_itself(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    write_table(pd.DataFrame({"a": np.ones(2_000_000), "b": 1}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 1_000_000
    monkeypatch.setenv("MARGINFOLD_MEMORY_LIMIT", "20MB")
    with pytest.raises(TooLargeError, match="take a part of the rows"):
        read_table(tmp_path / "t.parquet")
