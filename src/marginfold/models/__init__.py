"""Saved models: files of known types only."""

from marginfold.models.storage import load_model, save_model

__all__ = ["load_model", "save_model"]
