# Rows that the fit has seen are hollow, those held out are filled.
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import LSVA, EmbeddingDisplay
from marginfold.data import load

iris = load("iris")
X, X_new, y, y_new = train_test_split(
    iris.X, iris.y, test_size=0.5, stratify=iris.y, random_state=0
)
model = make_pipeline(StandardScaler(), LSVA(2)).fit(X, y)
EmbeddingDisplay.from_estimator(
    model, X, y, held_out=(X_new, y_new), errors=True
)
plt.show()
