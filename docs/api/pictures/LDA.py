# Thyroid glands on two linear discriminants of five laboratory
# tests.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import LDA, EmbeddingDisplay
from marginfold.data import load

thyroid = load("thyroid")
X, X_new, y, y_new = train_test_split(
    thyroid.X,
    np.array(thyroid.target_names)[thyroid.y - 1],
    test_size=0.5,
    stratify=thyroid.y,
    random_state=0,
)
model = make_pipeline(StandardScaler(), LDA()).fit(X, y)
EmbeddingDisplay.from_estimator(
    model, X, y, held_out=(X_new, y_new), errors=True
)
plt.show()
