from __future__ import annotations

import numpy as np
import pytest

from marginfold.protocols.splits import hold_out
from marginfold.protocols.statistics import Share


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
def test_every_class_has_its_share_held_out_and_a_row_left(share):
    y = np.repeat(["a", "b", "c", "d"], [101, 40, 2, 1])
    held_out = hold_out(y, share, seed=4)
    for label, count in zip(*np.unique(y, return_counts=True), strict=True):
        out = int(held_out[y == label].sum())
        assert out < count
        assert out >= min(1, count - 1)
        if count > 2:
            assert abs(out - share * count) <= 1


def test_the_same_seed_holds_out_the_same_rows_and_another_one_others():
    y = np.arange(60) % 3
    assert (hold_out(y, 0.3, 1) == hold_out(y, 0.3, 1)).all()
    assert (hold_out(y, 0.3, 1) != hold_out(y, 0.3, 2)).any()


def test_the_interval_of_a_share_is_that_of_wilson():
    count, n, z = 15, 360, 1.959963984540054
    share, width = count / n, z * np.sqrt(count / n * (1 - count / n) / n + z**2 / (4 * n**2))
    centre = share + z**2 / (2 * n)
    found = Share.of(count, n)
    expected = np.array([centre - width, centre + width]) / (1 + z**2 / n)
    np.testing.assert_allclose([found.low, found.high], expected)
    assert (found.value, found.n) == (share, n)
