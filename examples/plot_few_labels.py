"""
Do unlabelled rows help when 5 % of the labels are known?
=========================================================

Labels cost work, rows often do not.  A graph of neighbors can carry a label from a row that has
one to rows near it.
"""

# %%
# Handwritten digits: 1000 rows to learn from, and 797 rows held out that no method sees before it
# is judged.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import ttest_rel
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from marginfold import LapSVC, PathDisplay, PathSearchCV

seed = 0
rng = np.random.default_rng(seed)
X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16, y, train_size=1000, random_state=seed, stratify=y)

# %%
# Of the 1000 labels 50 are known, five of each digit; -1 stands for none.  SVC learns from those
# 50 rows alone, LapSVC and LabelSpreading (of scikit-learn) from all rows.  LapSVC chooses the
# weight of its graph by cross-validation on the 50 labels.  All of it six times, with other
# rows labelled.


def few_labels():
    known = [rng.choice(np.flatnonzero(y == digit), 5, replace=False) for digit in range(10)]
    return np.where(np.isin(np.arange(len(y)), known), y, -1)


errors = {"SVC": [], "LapSVC": [], "LabelSpreading": []}
for _ in range(6):
    few = few_labels()
    machine = LapSVC(kernel="rbf", C=10, unlabeled=-1)
    models = {
        "SVC": SVC(C=10).fit(X[few >= 0], few[few >= 0]),
        "LapSVC": PathSearchCV(machine, graph_weight=[3, 10, 30], cv=3).fit(X, few),
        "LabelSpreading": LabelSpreading(gamma=5).fit(X, few),
    }
    for name, model in models.items():
        errors[name].append(1 - model.score(X_new, y_new))

# %%
# Left: what the last search saw on its 50 labels.  Right: the held-out errors of all six runs.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
PathDisplay.from_estimator(models["LapSVC"], ax=left)
for height, values in enumerate(errors.values()):
    right.plot(100 * np.array(values), [height] * len(values), "o", color="#0072B2", alpha=0.5)
    right.plot(100 * np.mean(values), height, "|", color="black", markersize=18)
right.set(yticks=range(3), yticklabels=errors, xlabel="held-out error %", ylim=(-0.5, 2.5))
plt.show()

# %%
# Runs differ in which rows have labels.  A paired t-test asks whether that explains the difference.

for name, values in errors.items():
    print(f"{name:15}{np.mean(values):6.1%}  (standard deviation {np.std(values):.1%})")

for name in ("LapSVC", "LabelSpreading"):
    assert np.mean(errors[name]) < np.mean(errors["SVC"])
    assert ttest_rel(errors[name], errors["SVC"]).pvalue < 0.05
assert np.mean(errors["LabelSpreading"]) < np.mean(errors["LapSVC"])

# %%
# Yes: with 50 labels of digits both methods that look at the unlabelled rows make fewer errors than
# an SVC on the labelled ones, and scikit-learn's LabelSpreading is better here than our LapSVC.
