# Three rows (stars) as means of their four nearest; lines are as
# thick as the weights, of sum 1.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import ReconstructionGraph
from marginfold.data import load

wine = load("wine")
X = scale(wine.X[::3, [6, 9]])
laplacian = ReconstructionGraph(n_neighbors=4).build(X)
M, nodes = laplacian.M.toarray(), X[laplacian.rows]

figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
ax.plot(*nodes.T, "o", color="silver")
for i in (43, 54, 58):
    for j in M[i].nonzero()[0]:
        ax.plot(*nodes[[i, j]].T, "C0", linewidth=12 * M[i, j])
    ax.plot(*nodes[i], "k*", markersize=12)
    ax.plot(
        *(M[i] @ nodes),
        "C1x",
        label="mean of the neighbors" if i == 43 else None,
    )
ax.set_title("Rows as means of neighbors")
ax.set(xlabel="flavanoids", ylabel="color intensity")
ax.legend()
plt.show()
