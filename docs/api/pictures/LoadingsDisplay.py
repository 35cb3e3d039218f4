# The columns that weigh most in the first direction.
import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import LSVA, LoadingsDisplay
from marginfold.data import load

wine = load("wine")
model = make_pipeline(StandardScaler(), LSVA(2)).fit(wine.X, wine.y)
LoadingsDisplay.from_estimator(
    model, wine.X, feature_names=wine.feature_names
)
plt.show()
