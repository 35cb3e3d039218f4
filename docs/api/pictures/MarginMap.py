# Eleven vowels around a circle: a row is near the classes that it
# may belong to.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import MarginMap, MarginMapDisplay
from marginfold.data import load

vowel = load("vowel")
X, X_new, y, y_new = train_test_split(
    vowel.X,
    np.array(vowel.target_names)[vowel.y],
    test_size=0.5,
    stratify=vowel.y,
    random_state=0,
)
model = make_pipeline(StandardScaler(), MarginMap()).fit(X, y)
MarginMapDisplay.from_estimator(
    model, X, y, held_out=(X_new, y_new), seen=False
)
plt.show()
