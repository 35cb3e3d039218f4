# What each direction gains, and what of it no earlier one has.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import LSVA, GainDisplay
from marginfold.data import load

vehicle = load("vehicle")
GainDisplay.from_estimator(LSVA(8).fit(scale(vehicle.X), vehicle.y))
plt.show()
