# Silhouettes of vehicles on two margins that are measured by the
# scatter within classes.
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import WSVDA, EmbeddingDisplay
from marginfold.data import load

vehicle = load("vehicle")
X, X_new, y, y_new = train_test_split(
    vehicle.X,
    vehicle.y,
    test_size=0.5,
    stratify=vehicle.y,
    random_state=0,
)
model = make_pipeline(StandardScaler(), WSVDA(2)).fit(X, y)
EmbeddingDisplay.from_estimator(
    model, X, y, held_out=(X_new, y_new), errors=True
)
plt.show()
