"""Solvers of the support vector problem: arrays in, frozen solutions with a certificate out."""

from marginfold.svm.interior_point import InteriorPoint
from marginfold.svm.libsvm import LibSVM
from marginfold.svm.policy import Automatic
from marginfold.svm.problem import BlockRows, SVMBatch, SVMSolution, SVMSolver

__all__ = [
    "Automatic",
    "BlockRows",
    "InteriorPoint",
    "LibSVM",
    "SVMBatch",
    "SVMSolution",
    "SVMSolver",
]
