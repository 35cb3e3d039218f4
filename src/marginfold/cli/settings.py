"""Options of methods on the command line, and the parameters that they stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from marginfold.errors import InvalidInputError, InvalidParameterError

KERNELS = ("linear", "rbf", "poly")
"""Kernels that need no further word."""

GRAPHS = ("knn", "within", "between", "total", "lle", "anchors")
"""Graphs that need no further word."""

CLASS_WEIGHTS = ("balanced", "none")
"""How much a class counts: as much as any other, or as it has rows."""

PARAMETERS = {
    "--kernel": ("kernel",),
    "--low-rank": ("kernel",),
    "--dims": ("n_components",),
    "-C": ("C", "C1"),
    "--graph-weight": ("graph_weight",),
    "--graph": ("graph",),
    "--ridge": ("ridge", "shrinkage"),
    "--class-weight": ("class_weight",),
    "--neighbors": ("n_neighbors",),
}
"""The parameter that each option sets, by the names that methods have for it."""

LEAST = {"-C": "above 0", "--graph-weight": "0 or more", "--ridge": "0 or more"}
"""Numbers that an option takes."""

PYTHON_WORDS = (
    (r"\b(graph=)?AnchorGraph\([^)]*\)", "--graph anchors"),
    (r"\b(graph=)?NeighborGraph\([^)]*\)", "--graph knn"),
    (r"\b(graph=)?ReconstructionGraph\([^)]*\)", "--graph lle"),
    (r"\b(kernel=)?LowRankKernel\([^)]*\)", "--low-rank"),
    (r"\bkernel=['\"]?(\w+)['\"]?", r"--kernel \1"),
    (r"\bgraph=['\"]?(\w+)['\"]?", r"--graph \1"),
    (r"\bn_components(?:=| )(\d+)", r"--dims \1"),
    (r"\bn_neighbors(?:=| )(\d+)", r"--neighbors \1"),
    (r"\bgraph_weight(?:=| )([\d.e-]+\d)", r"--graph-weight \1"),
    (r"\bn_components\b", "--dims"),
    (r"\bn_neighbors\b", "--neighbors"),
    (r"\bgraph_weight\b", "--graph-weight"),
    (r"\bclass_weight\b", "--class-weight"),
    (r"\bshrinkage\b", "--ridge"),
    (r"\bC1?=([\d.e+-]*\d)", r"-C \1"),
)
"""How what the library says of its parameters is said of options."""

Kernel = Annotated[
    str | None, typer.Option("--kernel", metavar="NAME", help=f"One of {', '.join(KERNELS)}.")
]
LowRank = Annotated[
    int | None,
    typer.Option("--low-rank", metavar="RANK", min=1, help="Approximate the kernel by this rank."),
]
Dims = Annotated[
    int | None,
    typer.Option("--dims", "-d", metavar="COUNT", min=1, help="Number of components."),
]
Cost = Annotated[
    float | None, typer.Option("-C", metavar="NUMBER", help="Cost of a margin violation.")
]
GraphWeight = Annotated[
    float | None, typer.Option("--graph-weight", metavar="NUMBER", help="Weight of the graph.")
]
Graph = Annotated[
    str | None, typer.Option("--graph", metavar="NAME", help=f"One of {', '.join(GRAPHS)}.")
]
Ridge = Annotated[
    float | None,
    typer.Option("--ridge", metavar="NUMBER", help="Regularisation of scatters and planes."),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        "--class-weight",
        metavar="NAME",
        help="balanced: all classes have the same weight; or none.",
    ),
]
Neighbors = Annotated[
    int | None,
    typer.Option("--neighbors", metavar="COUNT", min=1, help="Number of nearest neighbors."),
]


@dataclass(frozen=True)
class Settings:
    """What the options of a method were given as; None where nothing was given."""

    kernel: str | None = None
    low_rank: int | None = None
    dims: int | None = None
    cost: float | None = None
    graph_weight: float | None = None
    graph: str | None = None
    ridge: float | None = None
    class_weight: str | None = None
    neighbors: int | None = None

    def given(self) -> dict[str, Any]:
        """Return the options that were given, by their names on the command line."""
        values = (
            *(self.kernel, self.low_rank, self.dims, self.cost, self.graph_weight, self.graph),
            *(self.ridge, self.class_weight, self.neighbors),
        )
        return {o: v for o, v in zip(PARAMETERS, values, strict=True) if v is not None}

    def check(self) -> None:
        """Refuse names that are none of the few, and numbers out of range."""
        given = self.given()
        for option, names in (
            ("--kernel", KERNELS),
            ("--graph", GRAPHS),
            ("--class-weight", CLASS_WEIGHTS),
        ):
            if option in given and given[option] not in names:
                raise InvalidInputError(
                    f"{option} must be one of {', '.join(names)}; got {given[option]}."
                )
        for option, least in LEAST.items():
            value = given.get(option, 1.0)
            if not 0 <= value < float("inf") or (value == 0 and least == "above 0"):
                raise InvalidParameterError(f"{option} must be a number {least}; got {value:g}.")
        if self.low_rank is not None and self.kernel == "linear":
            raise InvalidInputError("--low-rank needs a kernel; give --kernel rbf or leave it out.")


def option_of(parameter: str) -> str:
    """Return the option of a parameter, or the parameter itself.

    Examples
    --------
    >>> from marginfold.cli.settings import option_of
    >>> option_of("neighborsclassifier__n_neighbors")
    '--neighbors'
    """
    name = parameter.rpartition("__")[2]
    return next((option for option, names in PARAMETERS.items() if name in names), name)


def in_words(text: str) -> str:
    """Return what the library says, with options in place of parameters.

    Examples
    --------
    >>> from marginfold.cli.settings import in_words
    >>> in_words("Use graph=AnchorGraph(), or fewer n_components.")
    'Use --graph anchors, or fewer --dims.'
    """
    text = " ".join(text.split())
    for pattern, words in PYTHON_WORDS:
        text = re.sub(pattern, words, text)
    return text
