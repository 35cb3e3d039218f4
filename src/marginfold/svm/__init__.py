"""Solvers: arrays in, frozen solutions with a certificate out."""

from marginfold.svm.block_rows import BlockBatch, BlockRows
from marginfold.svm.interior_point import InteriorPoint
from marginfold.svm.libsvm import LibSVM
from marginfold.svm.policy import Automatic
from marginfold.svm.problem import SVMBatch, SVMSolution, SVMSolver

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
