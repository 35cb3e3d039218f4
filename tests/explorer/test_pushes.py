from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from marginfold import LDA, LSVA, SVMPCA, ExactKernel
from marginfold.explorer.pushes import row_pushes

X, y = load_wine(return_X_y=True)
X = scale(X)


@pytest.mark.parametrize("estimator", [LSVA(3), SVMPCA(3), LDA(2)])
def test_pushes_of_a_linear_map_are_its_components_times_the_distance_to_the_centre(estimator):
    fitted = estimator.fit(X, y)
    centre = X[y == 1].mean(axis=0)
    jacobian = np.column_stack(
        [fitted.transform(X[:1] + e)[0] - fitted.transform(X[:1])[0] for e in np.eye(X.shape[1])]
    )
    expected = jacobian * (X[4] - centre)
    np.testing.assert_allclose(row_pushes(fitted, X[4], centre), expected, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
def test_pushes_of_a_kernel_map_sum_to_the_move(kernel):
    fitted = LSVA(2, kernel=ExactKernel(kernel), C=10.0).fit(X, y)
    centre = X[:20].mean(axis=0)
    move = fitted.transform(X[[50]]) - fitted.transform(centre[None])
    pushes = row_pushes(fitted, X[50], centre)
    np.testing.assert_allclose(pushes.sum(axis=1), move[0], atol=1e-5 * np.abs(move).max())


def test_a_column_that_equals_the_centre_pushes_nothing():
    row = X[3].copy()
    centre = X.mean(axis=0)
    row[[0, 5]] = centre[[0, 5]]
    pushes = row_pushes(LSVA(2, kernel="rbf").fit(X, y), row, centre)
    assert (pushes[:, [0, 5]] == 0).all()
