"""The five papers: what is computed for each, and its tables and figures.

Each module has ``plan(scale) -> list[Task]``, ``tables(store) -> list[Table]`` and
``figures(store) -> list[Figure]``.
"""
