from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone

from marginfold import graphs
from marginfold.errors import GraphError, InvalidInputError, InvalidParameterError
from marginfold.graphs import (
    BetweenClassGraph,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    ScaledGraph,
    SumGraph,
    TotalGraph,
    WithinClassGraph,
    resolve_graph,
)

RULES = [
    NeighborGraph(),
    WithinClassGraph(),
    BetweenClassGraph(),
    TotalGraph(),
    ReconstructionGraph(),
    PrecomputedGraph(np.zeros((4, 4))),
]
X = np.array([[0.0], [1.0], [3.0], [3.0]])
y = ["a", "a", "b", "b"]


def test_sums_clone_and_reach_nested_parameters():
    rule = 0.3 * NeighborGraph(7) + WithinClassGraph()
    rule.set_params(first__graph__n_neighbors=5, first__factor=0.7)
    copy = clone(rule)
    assert copy.get_params()["first__graph__n_neighbors"] == 5
    assert copy.first.factor == 0.7
    assert copy.first.graph is not rule.first.graph
    assert_allclose(copy.build(X, y).scatter(X), rule.build(X, y).scatter(X))


@pytest.mark.parametrize("factor", [2, 2.0, np.float64(2), np.int64(2)])
def test_any_number_scales_from_both_sides(factor):
    expected = 2 * TotalGraph().build(X).scatter(X)
    for rule in (factor * TotalGraph(), TotalGraph() * factor):
        assert isinstance(rule, ScaledGraph)
        assert_allclose(rule.build(X).scatter(X), expected)
    assert_allclose((TotalGraph() / factor).build(X).scatter(X), expected / 4)


def test_graphs_can_be_summed_as_a_list():
    rules = [TotalGraph(), 0.5 * TotalGraph()]
    expected = 1.5 * TotalGraph().build(X).scatter(X)
    assert_allclose(sum(rules).build(X).scatter(X), expected)
    with pytest.raises(TypeError):
        sum(rules, 3)


@pytest.mark.parametrize("factor", [-1.0, np.inf, np.nan, "2"])
def test_factors_that_break_the_graph_are_refused(factor):
    with pytest.raises(InvalidParameterError, match="ScaledGraph of TotalGraph got factor="):
        ScaledGraph(TotalGraph(), factor).build(X)


def test_graphs_add_to_graphs_only():
    with pytest.raises(TypeError):
        TotalGraph() + 1
    with pytest.raises(TypeError):
        TotalGraph() * TotalGraph()
    for part in ("knn", NeighborGraph):
        with pytest.raises(InvalidParameterError, match=r"SumGraph got .* as a part"):
            SumGraph(TotalGraph(), part).build(X)


def test_terms_on_different_rows_are_refused():
    class FirstRows:
        def build(self, X, y=None, **kwargs):
            return TotalGraph().build(X[:2])

    with pytest.raises(GraphError, match=r"TotalGraph \+ FirstRows got terms on 4 and 2 rows"):
        SumGraph(TotalGraph(), FirstRows()).build(X)


@pytest.mark.parametrize(("name", "kind"), graphs.SHORTHANDS.items())
def test_shorthands(name, kind):
    assert type(resolve_graph(name)) is kind


def test_shorthands_are_the_promised_ones():
    assert set(graphs.SHORTHANDS) == {"knn", "within", "between", "total", "lle", "anchors"}
    assert graphs.__all__ == sorted(graphs.__all__, key=lambda name: (not name.isupper(), name))


def test_rules_resolve_to_themselves():
    rule = NeighborGraph()
    assert resolve_graph(rule) is rule


@pytest.mark.parametrize("spec", ["heat", None, NeighborGraph, 3])
def test_anything_else_is_refused_with_the_list(spec):
    with pytest.raises(InvalidParameterError, match="'knn', 'within', 'between', 'total', 'lle'"):
        resolve_graph(spec)


BAD = {
    "one dimension": ((np.zeros(4), y), {}, "X of shape"),
    "no columns": ((np.zeros((4, 0)), y), {}, "X of shape"),
    "NaN": ((X * np.nan, y), {}, "X with NaN"),
    "overflow": ((X * 1e200, y), {}, ".*overflow"),
    "sparse infinity": ((sp.csr_array(np.full((4, 1), -np.inf)), y), {}, "X with NaN, infinite"),
    "short y": ((X, y[:3]), {}, r"y of shape \(3,\)"),
    "column y": ((X, np.array(y)[:, None]), {}, r"y of shape \(4, 1\)"),
    "short weights": ((X, y), {"sample_weight": [1.0]}, "sample_weight has shape"),
    "negative weights": ((X, y), {"sample_weight": [1, 1, 1, -1]}, "sample_weight.*negative"),
    "no weight": ((X, y), {"sample_weight": np.zeros(4)}, "All sample weights are zero"),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize(("data", "options", "message"), BAD.values(), ids=BAD)
def test_data_that_does_not_fit_is_refused_by_name(rule, data, options, message):
    with pytest.raises(GraphError, match=f"{type(rule).__name__}( got|:) {message}"):
        rule.build(*data, **options)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.0, 1.0, np.nan, 1.0], "NaN among the labels"),
        (np.array([1, "a", 1, 2], object), "types"),
    ],
)
def test_labels_that_are_no_classes(labels, message):
    with pytest.raises(GraphError, match=f"WithinClassGraph.*{message}"):
        WithinClassGraph().build(X, labels)


def test_description_of_a_graph_counted_by_hand():
    # nodes 0, 1, 3 (twice); 0-1 and 1-3 are joined; width (1 + 1 + 2 * 4) / (1 + 1 + 2) = 2.5
    description = NeighborGraph(1).describe(X)
    assert (description.n_rows, description.n_nodes, description.n_edges) == (4, 3, 2)
    assert (description.n_components, description.n_isolated) == (1, 0)
    assert_allclose(description.smallest_weight, 2 * np.exp(-4 / 2.5))
    assert_allclose(description.largest_weight, np.exp(-1 / 2.5))
    assert str(description) == (
        "NeighborGraph: 4 rows, 3 nodes, 2 edges, 1 components, 0 isolated, weights 0.404 to 0.67"
    )


def test_description_of_a_sum_joins_what_either_graph_joins():
    rows = np.array([[0.0], [1.0], [10.0], [11.0], [30.0], [31.0]])
    labels = ["a", "b", "b", "c", "d", "e"]
    rule = 0.5 * NeighborGraph(1, weights="binary") + WithinClassGraph()
    description = rule.describe(rows, labels)
    assert description.name == "0.5 * NeighborGraph + WithinClassGraph"
    assert NeighborGraph(1).describe(rows).n_components == 3
    assert WithinClassGraph().describe(rows, labels).n_components == 5
    assert (description.n_components, description.n_isolated, description.n_edges) == (2, 0, 4)
    assert (description.smallest_weight, description.largest_weight) == (0.5, 0.5)


def test_a_part_of_a_sum_is_joined_by_either_graph():
    """Rows 0 to 2 and 3 to 5 are near each other; row 6 has no weight."""
    rows = np.array([[0.0], [1.0], [2.5], [20.0], [21.0], [22.5], [10.0]])
    near, alike = NeighborGraph(1), WithinClassGraph()

    def parts(graph, y):
        weights = np.array([1.0] * 6 + [0.0])
        return graph.describe(rows, y, unlabeled=-1, sample_weight=weights).n_components

    across, inside = np.array([0, 0, -1, -1, -1, 0, 0]), np.array([0, 0, -1, -1, -1, 1, 1])
    assert [parts(graph, across) for graph in (near, alike, near + alike)] == [2, 4, 1]
    assert [parts(graph, inside) for graph in (near, alike, near + alike)] == [2, 5, 2]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_collection_that_is_not_in_memory_is_refused_with_what_to_do(rule):
    da = pytest.importorskip("dask.array")
    with pytest.raises(InvalidInputError, match=r"dask Array.*AnchorGraph"):
        rule.build(da.ones((4, 2), chunks=2), np.arange(4))
