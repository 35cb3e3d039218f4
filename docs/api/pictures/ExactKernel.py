# Distances in coordinates Z are those that the kernel defines,
# without approximation.
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.preprocessing import scale

from marginfold import ExactKernel
from marginfold.data import load

X = scale(load("wine").X)[::3]
Z = ExactKernel("rbf", gamma=0.05).fit_transform(X)
distance = np.linspace(0, pdist(X).max())

figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
ax.plot(pdist(X), pdist(Z), ".", label="two rows in coordinates Z")
ax.plot(
    distance,
    np.sqrt(2 - 2 * np.exp(-0.05 * distance**2)),
    "k--",
    label="by the kernel",
)
ax.set(title=f"{len(X)} rows, {Z.shape[1]} coordinates")
ax.set(
    xlabel="distance of two rows",
    ylabel="distance in the kernel's space",
)
ax.legend()
plt.show()
