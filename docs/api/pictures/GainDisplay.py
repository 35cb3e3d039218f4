# What each direction gains, and what of it no earlier one has.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import WSVDA, GainDisplay
from marginfold.data import load

vehicle = load("vehicle")
model = WSVDA(8).fit(scale(vehicle.X), vehicle.y)
GainDisplay.from_estimator(model)
plt.show()
