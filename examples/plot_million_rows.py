"""
How long do a million rows take?
================================

A support vector machine has a constraint for each row, so one expects it to be slow on many.  But
only rows near the margin matter, and the others enter by their sums.
"""

# %%
# A million rows of 8 columns in single precision, three classes that overlap, and 100,000 rows
# held out.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import SGDClassifier
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import LSVA, EmbeddingDisplay, plan

seed = 0
rng = np.random.default_rng(seed)
means = 1.5 * rng.normal(size=(3, 8)).astype(np.float32)


def sample(n_rows):
    y = rng.integers(3, size=n_rows)
    return rng.standard_normal((n_rows, 8), dtype=np.float32) + means[y], y


X, y = sample(1_000_000)
X_new, y_new = sample(100_000)

# %%
# What will it cost?  The plan says so before anything is computed.  The graph joins rows of the
# same class; it costs no more than the sums over the classes.

lsva = LSVA(2, graph="within")
print(plan(lsva, X, y))

# %%
# The same rows for linear discriminant analysis, and for stochastic gradient descent on the hinge
# loss, scikit-learn's answer to very many rows.  We measure processor time.

models = {
    "LSVA": make_pipeline(lsva, NearestCentroid()),
    "LDA": LinearDiscriminantAnalysis(),
    "SGD": make_pipeline(StandardScaler(), SGDClassifier(random_state=seed)),
}
seconds, errors = {}, {}
for name, model in models.items():
    start = time.process_time()
    model.fit(X, y)
    seconds[name] = time.process_time() - start
    errors[name] = 1 - model.score(X_new, y_new)
    print(f"{name:5}{seconds[name]:6.2f} s, held-out error {errors[name]:.2%}")

# %%
# Held-out rows in the two directions, one in twenty of them.

EmbeddingDisplay.from_embedding(
    lsva.transform(X_new[::20]),
    y_new[::20],
    held_out=np.ones(len(X_new[::20]), dtype=bool),
    ax=plt.subplots(figsize=(6.4, 4.4), layout="constrained")[1],
)
plt.show()

# %%
# The duality gap certifies that the margins are those of all million rows, not of a sample.

print("certified gaps:", lsva.gap_)
assert lsva.gap_.max() < 1e-8
assert seconds["LSVA"] < seconds["SGD"]
assert seconds["LSVA"] < 10 * seconds["LDA"]
assert abs(errors["LSVA"] - errors["LDA"]) < 0.02

# %%
# Less than ten times as long as LDA and less than stochastic gradient descent: two directions of
# maximum margin are exact to a gap of 1e-8 on all rows, with errors within 2 points of LDA's.
