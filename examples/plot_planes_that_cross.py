"""
What if classes cross instead of lying apart?
=============================================

A separating plane needs a side for each class.  Some classes have none: they are flat, each in its
own direction, and run through each other.  Then a plane through each class is the better model.
"""

# %%
# Two noisy lines that cross.  100 rows to learn from, 1000 held out.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from marginfold import GEPSVC, PlanesDisplay
from marginfold.data import cross_planes

seed = 0
known = cross_planes(100, random_state=seed)
new = cross_planes(1000, random_state=seed + 1000)

# %%
# A row belongs to the nearest plane; here planes are lines.  A linear support vector machine has to
# cut, and one with an rbf kernel bends its border.  Filled points are held-out rows.

models = {"GEPSVC": GEPSVC(), "SVC, linear": SVC(kernel="linear"), "SVC, rbf": SVC(C=10)}
figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(known.X, known.y)
    held_out = (new.X[::5], new.y[::5])
    PlanesDisplay.from_estimator(model, known.X, known.y, held_out=held_out, ax=ax)
    ax.set_title(f"{name}: {1 - model.score(new.X, new.y):.1%} wrong", fontsize=10)
    ax.label_outer()
    if ax is not axes[0]:
        ax.get_legend().remove()
plt.show()

# %%
# One draw proves little.  Twenty draws in 2 columns, and twenty in 10 columns, where each class
# keeps to a plane of 9 dimensions through the middle.


def crossing(n_rows, n_columns, rng):
    y = rng.integers(2, size=n_rows)
    X = rng.uniform(-1, 1, (n_rows, n_columns))
    X[np.arange(n_rows), y] = 0  # class 0 is flat in the first column, class 1 in the second
    return X + rng.normal(scale=0.05, size=X.shape), y


rng = np.random.default_rng(seed)
errors = {}
for n_columns in (2, 10):
    for _ in range(20):
        X, y = crossing(100, n_columns, rng)
        X_new, y_new = crossing(1000, n_columns, rng)
        for name, model in models.items():
            wrong = 1 - model.fit(X, y).score(X_new, y_new)
            errors.setdefault((name, n_columns), []).append(wrong)

for (name, n_columns), values in errors.items():
    print(f"{n_columns:2} columns, {name:12}{np.mean(values):6.1%}, at most {max(values):.1%}")

# %%
# What the answer says, in every one of the draws:

assert max(errors["GEPSVC", 2] + errors["GEPSVC", 10]) < 0.1
assert min(errors["SVC, linear", 2] + errors["SVC, linear", 10]) > 0.2
assert max(errors["SVC, rbf", 2]) < 0.2 < min(errors["SVC, rbf", 10])

# %%
# Lay a plane through each class: GEPSVC is wrong for fewer than 10 % of new rows, a linear SVC for
# more than 20 %, and an SVC with an rbf kernel for fewer than 20 % in 2 columns and more in 10.
