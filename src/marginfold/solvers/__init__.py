"""Solvers: arrays in, frozen solutions with a certificate out."""

from marginfold.solvers.automatic import Automatic
from marginfold.solvers.block_rows import BlockBatch, BlockRows
from marginfold.solvers.interior_point import InteriorPoint
from marginfold.solvers.libsvm import LibSVM
from marginfold.solvers.svm import SVMBatch, SVMSolution, SVMSolver

__all__ = [
    "Automatic",
    "BlockBatch",
    "BlockRows",
    "InteriorPoint",
    "LibSVM",
    "SVMBatch",
    "SVMSolution",
    "SVMSolver",
]
