"""The data sets of the papers: a catalogue, verified loading, and the synthetic sets of figures."""

from marginfold.datasets.catalogue import Entry, catalogue
from marginfold.datasets.dataset import Dataset
from marginfold.datasets.generators import cross_planes, noisy_sine
from marginfold.datasets.loading import load
from marginfold.datasets.location import status, summary

__all__ = [
    "Dataset",
    "Entry",
    "catalogue",
    "cross_planes",
    "load",
    "noisy_sine",
    "status",
    "summary",
]
