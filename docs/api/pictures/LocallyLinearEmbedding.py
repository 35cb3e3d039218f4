# Wines as means of their neighbors; the labels colour the rows, the
# fit does not see them.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import (
    EmbeddingDisplay,
    LocallyLinearEmbedding,
    ReconstructionGraph,
)
from marginfold.data import load

wine = load("wine")
lle = LocallyLinearEmbedding(2, graph=ReconstructionGraph(5))
EmbeddingDisplay.from_embedding(
    lle.fit_transform(scale(wine.X)), wine.y, errors=True
)
plt.show()
