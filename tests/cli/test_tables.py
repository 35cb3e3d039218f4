"""Tables as people have them, on the road from compare and fit to transform and predict."""

from __future__ import annotations

import io
import json
import shlex

import numpy as np
import pytest

from marginfold.cli import main

pytestmark = pytest.mark.attack("hostile tables")

pd = pytest.importorskip("pandas", reason="the command line needs the extra cli")
pytest.importorskip("skops", reason="the command line needs the extra cli")


def shop(n=48):
    """Two kinds of customers with prices, shares, dates, words and a number of their own."""
    rng = np.random.default_rng(3)
    kind = np.arange(n) % 2
    days = pd.Timestamp("2023-11-20") + pd.to_timedelta(rng.permutation(n) + 30 * kind, unit="D")
    return pd.DataFrame(
        {
            "customer": rng.permutation(n) + 5000,
            "spent": np.round(1500 + 900 * kind + 300 * rng.standard_normal(n), 2),
            "share": np.round(20 + 30 * kind + 10 * rng.standard_normal(n), 1),
            "first day": days,
            "town": rng.choice(["Ulm", "Zürich"], n),
            "kind": np.array(["new", "regular"])[kind],
        }
    )


def american(frame):
    return frame.assign(
        spent=[f"${v:,.2f}" for v in frame["spent"]],
        share=[f"{v}%" for v in frame["share"]],
        **{"first day": frame["first day"].dt.strftime("%m/%d/%Y")},
    ).to_csv(index=False)


def german(frame):
    """As a spreadsheet in another country writes it."""
    points = str.maketrans(",.", ".,")
    return frame.assign(
        spent=[f"${v:,.2f}".translate(points) for v in frame["spent"]],
        share=[f"{v} %".translate(points) for v in frame["share"]],
        **{"first day": frame["first day"].dt.strftime("%m/%d/%Y")},
    ).to_csv(index=False, sep=";", lineterminator="\r\n")


OPTIONS = ("--drop-ids", "--dates")


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_reads_new_tables_however_they_are_written(folder, capsys):
    table = shop()
    (folder / "shop.csv").write_text(american(table), encoding="utf-8")
    code, out, err = run(
        capsys, "fit", "shop.csv", "-t", "kind", "-m", "gesvc", *OPTIONS, "--save", "m.skops"
    )
    assert code == 0, err
    for note in ("'customer' is an identifier", "'$", "read as the number", "days since the earl"):
        assert note in err
    code, expected, _ = run(capsys, "predict", "m.skops", "shop.csv")
    assert code == 0
    predicted = pd.read_csv(io.StringIO(expected))["prediction"]
    assert (predicted == table["kind"]).mean() > 0.9
    ways = {
        "german.csv": german(table).encode("latin-1"),
        "shuffled.tsv": table.assign(spent=table["spent"])
        .pipe(lambda t: pd.read_csv(io.StringIO(american(t))))
        .iloc[:, ::-1]
        .to_csv(index=False, sep="\t")
        .encode("utf-16"),
    }
    for name, content in ways.items():
        (folder / name).write_bytes(content)
        encoding = ("--encoding", "latin-1") if name == "german.csv" else ()
        code, out, err = run(capsys, "predict", "m.skops", name, *encoding)
        assert code == 0, err
        assert out == expected


def test_one_row_is_read_like_the_table_of_the_fit(folder, capsys):
    """A single value does not tell thousands from decimals, and no order of day and month."""
    table = shop().drop(columns=["customer", "share", "town"])
    table["visits"] = (table["spent"] * 1000).round()
    text = table.assign(
        visits=[f"{v:,.0f}".replace(",", ".") for v in table["visits"]],
        **{"first day": table["first day"].dt.strftime("%d/%m/%Y")},
    ).to_csv(index=False, sep=";", decimal=",")
    (folder / "t.csv").write_text(text)
    code, _, err = run(capsys, "fit", "t.csv", "-t", "kind", "--dates", "--save", "m.skops")
    assert code == 0, err
    _, whole, _ = run(capsys, "transform", "m.skops", "t.csv", "--json")
    expected = json.loads(whole)["data"]
    header, *lines = text.splitlines()
    for k in (0, 1, 7):
        (folder / "one.csv").write_text(f"{header}\n{lines[k]}\n")
        code, out, err = run(capsys, "transform", "m.skops", "one.csv", "--json")
        assert code == 0, err
        (row,) = json.loads(out)["data"]
        assert row == pytest.approx(expected[k], abs=1e-12)


def test_commas_and_points_of_a_new_table_are_its_own(folder, capsys):
    """What the model knows decides only where the new table does not tell."""
    values = np.round(np.random.default_rng(4).uniform(1000, 9000, (40, 2)), 3)
    table = pd.DataFrame({"many": values[:, 0].round(), "few": values[:, 1], "k": ["a", "b"] * 20})
    table["few"] += 2000 * (table["k"] == "b")
    points = table.assign(many=[f"{v:,.0f}".replace(",", ".") for v in table["many"]])
    points.to_csv("commas.csv", index=False, sep=";", decimal=",")
    table.assign(many=[f"{v:,.0f}" for v in table["many"]]).to_csv("points.csv", index=False)
    said = []
    for learnt in ("commas.csv", "points.csv"):
        fit = ("fit", learnt, "-t", "k", "-m", "gesvc", "--save", "m.skops", "--overwrite")
        assert run(capsys, *fit)[0] == 0
        for new in ("commas.csv", "points.csv"):
            code, out, err = run(capsys, "predict", "m.skops", new)
            assert code == 0, err
            said.append(out)
    assert len(set(said)) == 1


def test_a_table_without_names_goes_from_fit_to_predict(folder, capsys):
    table = shop().drop(columns=["first day", "customer"])
    table.to_csv("t.csv", index=False, header=False)
    arguments = ("fit", "t.csv", "-t", "4", "-m", "gesvc", "--save", "m.skops", "--json")
    code, out, err = run(capsys, *arguments, "--no-header")
    assert code == 0, err
    assert json.loads(out)["target"] == "c4"
    code, out, err = run(capsys, "predict", "m.skops", "t.csv", "--keep", "c4")
    assert code == 0, err
    assert len(out.splitlines()) == len(table) + 1
    code, _, err = run(capsys, *arguments, "--overwrite")
    assert (code, "--no-header" in err) == (2, True)


def test_what_a_model_has_not_seen_is_noted_or_refused(folder, capsys):
    table = shop()
    (folder / "shop.csv").write_text(american(table), encoding="utf-8")
    arguments = ("fit", "shop.csv", "-t", "kind", "-m", "gesvc", *OPTIONS, "--save", "m.skops")
    assert run(capsys, *arguments)[0] == 0
    new = american(table[:3]).replace("Zürich", "Bern").replace("Ulm", " Bern ")
    (folder / "new.csv").write_text(new, encoding="utf-8")
    code, out, err = run(capsys, "predict", "m.skops", "new.csv")
    assert (code, len(out.splitlines())) == (0, 4)
    assert "column 'town': 3 rows have what the model has never seen (Bern)" in err
    assert "column 'town': blanks around" in err
    table[:3].to_csv("bare.csv", index=False)
    code, _, err = run(capsys, "predict", "m.skops", "bare.csv")
    assert (code, err.count("error: ")) == (2, 1)
    assert "column 'share' had percent signs when the model was fitted" in err
    (folder / "other.csv").write_text(american(table[:3]).replace("$", "€"), encoding="utf-8")
    code, _, err = run(capsys, "predict", "m.skops", "other.csv")
    assert code == 2
    assert "column 'spent' was numbers with the sign $ when the model was fitted; row 1" in err


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_all_faults_are_told_in_one_line_with_options_that_work(command, folder, capsys):
    table = shop().assign(
        **{"odd one": [*range(47), "x"], "a note": [[k] for k in range(48)], "far": [1e999] * 48}
    )
    table.to_csv("t.csv", index=False)
    code, out, err = run(capsys, command, "t.csv", "-t", "kind")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "2 columns cannot be used" in err
    advice = shlex.split(err.rsplit("left out with ", 1)[1].strip().rstrip("."))
    assert advice == ["--drop", "odd one", "--drop", "far"]
    if command == "fit":
        assert run(capsys, command, "t.csv", "-t", "kind", *advice)[0] == 0


def test_compare_reads_alike_and_its_command_says_how(folder, capsys):
    (folder / "shop.csv").write_bytes(german(shop()).encode("latin-1"))
    short = ("--methods", "lda,lsva", "--folds", "3", "--repeats", "2", "--jobs", "1", "--json")
    options = ("--encoding", "latin-1", "--drop-ids", "--dates")
    code, out, err = run(capsys, "compare", "shop.csv", "-t", "kind", *options, *short)
    assert code == 0, err
    said = json.loads(out)
    assert min(row["error"] for row in said["methods"]) < 20
    assert "--encoding latin-1 --drop-ids --dates" in said["command"]
    code, _, err = run(capsys, *shlex.split(said["command"])[1:])
    assert code == 0, err


def test_a_bundled_name_is_a_table_everywhere(folder, capsys):
    code, out, err = run(capsys, "fit", "iris", "-m", "gesvc", "--save", "m.skops", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == 150
    code, out, _ = run(capsys, "predict", "m.skops", "iris", "--keep", "label")
    answers = pd.read_csv(io.StringIO(out))
    assert code == 0
    assert (answers["label"] == answers["prediction"]).mean() > 0.9
    code, _, err = run(capsys, "fit", "irs", "-t", "label")
    assert (code, "nor a data set of that name" in err) == (2, True)


REFUSED = {
    "prices": ("price,v\n" + "".join(f"{k}.5,{k % 7}\n" for k in range(90)), (), "regression"),
    "one column": ("kind\n" + "a\nb\n" * 9, ("-t", "kind"), "no column beside the target"),
    "wrong sep": ("price,v\n" + "1,2\n2,1\n" * 9, ("--sep", ";;"), "--sep must be one character"),
    "other sep": ("price,v\n" + "1,2\n2,1\n" * 9, ("--sep", ";"), "Did you mean 'price,v'?"),
    "no number": ("price,v\n" + "1,2\n2,1\n" * 9, ("--decimal", "x"), "--decimal must be"),
    "all missing": ("price,v\n" + "1,\n2,\n" * 9, (), "there is no column to learn from"),
    "two ways": ("price|v,w\n" + "1|a,b\n2|c,d\n" * 9, (), "--sep , or --sep '|'"),
}


@pytest.mark.parametrize("command", ["fit", "compare"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_the_words_of_the_command_line(
    case, command, folder, capsys
):
    content, arguments, message = REFUSED[case]
    (folder / "t.csv").write_text(content)
    code, out, err = run(capsys, command, "t.csv", "-t", "price", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
