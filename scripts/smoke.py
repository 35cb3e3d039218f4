"""Ask an installed marginfold for everything that it promises.

    python -I scripts/smoke.py [EXTRA ...]

Runs with the Python of the environment in question, in any folder, and needs nothing but what is
installed there.  What an extra promises has to work where its packages are; where they are missing,
the error has to name the extra that installs them.  `make dist` runs it in clean environments.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import marginfold
from marginfold.data import load

COMMAND = Path(sysconfig.get_path("scripts")) / "marginfold"
PATIENCE = 600
"""Seconds until a command that does not end is a failure."""


def main(installed: list[str]) -> None:
    """Try the package itself, then every extra: the installed ones, and those that are not."""
    offered = {*(metadata("marginfold").get_all("Provides-Extra") or ()), *installed}
    unknown = offered - {*PROMISES}
    if unknown:
        sys.exit(f"scripts/smoke.py does not know what {', '.join(sorted(unknown))} promises")
    try_package()
    print("  the package itself: works")
    for name, promise in PROMISES.items():
        if name not in offered:
            continue
        missing = [module for module in promise.modules if find_spec(module) is None]
        if name in installed and missing:
            sys.exit(f"the extra {name} did not install {', '.join(missing)}")
        if missing:
            promise.refused(name)
        else:
            promise.call()
        print(f"  {name}: {'refused, the error names the extra' if missing else 'works'}")


@dataclass(frozen=True)
class Promise:
    """What an extra is for: the packages that it installs, and a call that needs them."""

    modules: tuple[str, ...]
    call: Callable[[], None]
    contains: tuple[str, ...] = ()
    """Other extras that are part of this one: an error may ask for these first."""

    def refused(self, name: str) -> None:
        """Require that the call fails with the line that installs what is missing."""
        try:
            self.call()
        except (ModuleNotFoundError, CommandError) as error:
            named = re.findall(r'pip install "marginfold\[(.*?)\]"', str(error))
            asked = {extra for line in named for extra in line.split(",")}
            require(asked & {name, *self.contains}, f"{name} is not named: {error}")
        else:
            sys.exit(f"{name}: nothing was refused, though its packages are missing")


class CommandError(Exception):
    """A command ended with an error; the message is what it wrote."""


# The package itself ------------------------------------------------------------------------------


def try_package() -> None:
    """Every public name; estimators of each family, on the bundled wine data."""
    version = metadata("marginfold")["Version"]
    require(marginfold.__version__ == version, "the version is not that of the metadata")
    for name in marginfold.__all__:
        getattr(marginfold, name)
    X, y = wine()
    for estimator in (marginfold.LSVA(2), marginfold.WSVDA(2), marginfold.MMDA(2)):
        estimator.fit(X, y)
        require(np.max(estimator.gap_) <= 1e-8, f"{estimator} is not certified")
        check_neighbors(estimator.transform(X), y, str(estimator))
    for estimator in (marginfold.LDA(2), marginfold.KDA(2)):
        check_neighbors(estimator.fit_transform(X, y), y, str(estimator))
    for estimator in (marginfold.SVMPCA(2), marginfold.LPP(2), marginfold.LaplacianEigenmaps(2)):
        require(estimator.fit_transform(X).shape == (len(X), 2), str(estimator))
    for classifier in (
        *(marginfold.GESVC(), marginfold.GESVC(kernel="rbf"), marginfold.TwinSVC()),
        *(marginfold.MRGEPSVC(), marginfold.GEPSVC()),
    ):
        share = np.mean(classifier.fit(X[::2], y[::2]).predict(X[1::2]) == y[1::2])
        require(share > 0.85, f"{classifier} is right on {share:.0%} of the rows")
    search = marginfold.SubspaceSearchCV(marginfold.LSVA(2), graph_weight=[0.1, 1.0], cv=3)
    require(np.mean(search.fit(X, y).predict(X) == y) > 0.9, "the search predicts badly")


def check_neighbors(images: Any, y: Any, name: str) -> None:
    """Require that the nearest neighbor in a map is mostly of the same class."""
    distances = np.sum((images[:, None] - images[None]) ** 2, axis=2)
    np.fill_diagonal(distances, np.inf)
    share = np.mean(y[distances.argmin(axis=1)] == y)
    require(share > 0.9, f"{name}: the nearest neighbor is of the same class for {share:.0%}")


# What the extras promise -------------------------------------------------------------------------


def try_plot() -> None:
    """A Display becomes a picture."""
    X, y = wine()
    display = marginfold.EmbeddingDisplay.from_estimator(marginfold.LDA(2).fit(X, y), X, y)
    picture = io.BytesIO()
    display.figure_.savefig(picture, format="png")
    require(picture.getvalue().startswith(b"\x89PNG"), "no picture was drawn")


def try_cli() -> None:
    """Compare with a report, keep the best method, predict with it."""
    with tempfile.TemporaryDirectory() as folder:
        command = "compare", "wine", "--budget", "10s", "--report", "r.html", "--save", "m.skops"
        require("wine" in run(*command, folder=folder), "compare said nothing")
        page = Path(folder, "r.html").read_text("utf-8")
        require(page.startswith("<!doctype html>") or "<html" in page, "the report is no page")
        require("CC BY 4.0" in run("datasets", "wine", folder=folder), "no licence of the data")
        table = ["a,b,kind"] + [f"{k % 7},{k % 5},{'xy'[k % 2]}" for k in range(60)]
        Path(folder, "t.csv").write_text("\n".join(table), "utf-8")
        run("fit", "t.csv", "--target", "kind", "--save", "t.skops", folder=folder)
        run("predict", "t.skops", "t.csv", "--out", "p.csv", folder=folder)
        lines = Path(folder, "p.csv").read_text("utf-8").splitlines()
        require(len(lines) == 61, f"{len(lines)} lines of predictions for 60 rows")


def try_compiled() -> None:
    """The compiled solver has the value of the one in NumPy."""
    X, y = wine()
    signs = np.where(y == y[0], 1.0, -1.0)
    ours, compiled = (
        marginfold.InteriorPoint(compiled=wanted).solve(X, signs, 1.0) for wanted in (False, True)
    )
    require(compiled.gap <= 1e-8, "the compiled solution is not certified")
    require(np.allclose(compiled.objective, ours.objective, rtol=1e-8), "two values of one problem")


def try_dask() -> None:
    """A fit on blocks of rows is the fit on all of them."""
    import marginfold.on_dask  # noqa: I001  (says which extra is missing)
    import dask.array as da

    X, y = wine()
    whole = marginfold.WSVDA(2).fit(X, y)
    blocks = marginfold.WSVDA(2).fit(da.from_array(X, (60, -1)), da.from_array(y, 60))
    require(np.allclose(whole.components_, blocks.components_, atol=1e-6), "Dask fits another map")


def try_explorer() -> None:
    """The server hands out its page, and nothing to who has no token."""
    with tempfile.TemporaryFile("w+") as said:
        command = [str(COMMAND), "explore", "wine", "--no-browser"]
        process = subprocess.Popen(command, stdout=said, stderr=said, text=True)
        try:
            url, token = address_of(process, said).split("/#token=")
            page = urllib.request.urlopen(url + "/", timeout=PATIENCE).read()
            require(b"marginfold" in page, "the page is empty")
            script = urllib.request.urlopen(url + "/page.js", timeout=PATIENCE).read()
            require(len(script) > 10_000, "the page's script is missing")
            require(call_server(url, token) == 200, "the server refuses its own token")
            require(call_server(url, "x" * len(token)) in (401, 403), "any token will do")
        finally:
            process.terminate()
            process.wait(PATIENCE)


def address_of(process: subprocess.Popen[str], said: Any) -> str:
    """Return the address that the explorer prints; it may end before that with an error."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        said.seek(0)
        text = said.read()
        found = re.search(r"http://127\.0\.0\.1:\d+/#token=\S+", text)
        if found:
            return found.group(0)
        if process.poll() is not None:
            raise CommandError(text)
        time.sleep(0.1)
    sys.exit(f"the explorer printed no address within {PATIENCE} s")


def call_server(url: str, token: str) -> int:
    """Return the status of a call."""
    headers = {"X-Marginfold-Token": token, "X-Marginfold-Tab": "0123456789abcdef"}
    request = urllib.request.Request(url + "/api/describe", b"{}", headers, method="POST")
    try:
        return int(urllib.request.urlopen(request, timeout=PATIENCE).status)
    except urllib.error.HTTPError as error:
        return int(error.code)


def try_faiss() -> None:
    """The approximate search finds neighbors."""
    X, _ = wine()
    graph = marginfold.NeighborGraph(5, search="faiss").build(X)
    exact = marginfold.NeighborGraph(5, search="exact").build(X)
    require(np.allclose(graph.scatter(X), exact.scatter(X), rtol=0.05), "faiss finds other graphs")


def try_notebook() -> None:
    """The widget opens on rows."""
    from marginfold.explorer import Explorer

    X, y = wine()
    widget = Explorer(X, y)
    require(len(widget.labels) == len(y), "the widget lost rows")
    widget.close()


def try_onnx() -> None:
    """An exported map gives the same images."""
    X, y = wine()
    fitted = marginfold.LSVA(2, kernel="rbf").fit(X, y)
    model = marginfold.to_onnx(fitted)
    from onnx.reference import ReferenceEvaluator

    rows = {model.graph.input[0].name: X.astype(np.float32)}
    (images,) = ReferenceEvaluator(model).run(None, rows)
    require(np.allclose(images, fitted.transform(X), atol=1e-4), "ONNX gives other images")


def try_parquet() -> None:
    """A table is written, and read again as it was."""
    from marginfold.data import read_table, write_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")
        if find_spec("pyarrow") is None:
            path.write_bytes(b"PAR1")
        else:
            write_table(load("wine").frame, path)
        require(read_table(path).equals(load("wine").frame), "the table came back as another")


PROMISES = {
    "plot": Promise(("matplotlib",), try_plot),
    "cli": Promise(("jinja2", "matplotlib", "pandas", "rich", "skops", "typer"), try_cli),
    "compiled": Promise(("numba",), try_compiled),
    "dask": Promise(("dask", "distributed"), try_dask),
    "explorer": Promise(("starlette", "uvicorn", "typer"), try_explorer, contains=("cli",)),
    "faiss": Promise(("faiss",), try_faiss),
    "notebook": Promise(("anywidget", "pandas"), try_notebook, contains=("cli",)),
    "onnx": Promise(("onnx", "skl2onnx"), try_onnx),
    "parquet": Promise(("pandas", "pyarrow"), try_parquet),
}


# Small things ------------------------------------------------------------------------------------


def wine() -> tuple[Any, Any]:
    """Return a bundled data set, columns in standard units."""
    data = load("wine")
    X = np.asarray(data.X, dtype=float)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.asarray(data.y)


def run(*arguments: str, folder: str) -> str:
    """Return what a command of marginfold prints."""
    done = subprocess.run(
        [str(COMMAND), *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode:
        raise CommandError(done.stdout + done.stderr)
    return done.stdout


def require(condition: Any, message: str) -> None:
    """End with a message if something does not hold."""
    if not condition:
        sys.exit(f"smoke test: {message}")


if __name__ == "__main__":
    main(sys.argv[1:])
