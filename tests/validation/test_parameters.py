"""Constraints of parameters: what they allow and what they say."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from marginfold.errors import InvalidParameterError
from marginfold.validation.parameters import Choice, Count, Flag, Number, check_parameters


@pytest.mark.parametrize(
    ("constraint", "allowed", "refused"),
    [
        (Number(), [0, -3.5, np.float32(2), np.int64(4)], [np.nan, np.inf, "1", None, True, 1j]),
        (Number(0.0), [0, 0.0, 1e300], [-1e-300, -1, [1.0]]),
        (Number(0.0, inclusive=False), [1e-300, 3], [0, 0.0, -0.0, -1]),
        (Count(), [1, 7, np.int64(3)], [0, -1, 1.0, 2.5, True, "1", None]),
        (Count(0), [0], [-1, False]),
        (Choice("a", "b", None), ["a", "b", None], ["A", "", 0, ["a"]]),
        (Choice(0, 1), [0, 1], [True, False, 1.0, "1"]),
        (Choice("auto", True), ["auto", True], [1, "True", np.array([1, 2])]),
        (Flag(), [True, False, np.True_], [0, 1, "yes", None]),
    ],
    ids=str,
)
def test_what_is_allowed(constraint, allowed, refused):
    assert [value for value in allowed if not constraint.allows(value)] == []
    assert [value for value in refused if constraint.allows(value)] == []


@pytest.mark.parametrize(
    ("constraint", "says"),
    [
        (Number(0.0), "a finite number >= 0"),
        (Number(1.5, inclusive=False), "a finite number > 1.5"),
        (Count(2), "a whole number >= 2"),
        (Choice("a", None), "one of 'a', None"),
        (Flag(), "True or False"),
    ],
)
def test_what_they_say(constraint, says):
    assert str(constraint) == says


def test_a_number_without_bound_does_not_talk_about_infinity():
    assert "inf" not in str(Number())


class Owner(SimpleNamespace):
    pass


def test_the_error_names_owner_parameter_range_and_value():
    owner = Owner(C=-1.0, tol=1e-3)
    with pytest.raises(InvalidParameterError) as caught:
        check_parameters(owner, {"tol": Number(0.0), "C": Number(0.0, inclusive=False)})
    assert str(caught.value) == "Owner: C must be a finite number > 0; got -1.0."


def test_the_first_parameter_out_of_range_is_named():
    with pytest.raises(InvalidParameterError, match="first"):
        check_parameters(Owner(first=-1, second=-1), {"first": Count(), "second": Count()})


def test_good_parameters_pass():
    check_parameters(Owner(a=1, b="x"), {"a": Count(), "b": Choice("x")})
