"""Every method of the catalogue is fitted, kept and asked by the command line."""

from __future__ import annotations

import io
import json
import shlex
import warnings

import numpy as np
import pytest
from cli.bad_tables import people
from scipy.spatial.distance import cdist
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import GESVC, LowRankKernel
from marginfold.cli import main
from marginfold.cli.fit import METHODS
from marginfold.cli.fitting import separation
from marginfold.cli.settings import CLASS_WEIGHTS, GRAPHS, KERNELS, in_words
from marginfold.compare import methods as catalogue
from marginfold.compare.methods import command_name, procedure
from marginfold.compare.table import Size
from marginfold.data import load
from marginfold.data.answers import opened
from marginfold.data.models import load_model
from marginfold.graphs import SHORTHANDS

pd = pytest.importorskip("pandas", reason="the command line needs the extra cli")
pytest.importorskip("skops", reason="the command line needs the extra cli")

INSTALLED = [name for name in METHODS if name != "lightgbm"]
EMBEDDINGS = (
    *("pca", "lda", "lpp", "npe", "graphembedding", "mmda", "lsva", "lsva-permuted-graph"),
    *("wsvda", "laplacianeigenmaps", "locallylinearembedding", "kpca", "kda", "klsva", "nca"),
    "marginmap",
)


def groups(n=45, n_columns=3, n_classes=3, seed=0):
    """Numbers of overlapping classes, each with a mean of its own."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.standard_normal((n, n_columns)) + 1.8 * np.eye(n_classes, n_columns)[y], y


def as_table(X, labels):
    return pd.DataFrame(X, columns=[f"column {k}" for k in range(X.shape[1])]).assign(kind=labels)


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own; return its code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def done(said):
    """Run a command that must work; return its table, or its object if that is JSON."""

    def run(*arguments):
        code, out, err = said(*arguments)
        assert code == 0, err
        return json.loads(out) if "--json" in arguments else pd.read_csv(io.StringIO(out))

    return run


@pytest.fixture
def refused(said):
    """Run a command that must not work; return its last line, after notes on the table."""

    def run(*arguments):
        code, out, err = said(*arguments)
        assert (code, out, err.count("error: ")) == (2, "", 1)
        return err.splitlines()[-1]

    return run


def test_the_methods_of_the_command_line_are_those_of_the_catalogue():
    assert [command_name(name) for name in catalogue.METHODS] == list(METHODS)
    assert sorted(SHORTHANDS) == sorted(GRAPHS)


def test_help_names_every_method_and_every_word_of_an_option(said):
    words = " ".join(said("fit", "--help")[1].split())
    for name in (*METHODS, *KERNELS, *GRAPHS, *CLASS_WEIGHTS):
        assert name in words or name in words.replace(" ", "")


@pytest.mark.parametrize("method", INSTALLED)
def test_every_method_is_kept_as_the_procedure_that_a_comparison_measures(method, done, said):
    X, y = groups()
    labels = np.array(["ash", "elm", "oak tree"])[y]
    as_table(X, labels).to_csv("t.csv", index=False)
    new, _ = groups(seed=1)
    pd.DataFrame(new, columns=[f"column {k}" for k in range(3)]).to_csv("new.csv", index=False)
    result = done("fit", "t.csv", "-t", "kind", "-m", method, "-s", "m.skops", "--json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_hand = make_pipeline(StandardScaler(), procedure(method, Size.of(y, 3)))
        by_hand.fit(X, labels)
    predicted = done("predict", "m.skops", "new.csv")["prediction"]
    assert (predicted == by_hand.predict(new)).mean() > 0.97
    assert 0 < result["cross_validated_error"] < 0.7
    assert result["chosen"].keys() <= {"-C", "--graph-weight", "--dims", "--neighbors", "--ridge"}
    options = [word for pair in result["chosen"].items() for word in pair]
    assert done("fit", "t.csv", "-t", "kind", "-m", method, *options, "--json")["chosen"] == {}
    code, out, err = said("transform", "m.skops", "new.csv")
    assert (code == 0) == (method in EMBEDDINGS) == bool(result["components"])
    if code == 0:
        expected = by_hand[:-1].transform(new)
        for step in opened(by_hand[-1])[:-1]:
            expected = step.transform(expected)
        components = pd.read_csv(io.StringIO(out))
        assert list(components.columns) == [f"{method}{k}" for k in range(expected.shape[1])]
        # scaled in another order of columns; a certificate of 1e-8 leaves directions about 1e-4
        np.testing.assert_allclose(components, expected, rtol=1e-3, atol=1e-3)
    else:
        assert "marginfold predict m.skops new.csv" in err


def test_an_installed_package_is_asked_for_and_its_models_are_not_kept(refused, monkeypatch):
    as_table(*groups()).to_csv("t.csv", index=False)
    monkeypatch.setattr("marginfold.cli.fit.find_spec", lambda name: None)
    assert "needs the package lightgbm" in refused("fit", "t.csv", "-t", "kind", "-m", "lightgbm")
    monkeypatch.setattr("marginfold.cli.fit.find_spec", lambda name: True)
    arguments = ("fit", "t.csv", "-t", "kind", "-m", "lightgbm", "--save", "m.skops")
    assert "leave --save out" in refused(*arguments)


FIXED = [
    ("lsva", "--graph-weight", 0.25, "graph_weight", 0.25),
    ("LSVA", "--dims", 2, "n_components", 2),
    ("lsva", "--neighbors", 3, "n_neighbors", 3),
    ("lsva", "-C", 7.0, "C", 7.0),
    ("lsva", "--graph", "within", "graph", "within"),
    ("lsva", "--class-weight", "none", "class_weight", None),
    ("wsvda", "--ridge", 0.5, "ridge", 0.5),
    ("lda", "--ridge", 0.5, "shrinkage", 0.5),
    ("all features", "--neighbors", 7, "n_neighbors", 7),
    ("gesvc", "-C", 3.0, "C", 3.0),
    ("gesvc", "--class-weight", "balanced", "class_weight", "balanced"),
    ("svc-rbf", "--kernel", "poly", "kernel", "poly"),
    ("mrgepsvc", "--ridge", 0.3, "ridge", 0.3),
    ("twinsvc", "-C", 4.0, "C1", 4.0),
    ("logistic-regression", "-C", 2.0, "C", 2.0),
    ("marginmap", "--neighbors", 3, "n_neighbors", 3),
]


@pytest.mark.parametrize(("method", "option", "value", "parameter", "kept"), FIXED)
def test_a_given_option_is_taken_and_not_chosen(method, option, value, parameter, kept, done):
    as_table(*groups()).to_csv("t.csv", index=False)
    arguments = ("fit", "t.csv", "-t", "kind", "-m", method, "-s", "m.skops", "--json")
    free = done(*arguments)["chosen"]
    fixed = done(*arguments, "--overwrite", option, value)["chosen"]
    assert set(free) - {option} == set(fixed)
    steps = opened(load_model("m.skops").method)
    found = [step.get_params()[parameter] for step in steps if parameter in step.get_params()]
    assert kept in found


@pytest.mark.parametrize(("method", "kernel"), [("lsva", "rbf"), ("wsvda", "poly"), ("kda", None)])
def test_a_low_rank_kernel_has_the_rank_that_was_given(method, kernel, done):
    as_table(*groups()).to_csv("t.csv", index=False)
    options = () if kernel is None else ("--kernel", kernel)
    done(
        *("fit", "t.csv", "-t", "kind", "-m", method, "-s", "m.skops", "--json"),
        *("--low-rank", 9, *options),
    )
    found = opened(load_model("m.skops").method)[0].kernel
    assert isinstance(found, LowRankKernel)
    assert (found.kernel, found.rank) == (kernel or "rbf", 9)


def test_the_seed_is_that_of_all_folds(done):
    X, y = groups(60)
    as_table(X, y).to_csv("t.csv", index=False)
    arguments = ("fit", "t.csv", "-t", "kind", "-m", "gepsvc", "--seed", 5, "--json")
    error = done(*arguments)["cross_validated_error"]
    assert done(*arguments) == done(*arguments)
    wrong = 0
    for train, test in StratifiedKFold(5, shuffle=True, random_state=5).split(X, y):
        model = make_pipeline(StandardScaler(), procedure("gepsvc", Size.of(y, 3, 5)))
        wrong += (model.fit(X[train], y[train]).predict(X[test]) != y[test]).sum()
    assert error == wrong / 60


@pytest.mark.parametrize(
    ("method", "option", "value", "takes"),
    [
        ("gesvc", "--neighbors", 5, "--kernel, --low-rank, -C, --graph-weight, --graph"),
        ("svc-linear", "--graph-weight", 1, "--kernel, --low-rank, -C, --class-weight"),
        ("svc-rbf", "--low-rank", 9, "--kernel, -C, --class-weight"),
        ("twinsvc", "--graph-weight", 1, "--graph, --ridge"),
        ("all-features", "--dims", 2, "--neighbors"),
        ("lda", "-C", 1, "--kernel, --low-rank, --dims, --ridge, --neighbors"),
        ("largest-class", "-C", 1, "none of these options"),
        ("nca", "--graph", "knn", "--dims, --neighbors"),
    ],
)
def test_an_option_that_a_method_has_not_is_refused_with_those_it_has(
    method, option, value, takes, refused
):
    as_table(*groups()).to_csv("t.csv", index=False)
    line = refused("fit", "t.csv", "-t", "kind", "-m", method, option, value)
    assert f"method {method} has no {option}; it takes " in line
    assert takes in line


def test_a_graph_weight_of_twin_planes_needs_a_graph(done):
    as_table(*groups()).to_csv("t.csv", index=False)
    arguments = ("fit", "t.csv", "-t", "kind", "-m", "twinsvc", "-s", "m.skops", "--json")
    done(*arguments, "--graph", "knn", "--graph-weight", 2)
    (model,) = opened(load_model("m.skops").method)
    assert (model.graph, model.graph_weight) == ("knn", 2.0)


@pytest.mark.parametrize("method", ["laplacianeigenmaps", "locallylinearembedding"])
def test_an_embedding_that_cannot_map_new_rows_is_refused_in_words_of_options(method, refused):
    as_table(*groups()).to_csv("t.csv", index=False)
    line = refused("fit", "t.csv", "-t", "kind", "-m", method, "--graph", "within")
    assert f"method {method} cannot place new rows with --graph within; take " in line
    assert "lle" in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("use LPP(graph=AnchorGraph())", "use LPP(--graph anchors)"),
        ("Give n_components=3 or\n  less.", "Give --dims 3 or less."),
        ("kernel='rbf' and graph_weight=0.5", "--kernel rbf and --graph-weight 0.5"),
        ("take kernel=LowRankKernel('rbf', rank=200)", "take --low-rank"),
        ("C=10 is too large, class_weight too", "-C 10 is too large, --class-weight too"),
    ],
)
def test_parameters_are_said_as_options(text, words):
    assert in_words(text) == words


def test_components_say_what_they_separate(done):
    X, y = groups()
    as_table(X, np.array(["ash", "elm", "oak"])[y]).to_csv("t.csv", index=False)
    for method in ("lsva", "mmda", "wsvda"):
        components = done("fit", "t.csv", "-t", "kind", "-m", method, "-d", 3, "--json")[
            "components"
        ]
        sides = {component["separates"] for component in components}
        assert sides == {"ash | the rest", "elm | the rest", "oak | the rest"}
        assert all(0 < component["gain"] <= 1 for component in components)
    found = done("fit", "t.csv", "-t", "kind", "-m", "lda", "-d", 2, "--json")["components"]
    values = [component["eigenvalue"] for component in found]
    assert values == sorted(values, reverse=True)
    two = y < 2
    as_table(X[two], np.array(["ash", "elm"])[y[two]]).to_csv("two.csv", index=False)
    (first,) = done("fit", "two.csv", "-t", "kind", "-d", 1, "--json")["components"]
    assert first["separates"] in ("ash | elm", "elm | ash")


@pytest.mark.parametrize("method", [m for m in EMBEDDINGS if m != "lsva-permuted-graph"])
def test_every_embedding_says_which_classes_lie_apart(method, done):
    """One class is far away: whatever finds it along its first component says so, and how far."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 3)) + 4.0 * np.outer(y == 1, [1.0, 0.5, 0.0])
    as_table(X, np.array(["ash", "elm", "oak"])[y]).to_csv("t.csv", index=False)
    options = ("-m", method) if method == "marginmap" else ("-m", method, "-d", 2)
    found = done("fit", "t.csv", "-t", "kind", *options, "--json", "-s", "m.skops")["components"]
    assert all(component["separates"] and component["apart"] >= 0 for component in found)
    Z = done("transform", "m.skops", "t.csv").to_numpy()
    for k, component in enumerate(found):
        side = component["separates"].split(" | ")[0].split(", ")
        if side == ["no classes clearly"]:
            continue
        inside = np.isin(np.array(["ash", "elm", "oak"])[y], side)
        one, other = Z[inside, k], Z[~inside, k]
        within = (len(one) * one.var() + len(other) * other.var()) / len(y)
        expected = abs(one.mean() - other.mean()) / np.sqrt(within)
        assert component["apart"] == pytest.approx(expected, rel=1e-6)
    assert "elm | the rest" in {component["separates"] for component in found}


def test_a_component_without_classes_apart_says_so():
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 3
    assert separation(rng.standard_normal(600), labels)["separates"] == "no classes clearly"
    assert separation(np.zeros(6), np.arange(6) % 2) == {
        "separates": "no classes clearly",
        "apart": 0.0,
    }
    assert separation(labels[:9] == 2, labels[:9]) == {"separates": "2 | the rest", "apart": np.inf}


def test_margins_name_the_predicted_class_and_distances_the_nearest_row(done):
    X, y = groups()
    labels = np.array(["ash", "elm", "oak tree"])[y]
    table = as_table(X, labels)
    table.to_csv("t.csv", index=False)
    done("fit", "t.csv", "-t", "kind", "-m", "svc-rbf", "-s", "m.skops", "--json")
    margins = done("predict", "m.skops", "t.csv", "--scores")
    assert list(margins.columns) == ["prediction", "margin_ash", "margin_elm", "margin_oak tree"]
    largest = margins.iloc[:, 1:].idxmax(axis=1).str.removeprefix("margin_")
    assert (largest == margins["prediction"]).all()

    options = ("-m", "lda", "--neighbors", 1, "-s", "n.skops")
    done("fit", "t.csv", "-t", "kind", *options, "--json")
    new, _ = groups(seed=3)
    as_table(new, labels).to_csv("new.csv", index=False)
    found = done("predict", "n.skops", "new.csv", "--scores", "--json")
    distances = pd.DataFrame(found["data"])
    names = ["distance_ash", "distance_elm", "distance_oak tree"]
    assert found["columns"] == ["prediction", *names]
    model = load_model("n.skops")
    every = cdist(model.transform(as_table(new, labels)), model.transform(table))
    expected = np.column_stack([every[:, labels == name[9:]].min(axis=1) for name in names])
    np.testing.assert_allclose(distances[names], expected, rtol=1e-9)
    nearest = distances[names].idxmin(axis=1).str.removeprefix("distance_")
    assert (nearest == distances["prediction"]).all()


def test_two_classes_have_a_margin_each(done):
    X, y = groups(40, n_classes=2)
    as_table(X, y).to_csv("t.csv", index=False)
    done("fit", "t.csv", "-t", "kind", "-m", "gesvc", "-s", "m.skops", "--json")
    found = done("predict", "m.skops", "t.csv", "--scores")
    np.testing.assert_array_equal(found["margin_0"], -found["margin_1"])
    np.testing.assert_array_equal(found["margin_1"] > 0, found["prediction"] == 1)


@pytest.mark.parametrize("method", ["gesvc", "lda", "twinsvc"])
def test_probabilities_are_those_of_a_calibration_by_folds(method, done):
    X, y = groups(60)
    as_table(X, y).to_csv("t.csv", index=False)
    arguments = ("fit", "t.csv", "-t", "kind", "-m", method, "-s", "m.skops", "--json")
    assert done(*arguments, "--proba")["chosen"]
    found = done("predict", "m.skops", "t.csv", "--proba", "--scores")
    names = [f"probability_{k}" for k in range(3)]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scaled = StandardScaler().fit_transform(X)
    by_hand = CalibratedClassifierCV(procedure(method, Size.of(y, 3)), cv=folds, ensemble=False)
    by_hand.fit(scaled, y)
    np.testing.assert_allclose(found[names], by_hand.predict_proba(scaled), rtol=1e-9)
    np.testing.assert_allclose(found[names].sum(axis=1), 1)
    np.testing.assert_array_equal(found["prediction"], by_hand.predict(scaled))
    kind = "distance" if method == "lda" else "margin"
    assert f"{kind}_0" in found.columns


def test_a_calibrated_embedding_still_has_its_components(done):
    as_table(*groups()).to_csv("t.csv", index=False)
    arguments = ("fit", "t.csv", "-t", "kind", "-d", 2, "--json")
    plain = done(*arguments, "-s", "m.skops")
    calibrated = done(*arguments, "--proba", "-s", "p.skops")
    assert calibrated["components"] == plain["components"]
    assert calibrated["chosen"] == plain["chosen"]
    first, second = (done("transform", f"{name}.skops", "t.csv") for name in "mp")
    np.testing.assert_array_equal(first, second)


def test_a_saved_margin_answers_by_itself_and_has_probabilities_beside(done, said):
    """The answers are those without calibration; the probabilities are scikit-learn's sigmoids."""
    X, y = groups()
    as_table(X, y).to_csv("t.csv", index=False)
    options = ("fit", "t.csv", "-t", "kind", "-m", "svc-linear", "-C", 1.0, "--json")
    saved = done(*options, "-s", "m.skops")
    plain = done(*options)
    for key in ("training_error", "cross_validated_error", "chosen", "given"):
        assert saved[key] == plain[key]
    found = done("predict", "m.skops", "t.csv", "--proba", "--scores")
    scaled = StandardScaler().fit_transform(X)
    made = GESVC(graph_weight=0.0, C=1.0)
    np.testing.assert_array_equal(found["prediction"], made.fit(scaled, y).predict(scaled))
    by_hand = CalibratedClassifierCV(
        made, cv=StratifiedKFold(3, shuffle=True, random_state=0), ensemble=False
    ).fit(scaled, y)
    names = [name for name in found.columns if name.startswith("probability_")]
    np.testing.assert_allclose(found[names], by_hand.predict_proba(scaled), atol=1e-8)


def test_probabilities_that_are_none_say_why(done, refused, said):
    """Three rows of a class are too few for folds inside folds, and enough to fit."""
    X, y = groups()
    as_table(X, y).to_csv("t.csv", index=False)
    few = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:3]])
    as_table(X[few], y[few]).to_csv("few.csv", index=False)
    done("fit", "few.csv", "-t", "kind", "-m", "svc-linear", "-C", 1, "-s", "m.skops", "--json")
    assert "too few to calibrate" in refused("predict", "m.skops", "t.csv", "--proba")
    done("fit", "t.csv", "-t", "kind", "-m", "pca", "-s", "n.skops", "--json")
    code, out, err = said("predict", "n.skops", "t.csv", "--proba")
    assert code == 0
    assert "shares of the nearest rows; 'marginfold fit --proba' calibrates them" in err
    shares = pd.read_csv(io.StringIO(out)).iloc[:, 1:]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    done("fit", "t.csv", "-t", "kind", "-m", "largest-class", "-s", "c.skops", "--json")
    assert "leave --scores out" in refused("predict", "c.skops", "t.csv", "--scores")


def test_new_columns_may_not_be_those_that_are_kept(done, refused):
    table = as_table(*groups()).assign(margin_0=1.0, probability_1=2.0)
    table.to_csv("t.csv", index=False)
    drop = ("--drop", "margin_0", "--drop", "probability_1")
    options = (*drop, "-m", "gesvc", "--proba", "-s", "m.skops", "--json")
    done("fit", "t.csv", "-t", "kind", *options)
    assert "margin_0" in done("predict", "m.skops", "t.csv", "--keep", "margin_0").columns
    for option, name in (("--scores", "margin_0"), ("--proba", "probability_1")):
        line = refused("predict", "m.skops", "t.csv", option, "--keep", name)
        assert f"--keep {name} has the name of a new column" in line


def test_levels_that_were_never_seen_are_noted_with_their_rows(done, said):
    people(60, ("a", "b", "c")).to_csv("p.csv", index=False)
    done("fit", "p.csv", "-t", "kind", "-m", "lda", "-s", "m.skops", "--json")
    new = people(60, ("a", "b", "c")).drop(columns="kind").iloc[10:20].reset_index(drop=True)
    new.loc[[1, 4], "town"] = ["Rome", "Oslo"]
    new.to_csv("new.csv", index=False)
    code, _, err = said("predict", "m.skops", "new.csv")
    assert code == 0
    assert err.count("\n") == 1
    assert "column 'town': 2 rows have what the model has never seen (Oslo, Rome)" in err
    notes = done("predict", "m.skops", "new.csv", "--json")["notes"]
    assert [f"note: {note}\n" for note in notes] == [err]
    new["town"] = "Ulm"
    new.to_csv("new.csv", index=False)
    assert said("predict", "m.skops", "new.csv")[2] == ""


def test_data_sets_are_fitted_by_their_names(done, refused):
    wine = load("wine")
    result = done("fit", "wine", "-m", "lda", "-s", "m.skops", "--json")
    assert (result["rows"], result["target"]) == (178, "label")
    assert result["cross_validated_error"] < 0.05
    wine.frame.to_csv("new.csv", index=False)
    predicted = done("predict", "m.skops", "new.csv")["prediction"]
    assert (predicted == wine.y).mean() > 0.95
    assert "leave --target out" in refused("fit", "wine", "-t", "colour", "-m", "lda")
    missing = refused("fit", "new.csv")
    assert "--target is missing" in missing
    assert "flavanoids" in missing


def awkward(n=40):
    """Two classes of words, columns with blanks, gaps, an unbalanced target."""
    rng = np.random.default_rng(0)
    well = np.arange(n) % 4 > 0
    table = pd.DataFrame(
        {
            "blood pressure": rng.standard_normal(n) + 2 * well,
            "no of visits": rng.integers(0, 9, n),
            "home town": rng.choice(["Bad Ems", "Ulm"], n),
            "how is it?": np.where(well, "quite well", "not well"),
        }
    )
    table.loc[2, "blood pressure"] = None
    table.loc[5, "home town"] = None
    return table


def test_an_awkward_table_goes_all_the_way_by_the_real_command(command):
    table = awkward()
    table.to_csv(command.folder / "my table.csv", index=False)
    options = ("--target", "how is it?", "--save", "my model.skops")
    fitted = command("fit", "my table.csv", *options, "--proba")
    assert fitted.returncode == 0, fitted.stderr
    assert "chosen" in fitted.stdout
    assert "5-fold error" in fitted.stdout
    assert "not well | quite well" in fitted.stdout or "quite well | not well" in fitted.stdout
    asked = command(
        *("predict", "my model.skops", "my table.csv", "--scores", "--proba"),
        *("--keep", "no of visits", "--json"),
    )
    assert asked.returncode == 0, asked.stderr
    found = json.loads(asked.stdout)
    assert found["columns"] == [
        *("no of visits", "prediction", "distance_not well", "distance_quite well"),
        *("probability_not well", "probability_quite well"),
    ]
    predicted = pd.DataFrame(found["data"])["prediction"]
    assert (predicted == table["how is it?"]).mean() > 0.75
    transformed = command("transform", "my model.skops", "my table.csv")
    assert transformed.stdout.startswith("lsva0")


def test_rare_classes_are_fitted_or_refused_with_a_reason(done, refused):
    table = awkward()
    table.loc[0, "how is it?"] = "gone"
    table.to_csv("t.csv", index=False)
    assert "only one row of class gone" in refused("fit", "t.csv", "-t", "how is it?")

    def of(*counts):
        labels = np.repeat([f"kind {k}" for k in range(len(counts))], counts)
        X = np.random.default_rng(0).standard_normal((len(labels), 2))
        as_table(X + 2 * (labels == "kind 1")[:, None], labels).to_csv("few.csv", index=False)
        return ("fit", "few.csv", "-t", "kind", "-m", "lda")

    arguments = of(10, 2)
    result = done(*arguments, "--json")
    assert result["cross_validated_error"] is None
    assert any("too few rows for folds inside folds" in note for note in result["notes"])
    assert "leave --proba out" in refused(*arguments, "--proba")
    for counts in ((9, 6, 2), (5, 5)):
        result = done(*of(*counts), "--json")
        assert 0 <= result["cross_validated_error"] < 0.7
        assert done(*of(*counts), "--proba", "--json")["chosen"]
    assert 0 <= done(*of(5, 5), "--proba", "--json")["cross_validated_error"] < 0.7


def test_only_what_concerns_the_kept_fit_is_noted(done):
    """Folds try more components than there are; the fit that is kept does not."""
    X, y = groups()
    as_table(np.column_stack([X, X]), y).to_csv("t.csv", index=False)
    for method in ("pca", "lsva", "mmda"):
        assert done("fit", "t.csv", "-t", "kind", "-m", method, "--json")["notes"] == []
    found = done("fit", "t.csv", "-t", "kind", "-m", "pca", "-d", 5, "--json")
    assert any("found 3 of 5 components" in note for note in found["notes"])


def by_person(signal):
    """16 people who differ more than their classes do, with 6 rows each."""
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(16), 6)
    X = 2.0 * rng.standard_normal((16, 4))[who] + 0.3 * rng.standard_normal((96, 4))
    X[:, 0] += signal * (who % 2)
    return as_table(X, np.array(["well", "ill"])[who % 2]).assign(person=[f"p{k}" for k in who])


def test_rows_of_one_person_stay_together(done, refused):
    """Nearest rows know a person, of whom nothing is known about another."""
    by_person(0.0).to_csv("t.csv", index=False)
    method = ("fit", "t.csv", "-t", "kind", "-m", "all-features", "--json")
    assert done(*method, "--drop", "person")["cross_validated_error"] < 0.05
    assert done(*method, "--group", "person")["cross_validated_error"] > 0.25
    assert "cannot be used together" in refused(*method, "--group", "person", "--proba")
    by_person(0.0).assign(person=["a", "b"] * 48).to_csv("two.csv", index=False)
    few = refused("fit", "two.csv", "-t", "kind", "--group", "person")
    assert "--group makes 2 groups, and 3 folds choose the parameters" in few


def test_what_a_comparison_in_groups_saves_is_what_its_command_fits(done, said):
    table = by_person(8.0)
    table.to_csv("t.csv", index=False)
    found = done(
        *("compare", "t.csv", "-t", "kind", "--group", "person", "--methods", "lda,lsva,gesvc"),
        *("--json", "--save", "measured.skops", "--jobs", "1"),
    )
    assert found["group"] == "person"
    assert any("16 groups together" in note for note in found["notes"])
    words = shlex.split(found["command"])[1:]
    assert said(*words)[0] == 0
    table.drop(columns="person").to_csv("new.csv", index=False)
    answers = [done("predict", model, "new.csv") for model in ("measured.skops", "model.skops")]
    pd.testing.assert_frame_equal(*answers)
