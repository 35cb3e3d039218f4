"""Nodes of an ONNX graph, written as the formulas that they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto
from onnx.numpy_helper import from_array

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array

OLDEST_OPSET = 13
"""The first set of operators in which sums and softmax are those that are written here."""

LABEL_ENCODER = 2
"""The version of the operator that numbers words; skl2onnx does not write the latest one."""

NUMBER_TYPES = {"FloatTensorType": TensorProto.FLOAT, "DoubleTensorType": TensorProto.DOUBLE}
"""Types of outputs that numbers are cast to; all others are as they come."""


@dataclass(frozen=True)
class Graph:
    """The graph that skl2onnx builds, as a place for nodes.

    All arithmetic is in float64, whatever goes in and comes out: kernel expansions add large terms
    of both signs, of which float32 leaves too few digits.
    """

    scope: Any
    container: Any

    def __post_init__(self) -> None:
        opset = self.container.target_opset
        if opset < OLDEST_OPSET:
            raise InvalidInputError(
                f"target_opset={opset} is too old: the nodes of marginfold need {OLDEST_OPSET}. "
                "Leave target_opset out, or give a later one."
            )

    def rows(self, variables: Sequence[Any]) -> Value:
        """Return the inputs of an operator, side by side, in float64."""
        parts = [self.cast(Value(self, variable.full_name)) for variable in variables]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)

    def cast(self, value: Value, to: int = TensorProto.DOUBLE) -> Value:
        """Return values in another type."""
        return self.node("Cast", value, to=to)

    def node(
        self,
        kind: str,
        *inputs: Any,
        axis: int | None = None,
        keepdims: int | None = None,
        to: int | None = None,
    ) -> Value:
        """Add a node; numbers, words and arrays among its inputs become constants."""
        name = self.scope.get_unique_variable_name(f"marginfold_{kind.lower()}")
        attributes = {"axis": axis, "keepdims": keepdims, "to": to}
        given = {key: value for key, value in attributes.items() if value is not None}
        self._add(kind, inputs, [name], given)
        return Value(self, name)

    def largest(self, values: Value, k: int) -> Value:
        """Return the numbers of the k largest entries of each row, of equal ones the first."""
        unused, indices = (
            self.scope.get_unique_variable_name(f"marginfold_{name}")
            for name in ("largest", "indices")
        )
        self._add("TopK", (values, np.array([k])), [unused, indices], {})
        return Value(self, indices)

    def numbered(self, words: Value, known: Sequence[str]) -> Value:
        """Return the place of each word among known ones; their number for all others."""
        name = self.scope.get_unique_variable_name("marginfold_words")
        places = {"values_int64s": list(range(len(known))), "default_int64": len(known)}
        attributes = {"keys_strings": list(known), **places}
        self._add("LabelEncoder", (words,), [name], attributes, ("ai.onnx.ml", LABEL_ENCODER))
        return Value(self, name)

    def end(self, value: Value, variable: Any) -> None:
        """Let a value be an output of the operator, in the type that the output has."""
        to = NUMBER_TYPES.get(type(variable.type).__name__)
        kind, attributes = ("Identity", {}) if to is None else ("Cast", {"to": to})
        self._add(kind, (value,), [variable.full_name], attributes)

    def value(self, given: Any) -> Value:
        """Return a value of the graph as it is, and a constant for numbers, words and arrays."""
        if isinstance(given, Value):
            return given
        name = self.scope.get_unique_variable_name("marginfold_constant")
        array = np.array(given, order="C")
        words = array.dtype.kind == "U"
        tensor = from_array(array.astype(object) if words else array, name)
        self.container.initializers.append(tensor)
        return Value(self, name)

    def _add(
        self,
        kind: str,
        inputs: Sequence[Any],
        outputs: list[str],
        attributes: Mapping[str, Any],
        home: tuple[str, int | None] = ("", None),
    ) -> None:
        names = [self.value(given).name for given in inputs]
        name = self.scope.get_unique_operator_name(f"marginfold_{kind}")
        domain, version = home
        self.container.add_node(
            kind, names, outputs, op_domain=domain, op_version=version, name=name, **attributes
        )


@dataclass(frozen=True)
class Value:
    """An array that the graph computes; operators add nodes."""

    graph: Graph
    name: str

    def __add__(self, other: Any) -> Value:
        return self.graph.node("Add", self, other)

    def __sub__(self, other: Any) -> Value:
        return self.graph.node("Sub", self, other)

    def __mul__(self, other: Any) -> Value:
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Any) -> Value:
        return self.graph.node("Div", self, other)

    def __matmul__(self, other: Any) -> Value:
        return self.graph.node("MatMul", self, other)

    def __pow__(self, exponent: float) -> Value:
        return self.graph.node("Pow", self, float(exponent))

    def __neg__(self) -> Value:
        return self.graph.node("Neg", self)

    def __abs__(self) -> Value:
        return self.graph.node("Abs", self)

    def of(self, function: str) -> Value:
        """Return a function of each number, by the name of its operator."""
        return self.graph.node(function, self)

    def squares(self) -> Value:
        """Return the sum of the squares of each row, as a column."""
        return (self * self).sum(1)

    def sum(self, axis: int, *, keepdims: bool = True) -> Value:
        """Return the sum along an axis."""
        axes = np.array([axis], dtype=np.int64)
        return self.graph.node("ReduceSum", self, axes, keepdims=int(keepdims))

    def columns(self, chosen: Array) -> Value:
        """Return some columns."""
        return self.graph.node("Gather", self, chosen.astype(np.int64), axis=1)

    def column(self, index: int) -> Value:
        """Return one column, as an array of one dimension."""
        return self.graph.node("Gather", self, np.int64(index), axis=1)
