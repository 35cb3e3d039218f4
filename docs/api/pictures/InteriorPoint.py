# The gap, a bound of the relative error, after so many iterations.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import scale

from marginfold import InteriorPoint
from marginfold.data import load

heart = load("heart")
X, y = scale(heart.X), np.where(heart.y == 2, 1, -1)
iterations = range(1, 13)
gaps = [
    InteriorPoint(max_iter=k).solve(X, y, C=1.0).gap
    for k in iterations
]

figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
ax.semilogy(iterations, gaps, "o-")
ax.axhline(1e-8, color="gray", linestyle="--")
ax.annotate("tol", (1, 1e-8), va="bottom")
ax.set_title("270 patients, 13 columns")
ax.set(xlabel="iterations", ylabel="relative duality gap")
plt.show()
