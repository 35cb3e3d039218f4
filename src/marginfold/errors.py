"""Every error and warning that marginfold raises on purpose.

::

    Exception
    +-- MarginfoldError
        +-- InvalidInputError (also ValueError)   data that no method can use
        |   +-- InvalidParameterError             a parameter out of its range
        |   +-- GraphError                        a graph that does not fit or is not PSD
        |   +-- NoDirectionError                  there is no direction to return
        +-- SolverError (also RuntimeError)       an invalid problem, or no accurate solution
        +-- TooLargeError (also MemoryError)      more memory needed than there is
        +-- CancelledError                        cancelled by a watcher, nothing is kept
        +-- WorkerLostError (also RuntimeError)   a call whose process died again and again
        +-- ClusterError (also RuntimeError)      a cluster that is gone or cannot do the work

    UserWarning
    +-- MarginfoldWarning
        +-- CancelledWarning                      fewer components: cancelled by a watcher
        +-- ExhaustedWarning                      fewer components or planes than requested
        +-- GraphUnderflowWarning                 edge weights so small that the graph has no effect
        +-- UncertifiedWarning                    a solver stopped with too large a duality gap
"""

from __future__ import annotations

import sys
import warnings

OWN_FRAMES = ("joblib", "marginfold", "sklearn")
"""Packages that a warning does not point into: it names the line of the user."""


class MarginfoldError(Exception):
    """Base of all errors of this package."""


class InvalidInputError(MarginfoldError, ValueError):
    """The data cannot be used; the message says what was given, what is needed and what to do."""


class InvalidParameterError(InvalidInputError):
    """A parameter is outside its range."""


class GraphError(InvalidInputError):
    """A graph does not match the rows, is not symmetric or is not positive semi-definite."""


class NoDirectionError(InvalidInputError):
    """No direction separates classes or has variance: there is no component to return."""


class SolverError(MarginfoldError, RuntimeError):
    """A solver was given an invalid problem, or did not reach the accuracy that it promises."""


class TooLargeError(MarginfoldError, MemoryError):
    """The work needs more memory than there is; nothing was allocated for it."""


class CancelledError(MarginfoldError):
    """A watcher cancelled the work before there was a result to keep."""


class WorkerLostError(MarginfoldError, RuntimeError):
    """The process of a call died (killed, out of memory) every time it was tried."""


class ClusterError(MarginfoldError, RuntimeError):
    """The cluster was lost, or its workers cannot do the work; what was returned is kept."""


class MarginfoldWarning(UserWarning):
    """Base of all warnings of this package."""


class CancelledWarning(MarginfoldWarning):
    """A watcher cancelled the work; the components found until then are kept."""


class ExhaustedWarning(MarginfoldWarning):
    """Fewer components than requested carry information."""


class GraphUnderflowWarning(MarginfoldWarning):
    """Most edge weights are below the floating-point resolution: the graph has no effect."""


class UncertifiedWarning(MarginfoldWarning):
    """A solution was returned whose duality gap is above the tolerance."""


def warn(message: str, category: type[MarginfoldWarning]) -> None:
    """Warn at the user's line, however deep in the library it is found."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in OWN_FRAMES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)
