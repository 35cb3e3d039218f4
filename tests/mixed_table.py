"""A table of numbers and words with gaps, as people have them."""

from __future__ import annotations

import numpy as np
import pandas as pd


def mixed_frame(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """A table with numbers, words, gaps, a constant, a text and a target that is not the last."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["ant", "bee", "cow"], n)
    place = pd.Series(kind).map({"ant": 0.0, "bee": 2.0, "cow": 4.0}).to_numpy()
    frame = pd.DataFrame(
        {
            "size": place + rng.standard_normal(n),
            "species": kind,
            "width": rng.standard_normal(n) - place,
            "hue": rng.choice(["red", "blue", "green"], n),
            "unit": 1,
            "note": [f"free words {k}" for k in range(n)],
        }
    )
    frame.loc[:4, "width"] = np.nan
    frame.loc[7:9, "hue"] = None
    return frame
