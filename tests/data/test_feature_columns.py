from __future__ import annotations

import numpy as np
import pandas as pd

from marginfold.data.columns import arrange, decoded, encoder, feature_columns, inspect_columns


def test_every_number_of_an_encoder_knows_its_column_and_the_way_back():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a_b": rng.choice(["x_1", "y", "0_z"], 60),
            "size": rng.standard_normal(60),
            "code": [f"level {k % 40}" for k in range(60)],  # more than get a number each
            "2": rng.standard_normal(60) * 100,
        }
    )
    columns = inspect_columns(frame, categorical=["code"])
    arranged = arrange(frame, columns.numbers, columns.levels, columns.written)
    part = encoder(columns, "standard").fit(arranged)
    numbers = part.transform(arranged)
    names = feature_columns(part)
    assert len(names) == numbers.shape[1]
    assert names[:2] == ["size", "2"]
    assert names[2:5] == ["a_b"] * 3
    assert set(names[5:]) == {"code"}
    for row in (0, 17, 59):
        found = decoded(part, numbers[row])
        assert found["a_b"] == frame["a_b"][row]
        np.testing.assert_allclose(float(found["2"]), frame["2"][row], rtol=1e-3)
        assert found["code"] in (frame["code"][row], "(rare)")
