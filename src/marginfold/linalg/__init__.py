"""Eigenvalue problems: a few eigenpairs of a symmetric matrix, dense or sparse."""

from marginfold.linalg.leading import definite_factor, leading_pairs, pencil_pairs
from marginfold.linalg.sparse import felt_nodes, smallest_pairs

__all__ = ["definite_factor", "felt_nodes", "leading_pairs", "pencil_pairs", "smallest_pairs"]
