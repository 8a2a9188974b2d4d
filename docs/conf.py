"""How is the documentation built? Sphinx with MyST, Furo and sphinx-gallery; every page works without a network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import quartbench  # noqa: E402

project = "quartbench"
copyright = "The quartbench developers, BSD-3-Clause"
version = release = quartbench.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "generated",
    "links",
    "mathml",
    "thumbnails",
]
exclude_patterns = ["_ext", "examples"]
suppress_warnings = ["ref.python"]  # two rooms have a History: a type in a docstring may mean either

# Pages ----------------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = "quartbench"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
pygments_style = "default"  # of enough contrast on its background
pygments_dark_style = "github-dark"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Reference ------------------------------------------------------------------------------------------------------------

autodoc_typehints = "none"  # the docstrings say what arguments are, and from where to where
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Problem", "Algorithm", "Guarantee", "Which restarts", "Reference"]

# Gallery --------------------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "abort_on_example_error": True,
}
