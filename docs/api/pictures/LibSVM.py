# The gap that libsvm's own tolerance leads to; once its support
# vectors are right, it is rounding.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import scale

from marginfold import LibSVM
from marginfold.data import load

heart = load("heart")
X, y = scale(heart.X), np.where(heart.y == 2, 1, -1)

figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
for tol in (1, 1e-1, 1e-2, 1e-3, 1e-4):
    solution = LibSVM(kkt_tol=tol).solve(X, y, C=1.0)
    ax.loglog(
        solution.n_iter, solution.gap, "o", label=f"kkt_tol={tol:g}"
    )
ax.axhline(1e-8, color="gray", linestyle="--", label="tol")
ax.set_title("270 patients, 13 columns")
ax.set(xlabel="iterations", ylabel="relative duality gap")
ax.legend()
plt.show()
