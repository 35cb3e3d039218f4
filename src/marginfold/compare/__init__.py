"""All suitable methods on one table, side by side."""
