# Wines by their neighbors alone; the labels colour the rows, the
# fit does not see them.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import EmbeddingDisplay, LaplacianEigenmaps
from marginfold.data import load

wine = load("wine")
coordinates = LaplacianEigenmaps(2).fit_transform(scale(wine.X))
EmbeddingDisplay.from_embedding(coordinates, wine.y, errors=True)
plt.show()
