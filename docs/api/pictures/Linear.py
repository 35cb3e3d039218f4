# 40 rows of 60 columns have 39 coordinates; all distances are what
# they were.
import matplotlib.pyplot as plt
from scipy.spatial.distance import pdist

from marginfold import Linear
from marginfold.data import load

X = load("sonar").X[::5][:40]
Z = Linear().fit_transform(X)

figure, ax = plt.subplots(figsize=(4.2, 3.6), layout="constrained")
ax.plot(pdist(X), pdist(Z), ".", markersize=3)
ax.set(
    title=f"{X.shape[1]} columns, {Z.shape[1]} coordinates",
    aspect="equal",
)
ax.set(xlabel="distance of two rows", ylabel="in coordinates Z")
plt.show()
