# The known error of a kernel on 990 rows by the number of rows that
# it is computed from.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from marginfold import LowRankKernel
from marginfold.data import load

X = scale(load("vowel").X)
ranks = [10, 20, 50, 100, 200, 400, 600]
errors = [
    LowRankKernel("rbf", gamma=0.05, rank=k).fit(X).relative_error_
    for k in ranks
]
chosen = LowRankKernel("rbf", gamma=0.05, tol=0.01).fit(X)

figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
ax.loglog(ranks, errors, "o-")
ax.axhline(0.01, color="gray", linestyle="--")
ax.annotate(
    f"tol=0.01 takes {len(chosen.pivots_)} rows",
    (ranks[0], 0.01),
    va="bottom",
)
ax.set_title("The kernel of 990 vowels")
ax.set(xlabel="rank", ylabel="relative error")
plt.show()
