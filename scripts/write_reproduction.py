"""Write docs/reproduction.md from the records of a run of `marginfold reproduce`.

    python scripts/write_reproduction.py RUN [SCALE]

reads the folder RUN (scale "standard" unless given) and writes the tables of all papers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from marginfold.papers import STUDIES, study
from marginfold.protocols.records import RecordStore
from marginfold.protocols.studies import study_size
from marginfold.reports import markdown
from marginfold.reports.tables import agreement

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"

HEAD = """# The papers' tables, reproduced

Our numbers beside the printed ones, with the spread over seeds and a mark by the rule that stands
above each paper's tables. Columns without a printed number are controls: honest selection, permuted
graphs, other readings of what a paper leaves open. [Errata](errata.md) explains the numbers E1, E2,
... A printed number counts once, by the first reading of the paper.

The command `marginfold reproduce all` computes everything here, figures included; a set that is
neither bundled nor in the data folder is skipped with its reason.
"""


def main() -> None:
    """Write the page."""
    folder = sys.argv[1]
    size = study_size(sys.argv[2] if len(sys.argv) > 2 else "standard")
    parts = [HEAD]
    with RecordStore(folder, read_only=True) as store:
        for name, title in STUDIES.items():
            tables = study(name).tables(store, size)
            if tables:
                parts.append(f"## {title}\n\n{agreement(tables)}\n\n{markdown(tables)}")
        versions = store.versions()
    parts.append(f"Computed with {'; '.join(versions)}, scale {size.name!r}.")
    PAGE.write_text("\n".join(part.strip() + "\n" for part in parts), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()
