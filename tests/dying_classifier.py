"""A classifier that takes its process down once, for searches on several processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from sklearn.neighbors import KNeighborsClassifier


class DiesOnce(KNeighborsClassifier):
    """Kills the process of the first fit that finds no mark, and leaves the mark."""

    def __init__(self, n_neighbors=1, *, mark="", parent=0):
        super().__init__(n_neighbors)
        self.mark = mark
        self.parent = parent

    def fit(self, X, y):
        if os.getpid() != self.parent and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)
