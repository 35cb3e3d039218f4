"""What can come of a fit and of its use, sorted into classes: answers, refusals and open faults."""

from __future__ import annotations

import traceback
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from estimator_families import state
from score_card import OPEN
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

from marginfold.errors import MarginfoldError, MarginfoldWarning

ANSWER = "answer"
WARNED = "answer, warned"
REFUSED = "refused"
PRESCRIBED = "refused by scikit-learn"

METHODS = ("transform", "decision_function", "distances", "predict")
"""What is asked of a fitted estimator, as far as it has it."""

SHORTEST_MESSAGE = 20
"""Characters below which a message cannot say what was got."""


@dataclass(frozen=True)
class Case:
    """What is given to an estimator: parameters that it has, rows to fit and rows to use it on."""

    X: Any
    y: Any
    weight: Any = None
    new: Any = None
    parameters: dict[str, Any] = field(default_factory=dict)

    def applies_to(self, estimator: Any) -> bool:
        """Return whether the estimator has all parameters of the case."""
        return self.parameters.keys() <= estimator.get_params().keys()


def outcome(estimator: Any, case: Case, fitted_on: tuple[Any, Any]) -> str:
    """Return the class of what happens when a fitted estimator meets the case."""
    model = clone(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*fitted_on)
    model.set_params(**case.parameters)
    before = state(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = _fit_and_use(model, case, before)
    foreign = [w for w in caught if not _is_expected(w)]
    if foreign and not found.startswith(OPEN):
        return f"{OPEN}: leaks {foreign[0].category.__name__}: {foreign[0].message}"
    return WARNED if found == ANSWER and caught else found


def _fit_and_use(model: Any, case: Case, before: dict[str, Any]) -> str:
    try:
        model.fit(case.X, case.y, sample_weight=case.weight)
    except Exception as error:
        after = state(model)
        same = after.keys() == before.keys() and all(after[k] is before[k] for k in before)
        return _refusal(error) if same else f"{OPEN}: a failed fit changed the estimator"
    rows = case.X if case.new is None else case.new
    for name in METHODS:
        if hasattr(model, name):
            try:
                values = np.asarray(getattr(model, name)(rows))
            except Exception as error:
                return _refusal(error)
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                return f"{OPEN}: {name} is not finite"
    return ANSWER


def _is_expected(warning: Any) -> bool:
    """Return whether a warning is ours, or what scikit-learn's searches say of folds."""
    if issubclass(warning.category, (MarginfoldWarning, FitFailedWarning)):
        return True
    return str(warning.message).startswith("The least populated class in y")


def _refusal(error: Exception) -> str:
    said = f"{type(error).__name__}: {error}"
    if len(str(error)) < SHORTEST_MESSAGE:
        return f"{OPEN}: says too little: {said}"
    if isinstance(error, MarginfoldError):
        return REFUSED
    if isinstance(error, (TypeError, ValueError)) and _is_prescribed(error):
        return PRESCRIBED
    return f"{OPEN}: bare {said}"


def _is_prescribed(error: Exception) -> bool:
    """Return whether scikit-learn's own validation raised the error, with its own words."""
    files = [
        frame.filename.replace("\\", "/") for frame in traceback.extract_tb(error.__traceback__)
    ]
    inside = any("/sklearn/" in name for name in files)
    return inside and "not supported between" not in str(error)


def open_ones(found: dict[str, str]) -> str:
    """Return what is open, a line each."""
    return "\n".join(f"{case}: {what}" for case, what in found.items() if what.startswith(OPEN))
