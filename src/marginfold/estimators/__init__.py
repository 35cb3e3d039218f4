"""Estimators: one paper, one file; the mathematics is delegated."""
