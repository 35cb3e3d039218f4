# Rows near an anchor are those that the classifier is sure of;
# filled ones were held out.
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import MarginMap, MarginMapDisplay
from marginfold.data import load

vehicle = load("vehicle")
X, X_new, y, y_new = train_test_split(
    vehicle.X,
    vehicle.y,
    test_size=0.5,
    stratify=vehicle.y,
    random_state=0,
)
model = make_pipeline(StandardScaler(), MarginMap()).fit(X, y)
MarginMapDisplay.from_estimator(
    model, X, y, held_out=(X_new, y_new), seen=False
)
plt.show()
