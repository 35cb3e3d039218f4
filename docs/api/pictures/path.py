# Held-out errors of LSVA for seven weights of the graph, from one
# call.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from marginfold import LSVA, PathDisplay, path
from marginfold.data import load

sonar = load("sonar")
X, X_new, y, y_new = train_test_split(
    scale(sonar.X),
    sonar.y,
    test_size=0.5,
    stratify=sonar.y,
    random_state=0,
)
fits = path(LSVA(2), X, y, graph_weight=np.logspace(-3, 3, 7))
PathDisplay.from_path(fits, X, y, held_out=(X_new, y_new))
plt.show()
