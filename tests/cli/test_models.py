"""The commands fit, transform and predict, run as users run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from cli.bad_tables import BAD_TABLES, HEADER, ROWS, people

import marginfold
from marginfold import GESVC
from marginfold.cli import main
from marginfold.cli.errors import explain
from marginfold.compare.methods import procedure
from marginfold.compare.table import Size
from marginfold.data import read_table
from marginfold.data.models import load_model, save_model

pd = pytest.importorskip("pandas", reason="the command line needs the extra cli")
pytest.importorskip("skops", reason="the command line needs the extra cli")


JOBS = ("nurse", "čáp", "smith")

BAD_INPUT = {
    **BAD_TABLES,
    "unknown method": (HEADER + ROWS, ("--method", "lsav"), "did you mean lsva?"),
    "the table itself": (HEADER + ROWS, ("--save", "t.csv"), "never replaced"),
    "no folder": (HEADER + ROWS, ("--save", "no/where.skops"), "there is no folder"),
    "wrong call": (HEADER + ROWS, ("--dims", "two"), "marginfold fit --help"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_line_and_nothing_is_written(case, tmp_path, monkeypatch, capsys):
    content, arguments, message = BAD_INPUT[case]
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "t.csv").write_bytes(content)
    assert main(["fit", "t.csv", "--target", "kind", "--save", "m.skops", *arguments]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("error: ")
    assert message in said.err
    assert "Traceback" not in said.err
    kept = {} if content is None else {"t.csv": content}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept


def test_the_real_command_refuses_in_one_line(command):
    (command.folder / "t.csv").write_bytes(HEADER + ROWS)
    before = command.listing()
    result = command("fit", "t.csv", "--target", "knd", "--save", "m.skops")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("error: ")
    assert "Did you mean 'kind'?" in result.stderr
    assert command.listing() == before


def run(folder, capsys, *arguments):
    """Run a command in this process; return code, output and errors."""
    code = main([str(folder / a) if "." in a and a[0] not in "-." else a for a in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-C", "-1"), "-C must be a number above 0; got -1"),
        (("--graph-weight", "nan"), "--graph-weight must be a number 0 or more; got nan"),
        (("--method", "gesvc", "--dims", "2"), "method gesvc has no --dims; it takes --kernel,"),
        (("--kernel", "cubic"), "--kernel must be one of"),
        (("--graph", "tree"), "--graph must be one of knn"),
        (("--class-weight", "2"), "--class-weight must be one of balanced, none"),
        (("--kernel", "linear", "--low-rank", "9"), "--low-rank needs a kernel"),
        (("--scale", "log"), "scale must be one of"),
        (("--drop", "kind"), "is the target"),
    ],
)
def test_bad_options_are_refused_like_bad_input(arguments, message, tmp_path, capsys):
    (tmp_path / "t.csv").write_bytes(HEADER + ROWS)
    code, out, err = run(
        tmp_path, capsys, "fit", "t.csv", "-t", "kind", "-s", "m.skops", *arguments
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_from_a_table_to_a_model_and_back(command, capsys):
    """A fit here and a real command on its model give what the library gives."""
    table = people(60, JOBS)
    table.to_csv(command.folder / "people.csv", index=False)
    arguments = ("fit", "people.csv", "--target", "kind", "--save", "m.skops", "--json")
    code, out, err = run(command.folder, capsys, *arguments)
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["classes"] == {"nurse": 20, "smith": 20, "čáp": 20}
    assert (result["rows"], result["columns"], result["features"]) == (60, 4, 7)
    names = [c["name"] for c in result["components"]]
    assert names == [f"lsva{k}" for k in range(result["chosen"]["--dims"])]
    assert all(c["gap"] < 1e-8 and c["gain"] > 0 for c in result["components"])

    done = command("transform", "m.skops", "people.csv", "--keep", "kind")
    assert (done.returncode, done.stderr) == (0, "")
    (command.folder / "written.csv").write_text(done.stdout, encoding="utf-8")
    written = read_table(command.folder / "written.csv")
    assert list(written.columns) == ["kind", *names]
    assert written["kind"].tolist() == table["kind"].tolist()
    expected = load_model(command.folder / "m.skops").transform(table)
    np.testing.assert_array_equal(written[names], expected)
    means = written.groupby("kind")[names].mean().to_numpy()
    assert np.linalg.matrix_rank(means - means.mean(axis=0), tol=0.5) == 2


def test_predictions_are_the_labels_as_they_were(tmp_path, capsys):
    table = people(60, JOBS)
    table.to_csv(tmp_path / "p.csv", index=False)
    code, out, err = run(
        tmp_path, capsys, "fit", "p.csv", "-t", "kind", "-m", "gesvc", "--save", "m.skops"
    )
    assert code == 0
    assert "5-fold error" in out
    assert err.count("note: ") == 2
    code, out, _ = run(tmp_path, capsys, "predict", "m.skops", "p.csv", "--out", "o.csv", "--json")
    assert code == 0
    assert json.loads(out) == {
        "rows": 60,
        "columns": ["prediction"],
        "notes": [],
        "out": str(tmp_path / "o.csv"),
    }
    predicted = pd.read_csv(tmp_path / "o.csv")["prediction"]
    assert (predicted == table["kind"]).mean() > 0.9

    before = (tmp_path / "o.csv").read_bytes()
    code, _, err = run(tmp_path, capsys, "predict", "m.skops", "p.csv", "--out", "o.csv")
    assert code == 2
    assert "exists" in err
    assert (tmp_path / "o.csv").read_bytes() == before
    code, _, _ = run(
        tmp_path, capsys, "predict", "m.skops", "p.csv", "--out", "o.csv", "--overwrite"
    )
    assert code == 0

    code, out, _ = run(tmp_path, capsys, "predict", "m.skops", "p.csv", "--json")
    assert [row["prediction"] for row in json.loads(out)["data"]] == predicted.tolist()


def test_the_cross_validated_error_is_that_of_scikit_learn(tmp_path, capsys):
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.standard_normal((80, 3)) + y[:, None] * 0.7
    pd.DataFrame(X, columns=list("abc")).assign(kind=y).to_csv(tmp_path / "t.csv", index=False)
    _, out, _ = run(tmp_path, capsys, "fit", "t.csv", "-t", "kind", "-m", "gesvc", "--json")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    measured = procedure("gesvc", Size.of(y, 3))
    scores = cross_val_score(make_pipeline(StandardScaler(), measured), X, y, cv=folds)
    assert json.loads(out)["cross_validated_error"] == pytest.approx(1 - scores.mean())
    assert 0 < 1 - scores.mean() < 0.5


@pytest.fixture
def models(tmp_path, capsys):
    people(60, JOBS).to_csv(tmp_path / "p.csv", index=False)
    for method in ("mmda", "svc-rbf"):
        assert (
            run(
                tmp_path,
                capsys,
                "fit",
                "p.csv",
                "-t",
                "kind",
                "-m",
                method,
                "-s",
                f"{method}.skops",
            )[0]
            == 0
        )
    return tmp_path


def test_what_a_model_cannot_do_is_said_with_what_it_can(models, capsys):
    def refused(*arguments):
        code, out, err = run(models, capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err

    listing = sorted(models.iterdir())
    assert "marginfold predict" in refused("transform", "svc-rbf.skops", "p.csv")
    said = refused("predict", "no.skops", "p.csv")
    assert "there is no model file" in said
    assert "marginfold fit --save" in said
    assert "not a model file (skops)" in refused("predict", "p.csv", "p.csv")
    assert "must end with" in refused("transform", "mmda.skops", "p.csv", "--out", "o.xlsx")
    assert "'towm' is not a column" in refused("transform", "mmda.skops", "p.csv", "--keep", "towm")
    assert sorted(models.iterdir()) == listing


def test_missing_and_extra_columns_are_named(models, capsys):
    table = people(60, JOBS)
    table.drop(columns=["town", "age"]).to_csv(models / "less.csv", index=False)
    code, out, err = run(models, capsys, "transform", "mmda.skops", "less.csv")
    assert (code, out) == (2, "")
    assert "lacks 2 of the model's 4 columns: age, town" in err
    table.iloc[:2].drop(columns="kind").assign(more=1).to_csv(models / "more.csv", index=False)
    code, out, err = run(models, capsys, "transform", "mmda.skops", "more.csv")
    assert code == 0
    assert err == "note: columns that the model does not use: more\n"
    assert out.count("\n") == 3


def test_a_bare_estimator_is_no_model_of_tables(tmp_path, capsys):
    save_model(GESVC().fit([[0.0], [1.0]], [0, 1]), tmp_path / "m.skops")
    code, _, err = run(tmp_path, capsys, "predict", "m.skops", "p.csv")
    assert code == 2
    assert "contains only a GESVC, without column names" in err


def test_columns_can_be_left_out_or_taken_as_categories(tmp_path, capsys):
    table = people(60, JOBS).assign(note=[f"n{k}" for k in range(60)], code=[1, 2, 3] * 20)
    table.to_csv(tmp_path / "p.csv", index=False)
    arguments = ("fit", "p.csv", "-t", "kind", "--json")
    code, out, _ = run(tmp_path, capsys, *arguments)
    assert code == 0
    assert "column 'note' is free text or an identifier" in str(json.loads(out)["notes"])
    code, out, _ = run(tmp_path, capsys, *arguments, "--drop", "town", "--categorical", "code")
    assert code == 0
    assert (json.loads(out)["columns"], json.loads(out)["features"]) == (5, 7)


def test_help_has_examples_and_loads_nothing_heavy(command):
    program = (
        "import sys; from marginfold.cli import main; main(['--help']); "
        "print([m for m in ('numpy', 'sklearn', 'pandas', 'matplotlib', 'scipy', 'skops')"
        " if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"
    for name in ("fit", "transform", "predict"):
        assert f"  {name} " in result.stdout


@pytest.mark.parametrize("name", ["fit", "transform", "predict"])
def test_every_command_ends_its_help_with_examples(name, capsys):
    assert main([name, "--help"]) == 0
    examples = capsys.readouterr().out.partition("Examples:")[2].strip().splitlines()[:3]
    assert all(line.strip().startswith(f"marginfold {name} ") for line in examples)


def test_the_version_and_a_call_without_a_command(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"marginfold {marginfold.__version__}\n"
    assert main([]) == 0
    said = capsys.readouterr().out
    assert "Commands:" in said
    assert "Exit codes: 0 done; 1 results are missing" in said


def test_an_unexpected_error_is_one_line_and_a_traceback_only_for_debugging(
    tmp_path, capsys, monkeypatch
):
    def broken(*_, **__):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("marginfold.cli.fit.Settings.check", broken)
    assert main(["fit", "t.csv", "-t", "k"]) == 1
    err = capsys.readouterr().err
    assert err == (
        "error: unexpected ZeroDivisionError: division by zero "
        "(run with --debug for the traceback)\n"
    )
    assert main(["fit", "t.csv", "-t", "k", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_failures_of_the_system_and_missing_packages_are_the_users_to_mend():
    assert explain(OSError(28, "No space left on device", "m.skops")) == (
        2,
        "m.skops: No space left on device",
    )
    code, line = explain(ModuleNotFoundError("No module named 'skops'", name="skops"))
    assert (code, line) == (2, 'skops is not installed: pip install "marginfold[cli]"')
    assert explain(ModuleNotFoundError("No module named 'x'", name="x"))[0] == 1


def test_without_typer_the_line_that_installs_it_is_shown(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(["--help"]) == 2
    assert 'pip install "marginfold[cli]"' in capsys.readouterr().err


@pytest.mark.attack("kills and interrupts")
@pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")
def test_an_interrupt_is_said_and_leaves_nothing(command):
    program = (
        "import os, signal, sys; from marginfold.cli import main;"
        "import marginfold.data.target as t;"
        "t.read_table = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT);"
        "sys.exit(main(['fit', 't.csv', '-t', 'k', '--save', 'm.skops']))"
    )
    (command.folder / "t.csv").write_bytes(HEADER + ROWS)
    before = command.listing()
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=command.folder, capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (130, "interrupted\n")
    assert command.listing() == before
