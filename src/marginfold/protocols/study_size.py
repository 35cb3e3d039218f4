"""How much of a study is run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginfold.errors import InvalidParameterError


@dataclass(frozen=True)
class Scale:
    """Sizes of a study.

    Attributes
    ----------
    name : str
    n_seeds : int
        Partitions of the rows, seeds 0, 1, ...
    n_weights : int
        Values of the graph weight with the linear kernel, spread evenly over the logarithm.
    n_kernel_weights : int
        The same with other kernels, where each costs more.
    n_kernel_components : int
        Most components with other kernels.
    controls : bool
        Whether honest selection and permuted graphs are measured beside the papers' protocols.
    """

    name: str
    n_seeds: int
    n_weights: int
    n_kernel_weights: int
    n_kernel_components: int
    controls: bool

    @property
    def seeds(self) -> range:
        """The seeds."""
        return range(self.n_seeds)

    def weights(self, low: float, high: float, *, kernel: bool = False) -> list[float]:
        """Return graph weights between two, rounded so that records name them alike."""
        n = self.n_kernel_weights if kernel else self.n_weights
        return [float(f"{weight:.6g}") for weight in np.geomspace(low, high, n)]


SCALES = {
    "quick": Scale("quick", 2, 5, 3, 5, controls=False),
    "standard": Scale("standard", 5, 8, 3, 8, controls=True),
    "full": Scale("full", 5, 30, 8, 12, controls=True),
}
"""quick: minutes, to look; standard: five seeds, coarse grids; full: the papers' grids."""


def scale_named(name: str) -> Scale:
    """Return a scale by its name."""
    if name not in SCALES:
        raise InvalidParameterError(f"scale must be one of {list(SCALES)}; got {name!r}.")
    return SCALES[name]
