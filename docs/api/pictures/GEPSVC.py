# Two classes that cross: a row belongs to the nearest plane, and
# here planes are lines.
import matplotlib.pyplot as plt

from marginfold import GEPSVC, PlanesDisplay
from marginfold.data import cross_planes

known = cross_planes(100, random_state=0)
new = cross_planes(200, random_state=1)
model = GEPSVC().fit(known.X, known.y)
display = PlanesDisplay.from_estimator(
    model, known.X, known.y, held_out=(new.X, new.y)
)
wrong = 1 - model.score(new.X, new.y)
display.ax_.set_title(
    f"{wrong:.1%} of the held-out rows wrong", fontsize=10
)
plt.show()
