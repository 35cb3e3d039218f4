# Errors over the folds for each cost; the chosen one is marked.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import GESVC, PathDisplay, PathSearchCV
from marginfold.data import load

heart = load("heart")
search = PathSearchCV(
    GESVC(), C=[0.001, 0.01, 0.1, 1, 10], graph_weight=[0.1, 1, 10]
)
PathDisplay.from_estimator(
    search.fit(scale(heart.X), heart.y), parameter="C"
)
plt.show()
