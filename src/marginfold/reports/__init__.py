"""Reports: documents as values, written as one HTML file that needs nothing else."""

try:
    import jinja2 as _  # noqa: F401 - asked for here so that its absence is explained once
except ImportError as error:
    raise ImportError(
        "marginfold.reports needs Jinja2; install it with: pip install 'marginfold[cli]'"
    ) from error

from marginfold.reports.document import (
    Column,
    Entry,
    Grid,
    Link,
    Picture,
    Report,
    Section,
)
from marginfold.reports.markdown import markdown
from marginfold.reports.papers import paper_section
from marginfold.reports.rendering import render, write_report

__all__ = [
    "Column",
    "Entry",
    "Grid",
    "Link",
    "Picture",
    "Report",
    "Section",
    "markdown",
    "paper_section",
    "render",
    "write_report",
]
