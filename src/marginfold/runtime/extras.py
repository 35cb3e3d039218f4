"""The optional packages, and the line that installs those that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

EXTRAS = {
    "anywidget": "notebook",
    "dask": "dask",
    "distributed": "dask",
    "faiss": "faiss",
    "jinja2": "cli",
    "matplotlib": "cli",
    "numba": "compiled",
    "onnx": "onnx",
    "pandas": "cli",
    "pyarrow": "parquet",
    "rich": "cli",
    "skl2onnx": "onnx",
    "skops": "cli",
    "starlette": "explorer",
    "typer": "cli",
    "uvicorn": "explorer",
}
"""The extra of marginfold that installs each optional package."""


def require(*names: str, extra: str | None = None) -> None:
    """Refuse work whose packages are missing, before it begins; nothing is imported.

    The `ModuleNotFoundError` names all packages that are missing and the extra that installs them,
    by default those of `EXTRAS`.

    Examples
    --------
    >>> from marginfold.runtime.extras import require
    >>> require("skopz")
    Traceback (most recent call last):
    ModuleNotFoundError: skopz is not installed: pip install "marginfold[cli]"
    """
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(advice(missing, extra), name=missing[0])


def advice(missing: Sequence[str], extra: str | None = None) -> str:
    """Return the line that names missing packages and what installs them."""
    extras = {extra or EXTRAS.get(name, "cli") for name in missing}
    verb = "is" if len(missing) == 1 else "are"
    return (
        f"{' and '.join(missing)} {verb} not installed: "
        f'pip install "marginfold[{",".join(sorted(extras))}]"'
    )
