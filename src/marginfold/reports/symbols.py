"""The marks of a comparison as symbols: colour is never the only sign."""

from __future__ import annotations

from marginfold.protocols.results import AGREES, DIFFERS, NEAR

SYMBOLS = {AGREES: "✓", NEAR: "≈", DIFFERS: "✗"}
"""A symbol for each mark."""
