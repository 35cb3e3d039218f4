"""Factorisations in blocks are those of LAPACK, whatever the size of a block."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from marginfold.errors import CancelledError
from marginfold.linalg import decompositions as blocked
from marginfold.runtime.progress import watch


@pytest.fixture(params=[1, 40, 64, 1000])
def n(request, monkeypatch):
    monkeypatch.setattr(blocked, "LEAST_BLOCK", 16)
    monkeypatch.setattr(blocked, "CALL_OPERATIONS", 1.0)
    return min(request.param, 200)


def definite(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n + 2))
    return A @ A.T + np.eye(n)


def test_factors_multiply_to_the_matrix(n):
    A = definite(n)
    lower, upper = A.copy(), A.copy()
    assert blocked.factorise(lower, "factor")
    assert blocked.reverse_factorise(upper, "factor")
    assert_allclose(lower, np.linalg.cholesky(A), atol=1e-10 * n)
    assert_allclose(upper @ upper.T, A, atol=1e-10 * n)
    assert not np.tril(upper, -1).any()


def test_an_indefinite_matrix_is_noticed(n):
    A = definite(n)
    A[-1, -1] = -1.0
    assert not blocked.factorise(A, "factor")


def test_products_of_triangles(n):
    C, R = np.linalg.cholesky(definite(n)), definite(n, seed=1)
    L = definite(n, seed=2)
    assert blocked.reverse_factorise(R, "factor")
    assert_allclose(blocked.form_of(C, L @ C, "form"), C.T @ L @ C, rtol=1e-10)
    assert_allclose(blocked.square_of(C, "square"), C @ C.T, rtol=1e-10)
    quotient = C.copy()
    blocked.quotient(quotient, R, "quotient")
    assert_allclose(quotient @ R.T, C, atol=1e-9 * n)
    assert not np.triu(quotient, 1).any()


def test_work_ends_at_the_next_block_when_it_is_cancelled():
    with pytest.raises(CancelledError), watch(lambda event: event.cancel()):
        blocked.factorise(definite(10), "factor")
