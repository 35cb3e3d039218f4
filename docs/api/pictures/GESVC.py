# The regions of a classifier whose margin is shaped by the scatter
# within classes.
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from marginfold import GESVC, PlanesDisplay
from marginfold.data import load

wine = load("wine")
X, y = wine.X[:, [6, 9]], wine.y
X, X_new, y, y_new = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
model = GESVC(kernel="rbf", graph="within").fit(X, y)
display = PlanesDisplay.from_estimator(
    model, X, y, held_out=(X_new, y_new)
)
wrong = 1 - model.score(X_new, y_new)
display.ax_.set_title(
    f"{wrong:.1%} of the held-out rows wrong", fontsize=10
)
display.ax_.set(xlabel="flavanoids", ylabel="color intensity")
plt.show()
