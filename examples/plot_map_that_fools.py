"""
Do groups in a map mean that there are groups?
==============================================

A method that is given labels looks for directions that part them.  With enough columns it finds
some whatever the labels are.  Here they are drawn at random, so there is nothing to find.
"""

# %%
# 300 rows of noise in 140 columns, and three labels that have nothing to do with them.  Half of the
# rows are held out.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from marginfold import LSVA, EmbeddingDisplay

seed = 0
rng = np.random.default_rng(seed)
X = rng.normal(size=(300, 140))
y = rng.integers(3, size=300)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)

# %%
# The usual picture shows the rows that the map was made from.  We draw it, and beside it the rows
# that were held out, through the same two directions.

model = LSVA(2).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
EmbeddingDisplay.from_embedding(model.transform(X), y, ax=left)
held_out = np.ones(len(X_new), dtype=bool)
EmbeddingDisplay.from_embedding(model.transform(X_new), y_new, held_out=held_out, ax=right)
left.set_title("the rows that made the map")
right.set_title("rows held out")
plt.show()

# %%
# It is no fault of one method.  Linear discriminant analysis of scikit-learn does the same.

errors = {}
for name, method in {"LSVA": LSVA(2), "LDA": LinearDiscriminantAnalysis(n_components=2)}.items():
    method.fit(X, y)
    nearest = KNeighborsClassifier(5).fit(method.transform(X), y)
    errors[name] = [
        1 - nearest.score(method.transform(rows), labels)
        for rows, labels in ((X, y), (X_new, y_new))
    ]
    print(f"{name:5} training rows {errors[name][0]:6.1%}   held-out rows {errors[name][1]:6.1%}")

# %%
# Guessing is wrong for two rows in three.  150 held-out rows leave an uncertainty of 8 points on
# both sides (two standard errors); we allow three.

chance = 2 / 3
allowance = 3 * np.sqrt(chance * (1 - chance) / len(y_new))
for training, new in errors.values():
    assert training < 0.15
    assert abs(new - chance) < allowance

# %%
# No: on random labels both LSVA and LDA place fewer than 15 % of their own rows among the
# wrong group, and new rows no better than guessing, so judge a map by rows that were held out.
