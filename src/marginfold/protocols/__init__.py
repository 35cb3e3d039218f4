"""Protocols: how results are measured, stored as records, and put beside the printed ones."""
