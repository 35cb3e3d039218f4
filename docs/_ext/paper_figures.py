"""The directive ``paper-figures``: the papers' figures, computed by the build of the site.

The records of ``marginfold reproduce --quick`` are kept in docs/_build: the next build draws them
without computing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from marginfold.papers import STUDIES, absent_figures, study
from marginfold.plotting import svg
from marginfold.protocols.records import RecordStore
from marginfold.protocols.results import Figure
from marginfold.protocols.run import run_tasks
from marginfold.protocols.studies import study_size

FIGURES = {
    "lsva": ("figure 1", "figure 2"),
    "wsvda": ("figure 2", "figure 3", "figure 4"),
    "mrgepsvm": ("figure 5",),
    "svmpca": ("figure 2", "figure 4", "figure 5"),
}
"""The figures with data in them; all of them are drawn from bundled or generated rows."""

FOLDER = Path("_build", "figures")
"""Where the pictures and records are, below docs/."""


class PaperFigures(SphinxDirective):
    """All figures, each below the name of its paper."""

    def run(self) -> list[nodes.Node]:
        """Compute what is missing and return the pictures with their captions."""
        folder = Path(self.env.srcdir) / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        shown: list[nodes.Node] = []
        for name in FIGURES:
            shown.append(nodes.rubric("", STUDIES[name]))
            for figure in figures_of(name, folder):
                shown.append(self.picture(figure, folder))
            if absent := absent_figures(name):
                shown.append(nodes.paragraph("", absent))
        return shown

    def picture(self, figure: Figure, folder: Path) -> nodes.Node:
        """Return a figure as a node; its picture is a file of the build."""
        file = f"{figure.study}-{figure.number}.svg"
        (folder / file).write_text(svg(figure), encoding="utf-8")
        caption = f"Figure {figure.number}: {figure.title}. {figure.caption}"
        image = nodes.image(uri=f"/{FOLDER.as_posix()}/{file}", alt=figure.title)
        return nodes.figure("", image, nodes.caption("", caption))


def figures_of(name: str, folder: Path) -> list[Figure]:
    """Return the figures of a study."""
    module, size = study(name), study_size("quick")
    with RecordStore(folder / "records") as store:
        tasks = [task for figure in FIGURES[name] for task in module.study_tasks(size, figure)]
        run_tasks(tasks, store, n_jobs=1)
        return list(module.figures(store, size))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("paper-figures", PaperFigures)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
