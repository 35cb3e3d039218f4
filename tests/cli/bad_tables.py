"""Tables that commands refuse, each with what the line must say, and one they like."""

from __future__ import annotations

import numpy as np
import pandas as pd

HEADER = b"size,hue,kind\n"
ROWS = b"1.5,red,a\n2.5,blue,b\n3.5,red,a\n0.5,blue,b\n1.0,red,a\n2.0,blue,b\n" * 3

BAD_TABLES = {
    "missing file": (None, (), "there is no file t.csv"),
    "unknown column": (HEADER + ROWS, ("--target", "knd"), "Did you mean 'kind'?"),
    "one class": (HEADER + b"1.5,red,a\n2.5,blue,a\n" * 9, (), "only one class (a)"),
    "only unique values": (
        HEADER + b"".join(b"%d.5,red,k%d\n" % (k, k) for k in range(20)),
        (),
        "20 different values in 20 rows",
    ),
    "empty file": (b"", (), "t.csv is empty"),
    "five rows": (HEADER + ROWS[:50], (), "only 5 rows; at least 10 are needed"),
    "mixed types": (
        HEADER + b"".join(b"%d.5,red,%c\n" % (k, 97 + k % 2) for k in range(18)) + b"tall,red,a\n",
        (),
        "18 numbers and 1 words",
    ),
    "duplicated names": (b"size,size,kind\n" + b"1,2,a\n2,1,b\n" * 9, (), "column 'size'"),
    "not UTF-8": (HEADER + ROWS + "1.5,roß,a\n".encode("latin1"), (), "byte 0xdf"),
}
"""Content of t.csv (None: no file), further options, and words of the error."""


def people(n, labels):
    """A table with everything tables have: words, gaps, truth values, labels that are words."""
    rng = np.random.default_rng(1)
    kind = np.arange(n) % 3
    table = pd.DataFrame(
        {
            "height": rng.standard_normal(n) + 3 * (kind == 1),
            "age": rng.standard_normal(n) - 3 * (kind == 2),
            "town": rng.choice(["Ulm", "Bern"], n),
            "member": rng.random(n) < 0.5,
            "kind": np.array(labels)[kind],
        }
    )
    table.loc[3, "height"] = None
    table.loc[7, "town"] = None
    return table
