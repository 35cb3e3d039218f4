"""Tables as people have them: files, targets, columns of every kind (needs pandas).

pandas and scikit-learn are imported where they are used: what is wrong with a file is said before
they are loaded.
"""

from marginfold.tables.columns import Columns, inspect_columns
from marginfold.tables.labelled import read_labelled
from marginfold.tables.model import TableModel
from marginfold.tables.reading import read_table
from marginfold.tables.target import split_target
from marginfold.tables.writing import write_table

__all__ = [
    "Columns",
    "TableModel",
    "inspect_columns",
    "read_labelled",
    "read_table",
    "split_target",
    "write_table",
]
