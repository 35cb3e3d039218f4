"""The command compare, run as users run it: answers, bad input, stops and odd names."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cli.bad_tables import BAD_TABLES, HEADER, ROWS, people

from marginfold.cli import main
from marginfold.cli.compare import _seconds
from marginfold.runtime import jit

pd = pytest.importorskip("pandas", reason="the command line needs the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")
pytest.importorskip("matplotlib", reason="reports need the extra cli")

SOURCE = Path(__file__).parents[2] / "src"

SHORT = ("--folds", "2", "--repeats", "1", "--jobs", "1")

ODD_LABELS = ('a, "b"', "<script>alert(1)</script>", "čáp $x_1$ & co")


BAD_INPUT = {
    **BAD_TABLES,
    "a rare class": (HEADER + b"1.5,red,a\n" * 9 + b"2.5,blue,b\n" * 2, (), "second largest class"),
    "unknown method": (HEADER + ROWS, ("--methods", "lda,lsav"), "Unknown methods: 'lsav'"),
    "no method": (HEADER + ROWS, ("--methods", ""), "Unknown methods: ''"),
    "unknown protocol": (HEADER + ROWS, ("--protocol", "fair"), "--protocol is one of nested"),
    "no columns": (HEADER + ROWS, ("--drop", "size", "--drop", "hue"), "column"),
    "unknown group": (HEADER + ROWS, ("--group", "sice"), "Did you mean 'size'?"),
    "the target as group": (HEADER + ROWS, ("--group", "kind"), "--group kind is the target"),
    "unknown drop": (HEADER + ROWS, ("--drop", "sice"), "Did you mean 'size'?"),
    "dropped target": (HEADER + ROWS, ("--drop", "kind"), "--drop kind is the target"),
    "report over the table": (HEADER + ROWS, ("--report", "t.csv"), "never replaced"),
    "no folder": (HEADER + ROWS, ("--report", "no/where.html"), "there is no folder"),
    "run is a file": (HEADER + ROWS, ("--run", "t.csv"), "the folder t.csv cannot be created"),
    "budget of words": (HEADER + ROWS, ("--budget", "fast"), "--budget is a time above 0 such as"),
    "no budget": (HEADER + ROWS, ("--budget", "0s"), "60s, 5m or 1h; got '0s'"),
    "budget below nothing": (HEADER + ROWS, ("--budget=-5s",), "got '-5s'"),
    "budget in days": (HEADER + ROWS, ("--budget", "1d"), "got '1d'"),
    "two plans": (HEADER + ROWS, ("--budget", "5m", "--thorough"), "cannot be used together"),
    "wrong call": (HEADER + ROWS, ("--folds", "1"), "marginfold compare --help"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_line_and_nothing_is_written(case, tmp_path, monkeypatch, capsys):
    content, arguments, message = BAD_INPUT[case]
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "t.csv").write_bytes(content)
    monkeypatch.setattr("marginfold.protocols.run.run_tasks", refuse_to_compute)
    assert main(["compare", "t.csv", "--target", "kind", "--report", "r.html", *arguments]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("error: ")
    assert message in said.err
    kept = {} if content is None else {"t.csv": content}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept


def refuse_to_compute(*_, **__):
    raise AssertionError("computing began before the input was refused")


BAD_SETS = [
    (("wnie",), "wnie is neither a file nor a data set"),
    (("wine", "--target", "alcohol"), "the classes of the set wine are 'label'"),
    (("wine", "--drop", "label"), "--drop label is the target"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_SETS)
def test_bad_names_are_refused_in_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("marginfold.protocols.run.run_tasks", refuse_to_compute)
    assert main(["compare", *arguments, "--report", "r.html", "--run", "run"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert message in said.err
    assert "Traceback" not in said.err
    assert list(tmp_path.iterdir()) == []


def strict(text):
    """Read JSON that has no NaN and no infinity."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_tidy_table_gets_an_answer_and_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people(45, ODD_LABELS).to_csv("p.csv", index=False)
    methods = ("--methods", "lda,lsva,gepsvc,largest class")
    code = main(
        ["compare", "p.csv", "-t", "kind", *methods, *SHORT, "--report", "r.html", "--json"]
    )
    out, err = capsys.readouterr()
    assert code == 0, err
    said = strict(out)
    assert (said["data"], said["target"], said["rows"]) == ("p.csv", "kind", 45)
    methods = {row["method"]: row for row in said["methods"]}
    assert methods.keys() == {"LDA", "LSVA", "GEPSVC", "largest class"}
    errors = [row["error"] for row in said["methods"]]
    assert errors == sorted(errors)
    assert methods["largest class"]["error"] == pytest.approx(200 / 3, abs=3)
    assert methods["LDA"]["error"] < 40
    assert said["best"] == said["methods"][0]["method"]
    assert said["recommendation"][0].startswith(f"{said['best']} (")
    assert "makes the fewest errors" in said["recommendation"][0]
    assert "column 'height': 1 missing value, the median is taken" in said["notes"]
    assert err.splitlines() == [f"note: {note}" for note in said["notes"]]
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert said["recommendation"][0] in page
    for words in ("Error by dimension", "Confusion matrix", "Columns that matter most", "LDA: "):
        assert words in page
    assert said["run"] == str(Path("marginfold-runs") / "compare-p")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["marginfold-runs", "p.csv", "r.html"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Records are kept in the current folder."""
    monkeypatch.chdir(tmp_path)


def compare(folder, capsys, *arguments):
    """Run the command in this process; return what its JSON says."""
    assert main(["compare", *SHORT, *map(str, arguments), "--json"]) == 0
    return strict(capsys.readouterr().out)


def errors_of(said):
    return {row["method"]: row["error"] for row in said["methods"]}


def test_parquet_says_what_csv_says(tmp_path, capsys):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
    people(45, ODD_LABELS).to_csv(tmp_path / "p.csv", index=False)
    people(45, ODD_LABELS).to_parquet(tmp_path / "p.parquet")
    first, second = (
        compare(tmp_path, capsys, tmp_path / name, "-t", "kind", "--methods", "lda")
        for name in ("p.csv", "p.parquet")
    )
    assert errors_of(first) == errors_of(second)


def test_a_changed_file_or_column_kind_is_not_answered_by_old_records(tmp_path, capsys):
    table = people(45, ODD_LABELS).assign(code=np.arange(45) % 5)
    path = tmp_path / "p.csv"
    arguments = (path, "-t", "kind", "--methods", "lda", "--run", tmp_path / "run")

    def tasks(*more):
        return compare(tmp_path, capsys, *arguments, *more)["tasks"]

    table.to_csv(path, index=False)
    assert tasks() == {"found": 0, "done": 4, "skipped": 0, "failed": 0}
    assert tasks() == {"found": 4, "done": 0, "skipped": 0, "failed": 0}
    with_picture = tasks("--report", tmp_path / "r.html")
    assert with_picture == {"found": 4, "done": 2, "skipped": 0, "failed": 0}
    assert tasks("--categorical", "code")["found"] == 0
    assert tasks("--drop", "age")["found"] == 0
    assert tasks("--folds", "3")["found"] == 0
    assert tasks("--repeats", "2") == {"found": 4, "done": 4, "skipped": 0, "failed": 0}
    table.assign(age=table["age"] + (table.index == 4)).to_csv(path, index=False)
    assert tasks()["found"] == 0


def test_the_table_and_its_words(tmp_path, capsys):
    people(45, ODD_LABELS).assign(kind=np.arange(45) % 3 * 10).to_csv(
        tmp_path / "p.csv", index=False
    )
    arguments = [str(tmp_path / "p.csv"), "-t", "kind", "--methods", "lda,all features"]
    assert main(["compare", *arguments, *SHORT, "--repeats", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["method", "error", "%"]
    assert len({len(line) for line in lines[:4]}) == 1  # columns are aligned
    *words, keep, command, records = lines
    assert records == f"records: {Path('marginfold-runs/compare-p/records.sqlite')}"
    assert max(map(len, words)) <= 100
    assert keep == "To keep it (or --save model.skops here):"
    assert command.startswith("  marginfold fit")  # in one line, to be copied
    assert "largest class" in lines[3]
    assert "inf" not in lines[3]
    assert lines[4].startswith("(error: share of held-out rows that are predicted wrongly; ")
    assert "makes the fewest errors" in lines[lines.index("") + 1]


@pytest.mark.parametrize("how", [(), ("--json",)], ids=["table", "json"])
def test_without_any_measured_method_the_exit_code_is_one(how, tmp_path, capsys):
    """One row differs from all others: where it is held out no method finds anything."""
    table = people(45, ODD_LABELS)[["kind"]].assign(age=np.where(np.arange(45) == 5, 1.5, 0.5))
    table.to_csv(tmp_path / "p.csv", index=False)
    arguments = [str(tmp_path / "p.csv"), "-t", "kind", "--methods", "lda,lsva", *SHORT, *how]
    assert main(["compare", *arguments]) == 1
    said = capsys.readouterr()
    last = said.err.splitlines()[-1]
    assert last.startswith("error: no method could be measured on all folds: ")
    assert "no scatter on these rows" in last
    if how:
        assert strict(said.out)["best"] == ""
    else:
        *_, sentence, records = said.out.splitlines()
        assert sentence == "No method could be measured on all folds."
        assert records.startswith("records: ")  # kept, and said where


COMPARISON = ("compare", "wine", "--methods", "lsva,lda", "--folds", "2", "--json")


def running(folder):
    """Start a comparison of a few seconds by two processes, in a group of their own."""
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "marginfold", *COMPARISON),
            *("--run", str(folder), "--jobs", "2"),
        ],
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_tasks(n_tasks, folder, process):
    uri = f"{(folder / 'records.sqlite').as_uri()}?mode=ro"
    while process.poll() is None:
        try:
            with sqlite3.connect(uri, uri=True) as connection:
                query = "SELECT COUNT(DISTINCT task) FROM records"
                if connection.execute(query).fetchone()[0] >= n_tasks:
                    return
        except sqlite3.Error:
            pass
        time.sleep(0.05)


def evidence(folder):
    """All records but their times."""
    with sqlite3.connect(folder / "records.sqlite") as connection:
        return connection.execute(
            "SELECT task, part, method, seed, fold, params, dimension, metric, value, status "
            "FROM records ORDER BY task, part"
        ).fetchall()


@pytest.mark.attack("kills and interrupts")
def test_an_interrupted_comparison_goes_on_to_the_same_records(tmp_path, monkeypatch, capsys):
    """Begun by two processes and finished by one, it is as if undisturbed in this one."""
    monkeypatch.setenv(jit.VARIABLE, "never")  # else the last bits depend on what ran before
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    process = running(stopped)
    wait_for_tasks(4, stopped, process)  # of ten
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=100)
    kept = f"note: what was computed is kept in {stopped}: the same command goes on from there\n"
    assert (process.returncode, out, err) == (130, "", kept + "interrupted\n")
    assert evidence(stopped)
    resumed, undisturbed = (alone(folder, capsys) for folder in (stopped, whole))
    assert resumed["tasks"]["found"] >= 4
    assert undisturbed["tasks"]["found"] == 0
    assert evidence(stopped) == evidence(whole)
    assert resumed["recommendation"] == undisturbed["recommendation"]


def alone(folder, capsys):
    """Run the comparison in this process; return what its JSON says."""
    assert main([*COMPARISON, "--run", str(folder), "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""  # no bar without a terminal
    return strict(out)


def test_a_terminal_gets_a_bar_without_colours(terminal, capsys):
    """Standard error is a terminal of its own; NO_COLOR is heeded."""
    with terminal.as_standard_error():
        assert main(["compare", "iris", "--methods", "lda", *SHORT]) == 0
    bar = terminal.shown()
    for words in ("method", "error %", "LDA", "largest class", "running", "0/4  about"):
        assert words in bar
    assert "\x1b[3" not in bar  # the sequences of colours
    assert "\x1b" not in capsys.readouterr().out


def test_without_a_terminal_each_method_has_a_line_as_it_comes(capsys):
    assert main(["compare", "iris", "--methods", "lda,pca", *SHORT]) == 0
    said = capsys.readouterr().err
    for method in ("LDA", "PCA", "largest class"):
        assert re.search(rf"^{method}: \d+\.\d % wrong on the first of 2 folds", said, re.MULTILINE)


def test_records_are_kept_unless_they_are_asked_for(capsys):
    """The second time nothing is computed; another table of that name finds nothing."""
    people(45, ODD_LABELS).to_csv("p.csv", index=False)
    arguments = ("p.csv", "-t", "kind", "--methods", "lda")
    first, second = (compare(None, capsys, *arguments) for _ in range(2))
    assert (first["tasks"]["found"], second["tasks"]["done"]) == (0, 0)
    assert second["methods"] == first["methods"]
    people(48, ODD_LABELS).to_csv("p.csv", index=False)
    assert compare(None, capsys, *arguments)["tasks"]["found"] == 0


def test_a_sample_is_said_before_and_after(capsys):
    people(1500, ODD_LABELS).to_csv("p.csv", index=False)
    arguments = ["p.csv", "-t", "kind", "--methods", "lda", *SHORT]
    assert main(["compare", *arguments, "--budget", "0.001s"]) == 0
    out, err = capsys.readouterr()
    line = "Compared on a sample of 501 of the 1,500 rows"
    assert err.startswith(f"note: {line}")
    assert line in out
    assert main(["compare", *arguments, "--thorough"]) == 0
    assert "sample" not in "".join(capsys.readouterr())


def test_nothing_is_kept_after_too_few_folds(tmp_path, capsys):
    """Two folds give no interval: --save is refused before anything runs, no command is advised."""
    people(45, ODD_LABELS).to_csv("p.csv", index=False)
    arguments = ["compare", "p.csv", "-t", "kind", "--methods", "lda", *SHORT]
    assert main([*arguments, "--save", "m.skops"]) == 2
    err = capsys.readouterr().err
    assert "2 folds cannot show that: give more --folds or --repeats" in err
    assert not Path("m.skops").exists()
    said = _answer([*arguments, "--json"], capsys)
    assert said["command"] is None
    assert said["python"] is None
    more = [*arguments[:-2], "--repeats", "2", "--jobs", "1", "--json"]
    assert _answer(more, capsys)["command"].startswith("marginfold fit p.csv")


def test_a_model_of_lightgbm_is_kept_in_python_only(tmp_path, capsys):
    pytest.importorskip("lightgbm")
    arguments = ["compare", "iris", "--methods", "lightgbm", "--folds", "3", "--jobs", "1"]
    assert main([*arguments, "--save", "m.skops", "--json"]) == 1
    out, err = capsys.readouterr()
    assert (
        "m.skops was not written: a model file cannot contain models of the package lightgbm" in err
    )
    said = strict(out)
    assert said["command"] is None
    assert "LGBMClassifier(" in said["python"]
    assert main(arguments) == 0
    assert "No command keeps it: a model file cannot contain models" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the clock needs POSIX signals")
def test_the_clock_stops_what_runs_away_and_says_so(tmp_path, monkeypatch, capsys):
    """Every task takes ten times the limit; the next run is as if nothing had happened."""
    people(45, ODD_LABELS).to_csv("p.csv", index=False)
    arguments = ["compare", "p.csv", "-t", "kind", "--methods", "lda", *SHORT, "--json"]
    with monkeypatch.context() as slow:
        slow.setattr("marginfold.cli.compare.CLOCK", 0.3 / 60)
        slow.setattr("marginfold.cli.compare.LEAST_CLOCK", 0.0)
        slow.setattr("marginfold.compare.table.folds", lambda *_, **__: time.sleep(3))
        begun = time.monotonic()
        assert main(arguments) == 1
    assert time.monotonic() - begun < 3
    said = strict(capsys.readouterr().out)
    assert said["best"] == ""
    assert said["recommendation"][0].startswith("STOPPED BY THE CLOCK")
    assert main(arguments) == 0
    assert strict(capsys.readouterr().out)["tasks"]["done"] == 4


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_when_the_budget_is_spent_no_further_method_is_begun(jobs, monkeypatch, capsys):
    """The answer says which; the same command takes them up and ends as if undisturbed."""
    people(45, ODD_LABELS).to_csv("p.csv", index=False)
    arguments = ["compare", "p.csv", "-t", "kind", "--methods", "lda,pca", *SHORT, "--json"]
    folders = [["--run", name, "--jobs", jobs] for name in ("spent", "whole")]
    with monkeypatch.context() as hasty:
        hasty.setattr("marginfold.cli.work.LEAST_BEGUN", 0.0)
        assert main([*arguments, *folders[0], "--budget", "0.000001s"]) == 1
    said = strict(capsys.readouterr().out)
    assert {row["reason"].split(";")[0] for row in said["methods"]} == {
        "not begun within twice the budget of 1e-06 s"
    }
    resumed, whole = (_answer([*arguments, *folder], capsys) for folder in folders)
    assert errors_of(resumed) == errors_of(whole)
    assert resumed["recommendation"] == whole["recommendation"]


def _answer(arguments, capsys):
    assert main(arguments) == 0
    return strict(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 60.0), ("60s", 60.0), ("90", 90.0), ("2m", 120.0), (" 1.5 h ", 5400.0), (".5s", 0.5)],
)
def test_a_budget_is_read_as_people_write_it(text, seconds):
    assert _seconds(text, thorough=False) == seconds
    assert _seconds(None, thorough=True) is None


def test_the_queries_of_a_report_find_the_records_of_its_numbers(tmp_path, capsys):
    """Records of another content, and of more repeats, lie in the same folder."""
    path, page = tmp_path / "p.csv", tmp_path / "r.html"
    arguments = ("-t", "kind", "--methods", "lda", "--run", tmp_path / "run")
    people(45, ODD_LABELS).to_csv(path, index=False)
    compare(tmp_path, capsys, path, *arguments, "--repeats", "2")
    people(48, ODD_LABELS).to_csv(path, index=False)
    compare(tmp_path, capsys, path, *arguments, "--repeats", "2")
    said = compare(tmp_path, capsys, path, *arguments, "--report", page)
    query = next(
        line
        for line in html.unescape(page.read_text(encoding="utf-8")).splitlines()
        if "SELECT" in line and "'LDA'" in line and "metric = 'error'" in line
    )
    query = re.sub(r"<[^>]+>", "", query[query.index("SELECT") :])
    with sqlite3.connect(tmp_path / "run" / "records.sqlite") as connection:
        rows = connection.execute(query).fetchall()
    assert len(rows) == 2
    values = [row[5] for row in rows]
    assert errors_of(said)["LDA"] == pytest.approx(100 * np.mean(values))


# ------------------------------------------------------------------------------ keeping the best


def test_the_best_method_is_saved_as_it_was_measured_and_predicts(tmp_path, capsys):
    pytest.importorskip("skops")
    from marginfold.compare.comparison import keep
    from marginfold.compare.runs import Comparison
    from marginfold.compare.table import Source
    from marginfold.data.models import load_model

    rng = np.random.default_rng(0)
    kind = np.arange(60) % 3
    frame = pd.DataFrame(rng.standard_normal((60, 3)) + 3.0 * np.eye(3)[kind], columns=list("abc"))
    path, model = tmp_path / "t.csv", tmp_path / "best.skops"
    frame.assign(kind=kind).to_csv(path, index=False)
    said = compare(
        tmp_path,
        capsys,
        path,
        "-t",
        "kind",
        "--methods",
        "lda,pca",
        "--repeats",
        2,
        "--save",
        model,
    )
    assert said["saved"] == str(model)
    assert "SubspaceSearchCV(" in said["python"]
    expected = keep(said["best"], Comparison.of(Source(str(path), "kind"), [said["best"]]))
    np.testing.assert_array_equal(load_model(model).predict(frame), expected.predict(frame))
    rows = tmp_path / "new.csv"
    frame.to_csv(rows, index=False)
    assert main(["predict", str(model), str(rows), "--out", str(tmp_path / "said.csv")]) == 0


def test_a_model_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path, capsys
):
    pytest.importorskip("skops")
    people(45, ODD_LABELS).to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "there.skops").write_text("mine")
    arguments = ["compare", str(tmp_path / "p.csv"), "-t", "kind", "--run", str(tmp_path / "run")]
    assert main([*arguments, "--save", str(tmp_path / "there.skops")]) == 2
    assert (tmp_path / "there.skops").read_text() == "mine"
    assert not (tmp_path / "run").exists()


def test_nothing_is_saved_where_nothing_was_learnt(tmp_path, capsys):
    pytest.importorskip("skops")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((80, 2)), columns=["a", "b"])
    frame["kind"] = rng.permutation(np.arange(80) % 8 == 0).astype(int)
    frame.to_csv(tmp_path / "p.csv", index=False)
    arguments = ["compare", str(tmp_path / "p.csv"), "-t", "kind", "--methods", "lda"]
    saved = tmp_path / "m.skops"
    assert main([*arguments, "--run", str(tmp_path / "run"), "--save", str(saved)]) == 1
    assert "was not written" in capsys.readouterr().err
    assert not saved.exists()
