"""Write docs/reproduction.md from the records of a run of `marginfold reproduce`.

    python scripts/write_reproduction.py RUN [SCALE [SEEDS]]

reads the folder RUN (scale "full" and all its partitions unless given) and writes the tables of
all papers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from marginfold.papers import STUDIES, absent_figures, study
from marginfold.protocols.published_numbers import PAPERS
from marginfold.protocols.records import RecordStore
from marginfold.protocols.results import Table
from marginfold.protocols.studies import study_size
from marginfold.reports import markdown
from marginfold.reports.tables import agreement

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"

HEAD = """# The papers' tables, reproduced

Our numbers beside the printed ones, with the spread over seeds and a mark by the rule that stands
above each paper's tables. A printed number counts once, by the reading of the paper that its table
states under "Protocol". "Fitted to print" says what the paper leaves open and we chose by how near
it comes to the printed numbers: agreement there is partly of our making. "Chosen honestly" says
what comes out if nothing is chosen on test rows, as the papers often do. Columns whose name goes on
after that of a printed one ("KLSVA sign", "GEPSVM 2^-9") have another reading: they stand beside
the same printed number and do not count. Columns without a printed number are controls: honest
selection ("nested"), permuted graphs. [Errata](errata.md) explains the numbers E1, E2, ...

The command `marginfold reproduce all --full` computes everything here, figures included, in an hour
or two on two cores; without `--full` it takes fewer graph weights. A set that is neither bundled
nor in the data folder is skipped with its reason.
"""

PARTITIONED = ("lsva", "gesvm", "mrgepsvm")
"""Studies whose cells are means over all partitions; 001 has one in the order of the file."""

COUNTED = """
| table | cells | agree | near | differ | of these explained by a column beside |
| --- | ---: | ---: | ---: | ---: | ---: |
"""


def main() -> None:
    """Write the page."""
    folder = sys.argv[1]
    size = study_size(sys.argv[2] if len(sys.argv) > 2 else "full")
    if len(sys.argv) > 3:
        size = replace(size, n_seeds=int(sys.argv[3]))
    with RecordStore(folder, read_only=True) as store:
        made = {name: study(name).tables(store, size) for name in STUDIES}
        versions = store.versions()
    parts = [HEAD, _overview([table for tables in made.values() for table in tables])]
    for name, found in made.items():
        if tables := [_with_partitions(table, size.n_seeds) for table in found]:
            parts.append(f"## {STUDIES[name]}\n\n{agreement(tables)}\n\n{markdown(tables)}")
            parts.append(absent_figures(name))
    how = f"scale {size.name!r}, {size.n_seeds} partitions of the rows"
    parts.append(f"Computed with {'; '.join(versions)}, {how}.")
    text = "\n".join(part.strip() + "\n" for part in parts if part)
    PAGE.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")


def _overview(tables: Sequence[Table]) -> str:
    """Return the sum over all papers, and the counts of each table with a printed number."""
    lines = []
    for table in tables:
        counts = [*table.counts().values()]
        if any(counts):
            numbers = [sum(counts), *counts, table.explained()]
            name = f"{PAPERS[table.study]} ({table.study}), Table {table.number}"
            lines.append(f"| {name} | {' | '.join(map(str, numbers))} |")
    return f"{agreement(tables)}\n{COUNTED}" + "\n".join(lines)


def _with_partitions(table: Table, planned: int) -> Table:
    """Add to the protocol which columns rest on fewer partitions than planned: a run may go on."""
    if table.study not in PARTITIONED or table.unit == "ratio":
        return table
    fewest: dict[str, int] = {}
    for cell in table.cells:
        if 0 < cell.n_seeds < planned:
            fewest[cell.column] = min(cell.n_seeds, fewest.get(cell.column, planned))
    if not fewest:
        return table
    listed = ", ".join(f"{column} {n}" for column, n in fewest.items())
    text = f"Columns with cells on fewer than {planned} partitions so far, at least: {listed}."
    return replace(table, protocol=f"{table.protocol} {text}")


if __name__ == "__main__":
    main()
