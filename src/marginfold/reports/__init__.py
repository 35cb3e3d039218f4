"""Reports: documents as values, written as one HTML file that needs nothing else."""

from marginfold.runtime.extras import require

try:
    from marginfold.reports.document import (
        Chart,
        Code,
        Column,
        Entry,
        Grid,
        Live,
        Picture,
        Report,
        Section,
    )
    from marginfold.reports.rendering import render, write_report
    from marginfold.reports.tables import markdown, paper_section
except ModuleNotFoundError:
    require("jinja2")
    raise

__all__ = [
    "Chart",
    "Code",
    "Column",
    "Entry",
    "Grid",
    "Live",
    "Picture",
    "Report",
    "Section",
    "markdown",
    "paper_section",
    "render",
    "write_report",
]
