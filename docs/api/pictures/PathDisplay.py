# Errors over the folds for each number of components; the band is
# their standard deviation.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import LSVA, PathDisplay, SubspaceSearchCV
from marginfold.data import load

vehicle = load("vehicle")
search = SubspaceSearchCV(LSVA(8), n_components=range(1, 9)).fit(
    scale(vehicle.X), vehicle.y
)
PathDisplay.from_estimator(search, parameter="n_components")
plt.show()
