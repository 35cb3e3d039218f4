"""Eigenvalue problems: a few pairs of what is symmetric, dense or sparse."""

from marginfold.eigen.pencil import pencil_pairs

__all__ = ["pencil_pairs"]
