"""Data sets of the papers, and tables as people have them; saved models are in `data.models`.

pandas and scikit-learn are imported where they are used: what is wrong with a file is said before
they are loaded.
"""

from marginfold.data.catalogue import Entry, catalogue, status, summary
from marginfold.data.columns import Columns, inspect_columns
from marginfold.data.dataset import Dataset, cross_planes, noisy_sine
from marginfold.data.loading import load
from marginfold.data.reading import Reading
from marginfold.data.table_model import TableModel
from marginfold.data.tables import read_table, write_table
from marginfold.data.target import read_labelled, split_target

__all__ = [
    "Columns",
    "Dataset",
    "Entry",
    "Reading",
    "TableModel",
    "catalogue",
    "cross_planes",
    "inspect_columns",
    "load",
    "noisy_sine",
    "read_labelled",
    "read_table",
    "split_target",
    "status",
    "summary",
    "write_table",
]
