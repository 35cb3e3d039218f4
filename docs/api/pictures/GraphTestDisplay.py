# Scores with the edges of the graph between other rows (gray), and
# with the graph itself.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import LPP, GraphTestDisplay, graph_permutation_test
from marginfold.data import load

wine = load("wine")
result = graph_permutation_test(
    LPP(2), scale(wine.X), wine.y, cv=3, n_permutations=30
)
GraphTestDisplay.from_result(result)
plt.show()
