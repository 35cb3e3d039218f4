"""The value that planning returns: steps, memory, time, and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass

from marginfold.runtime.memory import readable

UNCERTAINTY = 4.0
"""Factor by which the time may differ either way (see ``benchmarks/planner.py``)."""

MINUTE, HOUR = 60.0, 3600.0
"""Seconds of larger units."""


@dataclass(frozen=True)
class Step:
    """One step of a fit.

    Attributes
    ----------
    name : str
        What is done, such as "coordinates", "graph" or "solver".
    memory_bytes : float
        Memory in use at the worst moment of the step, beyond the rows that are given.
    seconds : float
        Its time on one core of this machine.
    """

    name: str
    memory_bytes: float
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What a fit will need; ``print`` shows it as a table.

    Attributes
    ----------
    estimator : str
        Name of the class.
    n_rows, n_columns : int
        Shape of the rows.
    rank : int
        Coordinates in which each row is represented; an upper bound where the data decide.
    route : str
        "primal", "dual" (more columns than rows), "exact kernel", "low rank" (a feature map or
        transformer), "graph" (no coordinates) or "blocks" (dask: the memory is that of this
        process, not of the workers).
    steps : tuple of Step
    available_bytes : int or None
        Memory that is available now, None if that is unknown.
    instead : str or None
        What to use instead if the fit does not fit, else None.
    notes : tuple of str
        What was assumed.
    """

    estimator: str
    n_rows: int
    n_columns: int
    rank: int
    route: str
    steps: tuple[Step, ...]
    available_bytes: int | None
    instead: str | None
    notes: tuple[str, ...] = ()

    @property
    def memory_bytes(self) -> float:
        """The largest memory in use at one time, beyond the rows that are given."""
        return max(step.memory_bytes for step in self.steps)

    @property
    def seconds(self) -> float:
        """The time of all steps, on one core."""
        return sum(step.seconds for step in self.steps)

    @property
    def seconds_range(self) -> tuple[float, float]:
        """From when to when the fit is likely to be done."""
        return self.seconds / UNCERTAINTY, self.seconds * UNCERTAINTY

    @property
    def fits(self) -> bool:
        """Whether the memory is enough (also if it is unknown how much there is)."""
        return self.available_bytes is None or self.memory_bytes <= self.available_bytes

    def __str__(self) -> str:
        head = f"{self.estimator} on {self.n_rows} x {self.n_columns}: {self.route}"
        head += f", {self.rank} coordinates" if self.rank else ""
        width = max(len(step.name) for step in self.steps)
        lines = [
            f"  {step.name:<{width}}  {readable(step.memory_bytes):>9}  {duration(step.seconds):>9}"
            for step in self.steps
        ]
        return "\n".join([head, *lines, *self._summary()])

    def _summary(self) -> list[str]:
        low, high = (duration(seconds) for seconds in self.seconds_range)
        there = "unknown" if self.available_bytes is None else readable(self.available_bytes)
        fits = "it fits" if self.fits else "it does not fit"
        lines = [
            f"memory: {readable(self.memory_bytes)} of {there}: {fits}",
            f"time: about {duration(self.seconds)} ({low} to {high}, one core)",
            *(f"note: {note}" for note in self.notes),
        ]
        return lines if self.instead is None else [*lines, f"instead: {self.instead}"]


def duration(seconds: float) -> str:
    """Return a time in a unit that makes it short.

    Examples
    --------
    >>> duration(0.0123), duration(75), duration(9000)
    ('12 ms', '1.2 min', '2.5 h')
    """
    sizes = {"h": HOUR, "min": MINUTE, "s": 1.0, "ms": 1e-3}
    unit = next((unit for unit, size in sizes.items() if seconds >= size), "ms")
    count = seconds / sizes[unit]
    return f"{count:.0f} {unit}" if count >= 10 else f"{count:.2g} {unit}"
