# The regions of the class of most of the five nearest rows.
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from marginfold import NeighborsClassifier, PlanesDisplay
from marginfold.data import load

iris = load("iris")
X, y = iris.X[:, [0, 1]], iris.y
X, X_new, y, y_new = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
model = NeighborsClassifier(5).fit(X, y)
display = PlanesDisplay.from_estimator(
    model, X, y, held_out=(X_new, y_new)
)
wrong = 1 - model.score(X_new, y_new)
display.ax_.set_title(
    f"{wrong:.1%} of the held-out rows wrong", fontsize=10
)
display.ax_.set(xlabel="sepal length", ylabel="sepal width")
plt.show()
