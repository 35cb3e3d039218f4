"""Geometry: the metric of a method, deflation, and the loop that finds successive directions."""
