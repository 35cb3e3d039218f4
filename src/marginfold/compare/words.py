"""What a comparison says in sentences, for somebody who reads one for the first time.

Every sentence has its number, and the interval of that number wherever folds give one.  A
difference is called one only if its 95 % interval excludes zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marginfold.compare.methods import COMPLEXITY, LARGEST_CLASS, METHODS, plainness
from marginfold.compare.race import CONTROL, LEAST_FOLDS, Standing, behind, difference
from marginfold.compare.rows import Row
from marginfold.compare.runs import Comparison
from marginfold.protocols.cells import PERCENT
from marginfold.protocols.statistics import Interval

TOLERANCE = 1.0
"""Points: a simpler method whose interval allows no more than this beyond the best will do."""

SHOWN = 5
"""Methods that a sentence names; the table has all."""

USUAL = ("logistic regression", "SVC linear", "SVC rbf")
"""What most people would have taken without a comparison."""

TREES = tuple(name for name, method in METHODS.items() if method.complexity == max(COMPLEXITY))
"""Ensembles of trees: none of them has margins, components or pictures."""

NOT_CORRECTED = "not corrected for their number"
"""What to know of many intervals at once."""


@dataclass(frozen=True)
class Findings:
    """What sentences are made of.

    Attributes
    ----------
    best : str
    as_good : sequence of str
        Methods that cannot be told from it.
    rows : mapping of str to Row
        The measured methods by error.
    known : mapping of str to Standing
    comparison : Comparison
    ordered : (str, Interval) or None
        A method whose area under the curve is above that of chance, and the area in percent.
    """

    best: str
    as_good: Sequence[str]
    rows: Mapping[str, Row]
    known: Mapping[str, Standing]
    comparison: Comparison
    ordered: tuple[str, Interval] | None = None

    @property
    def others(self) -> list[Row]:
        """The measured methods besides the best, controls excepted, by error."""
        return [r for m, r in self.rows.items() if m != self.best and not METHODS[m].control]

    @property
    def enough(self) -> bool:
        """Whether there are folds enough for intervals."""
        return self.rows[self.best].n_folds >= LEAST_FOLDS

    def gap(self, method: str) -> Interval:
        """Return the error of a method minus that of the best, in points."""
        return behind(self.known[method], self.known[self.best], self.comparison)


def guessing_gap(found: Findings) -> Interval | None:
    """Return the error of the largest class minus that of the best, if it was measured."""
    if LARGEST_CLASS not in found.rows:
        return None
    return difference(
        found.known[LARGEST_CLASS].shares, found.known[found.best].shares, found.comparison
    )


def nothing_learnt(found: Findings) -> bool:
    """Return whether the best method cannot be told from always answering the largest class."""
    gap = guessing_gap(found)
    return gap is not None and (gap.low if found.enough else gap.mean) <= 0


def why_not_kept(found: Findings) -> str:
    """Return why the best method should not be kept, and what to do; nothing if it should."""
    if not found.enough:
        n = found.rows[found.best].n_folds
        return (
            f"{'1 fold is' if n == 1 else f'{n} folds are'} too few to choose a method to keep: at "
            f"least {LEAST_FOLDS} are needed. {few_folds_advice(found.comparison)}"
        )
    if nothing_learnt(found):
        return "no method is shown to be better than the largest class."
    package = METHODS[found.best].needs
    if package:
        return (
            f"a model file cannot contain models of the package {package}. Keep {found.best} in "
            "Python (--json and --report have the lines), or leave it out with --methods."
        )
    return ""


def few_folds_advice(comparison: Comparison) -> str:
    """Return what to do about too few folds."""
    if comparison.n_measurements < LEAST_FOLDS:
        return "Give more --folds or --repeats."
    return "The same command goes on where this one ended."


def answer(found: Findings) -> list[str]:
    """Return the answer in one or two sentences: how good the best is, and whether it is alone."""
    if nothing_learnt(found):
        return _nothing(found)
    return _begun([_how_good(found), *_the_next(found)])


def remarks(found: Findings) -> list[str]:
    """Return what else there is to know of the result."""
    if nothing_learnt(found):
        return _choice(found) if found.comparison.protocol == "paper" else []
    said = _as_good(found)
    if found.enough:
        said += _usual_choices(found) + _graph(found)
    return _begun(said + _choice(found))


def _begun(sentences: Sequence[str]) -> list[str]:
    """Begin sentences with a capital: names of methods need not."""
    return [sentence[:1].upper() + sentence[1:] for sentence in sentences]


def _how_good(found: Findings) -> str:
    row = found.rows[found.best]
    opening = "A tree ensemble wins: " if found.best in TREES else ""
    words = row.words.removeprefix(f"{found.best}, ")
    said = (
        f"{opening}{found.best} ({words}) makes the fewest errors: it is wrong on "
        f"{row.error:.1f} % of the rows it was not trained on{_in_brackets(row.interval)}"
    )
    gap = guessing_gap(found)
    if gap is None:
        return f"{said}."
    guess = found.rows[LARGEST_CLASS].error
    return f"{said}; always answering the largest class is wrong on {guess:.1f} %{_more(gap)}."


def _in_brackets(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" (95 % interval {interval.low:.1f} to {interval.high:.1f} %)"


def _more(gap: Interval) -> str:
    """Say by how much guessing is worse, unless there are too few folds."""
    if not np.isfinite(gap.low):
        return ""
    return f", which is {gap.mean:.1f} points more (95 % interval {gap.low:.1f} to {gap.high:.1f})"


def _nothing(found: Findings) -> list[str]:
    row, gap = found.rows[found.best], guessing_gap(found)
    assert gap is not None
    guess = found.rows[LARGEST_CLASS].error
    less = Interval(-gap.mean, -gap.high, -gap.low, gap.p_value)
    if found.ordered is not None:
        return _ordered(found, *found.ordered, points(less))
    return [
        f"No evidence that anything can be predicted here: the best method, {found.best}, is wrong "
        f"on {row.error:.1f} % of the rows it was not trained on, and always answering the largest "
        f"class on {guess:.1f} %; the difference is {points(less)}.",
        f"{_how_much(gap)}: look whether the columns have anything to do with "
        f"{found.comparison.source.target!r}, or bring more rows.",
    ]


def _ordered(found: Findings, method: str, area: Interval, less: str) -> list[str]:
    """Say that scores tell the classes apart although guessing makes as few errors."""
    error, guess = found.rows[found.best].error, found.rows[LARGEST_CLASS].error
    mean, low, high = (f"{value / PERCENT:.3f}" for value in (area.mean, area.low, area.high))
    return [
        "No method is shown to make fewer errors than always answering the largest class: the "
        f"best, {found.best}, is wrong on {error:.1f} % of the rows it was not trained on, and the "
        f"largest class on {guess:.1f} %; the difference is {less}.",
        f"But the scores of {method} order the rows by {found.comparison.source.target!r} better "
        f"than chance: its AUC is {mean} (95 % interval {low} to {high}; 0.5 is chance). Errors "
        "say little where one class has most of the rows: choose a method by AUC or bal. (balanced "
        "accuracy), keep it with 'marginfold fit', and take its scores (predict --scores).",
    ]


def _how_much(gap: Interval) -> str:
    """Say how much there may be to learn after all, by the interval of the gain over guessing."""
    if not np.isfinite(gap.high):
        return "These folds are too few to say whether a model is of use"
    if gap.high <= TOLERANCE:
        return (
            "Do not use a model of this table, it saves at most "
            f"{max(gap.high, 0.0):.1f} points of errors"
        )
    return (
        f"These rows do not decide it: a model may save up to {gap.high:.1f} points of errors, or "
        "none"
    )


def points(gap: Interval) -> str:
    """Return a difference in words, with its interval.

    Examples
    --------
    >>> from marginfold.compare.words import points
    >>> from marginfold.protocols.statistics import Interval
    >>> points(Interval(0.42, -0.81, 1.64, 0.4))
    '+0.4 points (95 % interval -0.8 to +1.6)'
    """
    mean, low, high = (f"{round(value, 1) + 0.0:+.1f}" for value in (gap.mean, gap.low, gap.high))
    if not np.isfinite(gap.low):
        return f"{mean} points (too few folds for an interval)"
    return f"{mean} points (95 % interval {low} to {high})"


def _the_next(found: Findings) -> list[str]:
    """Say whether the best can be told from the next."""
    n_others = len(found.others)
    if not n_others or not found.enough:
        return []
    following = found.others[0].method
    gap = points(found.gap(following))
    if following not in found.as_good:
        return [_ahead(found, following, gap)]
    more = len(found.as_good) - 1
    also = f"; the same holds for {more} more of the {n_others} other methods" if more else ""
    return [
        f"Whether it is better than the next, {following}, cannot be said: their errors differ by "
        f"{gap}{also}."
    ]


def _ahead(found: Findings, following: str, gap: str) -> str:
    n_others = len(found.others)
    if found.as_good:
        some = f"{len(found.as_good)} of the {n_others} other methods"
        return (
            f"The next, {following}, makes more errors, by {gap}; {some}, measured less exactly, "
            "may be as good as the best."
        )
    if n_others == 1:
        return f"The other method, {following}, makes more errors, by {gap}."
    return (
        f"Each of the {n_others} other methods makes more errors (95 % intervals, "
        f"{NOT_CORRECTED}); the next, {following}, by {gap}."
    )


def _as_good(found: Findings) -> list[str]:
    if not found.enough:
        n = found.rows[found.best].n_folds
        few = "1 fold is" if n == 1 else f"{n} folds are"
        return [
            f"{few} too few to say whether one method is better than another: at least "
            f"{LEAST_FOLDS} are needed (--folds, --repeats)."
        ]
    if not found.as_good:
        return []
    return [
        f"May be as good as {found.best} (the interval of the difference contains 0): "
        f"{_shown(found.as_good)}.",
        *_simplest(found),
    ]


def _simplest_method(found: Findings) -> str:
    """Return the simplest of the methods that may be the best, by the order of the catalogue."""
    return min([found.best, *found.as_good], key=plainness)


def _simplest(found: Findings) -> list[str]:
    simplest = _simplest_method(found)
    if simplest == found.best:
        return [f"{found.best} is also the simplest of these."]
    gap = found.gap(simplest)
    if gap.high <= TOLERANCE:
        return [
            f"The simplest of these, {simplest}, will do: at most {max(gap.high, 0.0):.1f} points "
            f"more errors than {found.best} (95 % interval)."
        ]
    return [
        f"The simplest of these is {simplest}; its error differs from that of {found.best} by "
        f"{points(gap)}. More rows, or more --repeats, would tell them apart."
    ]


def _usual_choices(found: Findings) -> list[str]:
    """Compare with what most people would have taken, and say whether trees or they are ahead."""
    own = [row.method for row in found.others if row.method not in (*USUAL, *TREES)]
    if found.best in TREES:
        plain = [row.method for row in found.others if row.method not in TREES]
        return [_beside("Of the methods without trees", plain[0], found)] if plain else []
    if found.best in USUAL:
        said = f"{found.best} is a usual choice, and no other method makes fewer errors here"
        return [f"{said}: marginfold's own methods bring no gain."] if own else []
    usual = [row.method for row in found.others if row.method in USUAL]
    said_of_trees = [
        _beside("The tree ensemble", row.method, found)
        for row in found.others
        if row.method in TREES
    ][:1]
    if not usual or usual[0] == _simplest_method(found):  # of which was spoken before
        return said_of_trees
    return [_beside("Of the usual choices", usual[0], found), *said_of_trees]


def _beside(opening: str, method: str, found: Findings) -> str:
    row = found.rows[method]
    fewer = row.n_folds < found.rows[found.best].n_folds
    those, same = (f" in the first {row.n_folds} folds", " in the same") if fewer else ("", "")
    comma = "" if opening == "The tree ensemble" else ","
    chance = ", which may be chance" if method in found.as_good else ""
    return (
        f"{opening}{comma} {method} is wrong on {row.error:.1f} %{those}: "
        f"{points(found.gap(method))} against {found.best}{same}{chance}."
    )


def _graph(found: Findings) -> list[str]:
    pair = [found.known[m] for m in CONTROL if m in found.rows]
    if len(pair) < len(CONTROL):
        return []
    gap = difference(pair[1].shares, pair[0].shares, found.comparison)
    if not np.isfinite(gap.low):
        return []
    effect = (
        "helps LSVA" if gap.low > 0 else "hurts LSVA" if gap.high < 0 else "does nothing for LSVA"
    )
    certain = "" if gap.low > 0 or gap.high < 0 else " that these folds can show"
    return [
        f"The neighbor graph {effect}{certain}: with the graph on permuted rows its error changes "
        f"by {points(gap)}."
    ]


def _choice(found: Findings) -> list[str]:
    if found.comparison.protocol == "paper":
        return [
            "Parameters were chosen on the test rows, as the papers do: these errors are too low. "
            "Use --protocol nested for an honest answer."
        ]
    n = len(found.others) + 1
    if n == 1:
        return []
    return [
        f"{found.best} was picked from {n} methods because it did best on these rows: expect "
        "slightly more errors on new ones."
    ]


def about_the_sample(comparison: Comparison) -> list[str]:
    """Return the line that says on how many rows is compared, if these are not all."""
    rows = comparison.source.read()
    if len(rows.labels) == rows.n_read:
        return []
    return [
        f"Compared on a sample of {len(rows.labels):,} of the {rows.n_read:,} rows, drawn in the "
        "proportions of the classes, to answer within the budget: with all rows errors are mostly "
        "lower and the order may change (--thorough takes all, --budget more)."
    ]


def cuts(rows: Sequence[Row], comparison: Comparison, stopped: float | None) -> list[str]:
    """Say what was not measured, and how to have it measured."""
    said = about_the_sample(comparison)
    whole = comparison.n_measurements
    early = [row for row in rows if 0 < row.n_folds < whole]
    if stopped is not None:
        n = max(row.n_folds for row in rows)
        said.append(
            f"STOPPED BY THE CLOCK after {stopped:.0f} s, before all planned folds were measured: "
            f"this answer rests on {n} of {whole} folds and depends on the speed of this machine. "
            "The same command goes on from here."
        )
        return said
    methods = [row for row in rows if not METHODS[row.method].control]
    worse = [row for row in methods if row in early and row.behind and row.behind.low > 0]
    if worse:
        said.append(
            f"{len(worse)} of {len(methods)} methods made clearly more errors than the best (95 % "
            f"intervals) after {_span([row.n_folds for row in worse])} of {whole} folds and were "
            "not measured on the others; --thorough measures all."
        )
    waiting = [row for row in early if row not in worse and not METHODS[row.method].control]
    if waiting:
        said.append(
            f"To answer within the budget, {_shown([row.method for row in waiting])} had "
            f"{_span([row.n_folds for row in waiting])} of {whole} folds only; a longer --budget "
            "gives all to whatever may be as good as the best."
        )
    return said


def _shown(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def without_result(stopped: float | None) -> str:
    """Say that there is no answer, and why if the clock is the reason."""
    if stopped is None:
        return "No method could be measured on all folds."
    return (
        f"STOPPED BY THE CLOCK after {stopped:.0f} s, before any method was measured. The "
        "same command goes on from here; --methods lda,pca would be quick."
    )


def choices(params: Mapping[str, object]) -> str:
    """Return chosen parameters in words.

    Examples
    --------
    >>> from marginfold.compare.words import choices
    >>> choices({"n_neighbors": 5, "graph_weight": 0.1})
    '5 neighbors, graph weight 0.1'
    """
    said = []
    for name, value in params.items():
        if name == "n_neighbors":
            said.append("1 neighbor" if value == 1 else f"{value} neighbors")
        else:
            said.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(said)
