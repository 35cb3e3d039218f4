"""Choosing parameters: paths of fits, and cross-validation that shares what the fits share."""
