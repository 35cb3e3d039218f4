"""What users hand in is checked here, once: parameters, rows, labels and weights."""

from collections.abc import Sequence

SERVED_BY: dict[str, str] = {}
"""The module that reads the collections of each package, which are not in this process's memory."""


def register_row_types(packages: Sequence[str], module: str) -> None:
    """Let a module, which is imported when it is needed, serve the collections of some packages.

    It is registered by its name when the package is imported, and has the functions of
    `validation.rows.RowsBackend`.
    """
    SERVED_BY.update(dict.fromkeys(packages, module))
