# Two classes that cross, with ten labels (stars); the other rows
# act through the neighbor graph.
import matplotlib.pyplot as plt
import numpy as np

from marginfold import MRGEPSVC, PlanesDisplay
from marginfold.data import cross_planes

known = cross_planes(100, random_state=0)
new = cross_planes(200, random_state=1)
y = np.full(100, -1)
y[::10] = known.y[::10]
model = MRGEPSVC(unlabeled=-1).fit(known.X, y)
display = PlanesDisplay.from_estimator(model, known.X, y)
display.ax_.plot(*known.X[::10].T, "k*", markersize=9)
wrong = 1 - model.score(new.X, new.y)
display.ax_.set_title(
    f"10 labels, {wrong:.1%} of new rows wrong", fontsize=10
)
plt.show()
