"""How Sphinx builds the site: ``make docs``, into docs/_build/html."""

from __future__ import annotations

import sys
from pathlib import Path

import marginfold

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "marginfold"
author = "marginfold developers"
project_copyright = "marginfold developers"
version = release = marginfold.__version__
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "repository",
    "paper_figures",
    "pictures",
    "built_files",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "gallery/**.ipynb", "gallery/**.md5", "gallery/**.py"]
root_doc = "index"

# Markdown, as it is read in the repository too ----------------------------------------------------

myst_enable_extensions = ["attrs_block", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]  # a heading may skip a level

# Docstrings ---------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's parameters say them
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of a class has all members
numpydoc_class_members_toctree = False
default_role = "py:obj"  # a name in single backquotes is a link if it has a page

# Examples -----------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "within_subsection_order": "gallery_order.place",
    "backreferences_dir": "api/generated/examples",
    "doc_module": ("marginfold",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "write_computation_times": False,
    "download_all_examples": False,
    "matplotlib_animations": False,
    "abort_on_example_error": False,  # all of them are tried; a failure is an error in the end
}

# Pictures of the reference: each file of api/pictures with the code that draws it (pictures) ------

plot_include_source = True
plot_formats = ["svg"]
plot_html_show_formats = False
plot_html_show_source_link = False

# Pages --------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"marginfold {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_theme_options = {
    "logo": {"text": "marginfold"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "which_method": []},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {
    page: []
    for page in ("which_method", "explorer", "coming_from", "ecosystem", "faq", "changelog")
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Formulas are drawn by a file of the site (built_files): no page asks another host.
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}
