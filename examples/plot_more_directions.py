"""
Are there more useful directions than classes minus one?
========================================================

Linear discriminant analysis (LDA) has one direction for two classes, two for three, and no more.
Directions of maximum margin go on: each is uncorrelated with those before it.
"""

# %%
# Is a handwritten digit odd or even?  Two classes, each of five different shapes.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from marginfold import LSVA, GainDisplay
from marginfold.protocols import paired_interval

seed = 0
X, digit = load_digits(return_X_y=True)
X, y = X / 16, np.where(digit % 2, "odd", "even")

# %%
# The first k of ten directions are those of a fit with k, for LSVA as for PCA.  So one fit in each
# fold gives the whole curve: the error of five neighbors in 1, 2, ..., 10 directions.

methods = {"LDA": LinearDiscriminantAnalysis(), "LSVA": LSVA(10), "PCA": PCA(10)}
errors = {name: [] for name in methods}
for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y):
    for name, method in methods.items():
        fitted = clone(method).fit(X[train], y[train])
        Z, Z_new = fitted.transform(X[train]), fitted.transform(X[test])
        curve = [
            1 - KNeighborsClassifier().fit(Z[:, :k], y[train]).score(Z_new[:, :k], y[test])
            for k in range(1, Z.shape[1] + 1)
        ]
        errors[name].append(curve)
errors = {name: np.array(curves) for name, curves in errors.items()}

# %%
# Left: the error by the number of directions, with its standard deviation over the folds.  Right:
# the gain of each direction of the last fold, the share of the margin's cost that it saves.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for (name, curves), color in zip(errors.items(), ("black", "#0072B2", "#D55E00"), strict=True):
    k = np.arange(1, curves.shape[1] + 1)
    left.errorbar(k, 100 * curves.mean(0), 100 * curves.std(0), marker="o", color=color, label=name)
left.set(xlabel="directions", ylabel="held-out error %", xticks=range(1, 11), ylim=(0, None))
left.legend()
GainDisplay.from_estimator(LSVA(10).fit(X[train], y[train]), ax=right)
plt.show()

# %%
# Differences are paired by folds.  The interval allows for training rows that folds share.


def difference(first, second):
    return paired_interval(first - second, n_train=9, n_test=1)


more = difference(errors["LDA"][:, 0], errors["LSVA"][:, 9])
few = difference(errors["PCA"][:, 1], errors["LSVA"][:, 1])
many = difference(errors["LSVA"][:, 9], errors["PCA"][:, 9])
print(f"LDA's one direction - ten of LSVA: {more}")
print(f"two of PCA          - two of LSVA: {few}")
print(f"ten of LSVA         - ten of PCA:  {many}")
assert min(more.low, few.low, many.low) > 0

# %%
# Yes: ten directions of LSVA make fewer errors than the one that LDA has, and two of them fewer
# than two of PCA, but where ten are allowed PCA, which does not look at labels, is better here.
