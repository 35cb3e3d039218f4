# Errors over the folds for each weight of the graph; the chosen
# weight is marked.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import LSVA, PathDisplay, SubspaceSearchCV
from marginfold.data import load

vehicle = load("vehicle")
weights = [0.01, 0.1, 1, 10, 100]
search = SubspaceSearchCV(LSVA(3), graph_weight=weights).fit(
    scale(vehicle.X), vehicle.y
)
PathDisplay.from_estimator(search)
plt.show()
