# Six rows (stars) have a label; the others act through the neighbor
# graph.
import matplotlib.pyplot as plt
import numpy as np

from marginfold import LapSVC, PlanesDisplay
from marginfold.data import load

iris = load("iris")
X, y = iris.X[:, [2, 3]], np.full(150, "?", dtype=object)
y[::25] = iris.y[::25]
model = LapSVC(kernel="rbf", unlabeled="?").fit(X, y)
display = PlanesDisplay.from_estimator(model, X, y)
display.ax_.plot(*X[::25].T, "k*", markersize=9)
wrong = np.mean(model.predict(X) != iris.y)
display.ax_.set_title(
    f"6 labels, {wrong:.1%} of all rows wrong", fontsize=10
)
display.ax_.set(xlabel="petal length", ylabel="petal width")
plt.show()
