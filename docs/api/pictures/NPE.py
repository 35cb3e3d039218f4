# Rows stay weighted means of their neighbors; the fit does not see
# the labels.
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import NPE, EmbeddingDisplay
from marginfold.data import load

wine = load("wine")
X, X_new, y, y_new = train_test_split(
    wine.X, wine.y, test_size=0.5, stratify=wine.y, random_state=0
)
model = make_pipeline(StandardScaler(), NPE(2)).fit(X)
EmbeddingDisplay.from_estimator(
    model, X, y, held_out=(X_new, y_new), errors=True
)
plt.show()
