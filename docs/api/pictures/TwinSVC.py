# A line near each of two species, at a distance from the other one.
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from marginfold import PlanesDisplay, TwinSVC
from marginfold.data import load

iris = load("iris")
two = iris.y != "Iris-setosa"
X, y = iris.X[two][:, [2, 3]], iris.y[two]
X, X_new, y, y_new = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
model = TwinSVC().fit(X, y)
display = PlanesDisplay.from_estimator(
    model, X, y, held_out=(X_new, y_new)
)
wrong = 1 - model.score(X_new, y_new)
display.ax_.set_title(
    f"{wrong:.1%} of the held-out rows wrong", fontsize=10
)
display.ax_.set(xlabel="petal length", ylabel="petal width")
plt.show()
