# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx. collect.py writes the pages that Sphinx reads."""

# pylint: disable=invalid-name,redefined-builtin
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

project = "libdist"
copyright = "the libdist authors"
release = re.search(r"version: *'([^']+)'", (HERE.parents[2] / "meson.build").read_text(encoding="utf-8"))[1]
html_title = f"libdist {release}"

extensions = ["myst_parser", "sphinx_design"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 6
root_doc = "index"
exclude_patterns = ["external-links.txt"]

# Every reference must resolve, except those to types of the standard library.
nitpicky = True
standard_types = ("ptrdiff_t", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "size_t")
nitpick_ignore = [("c:identifier", name) for name in standard_types]
c_maximum_signature_line_length = 100

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
highlight_language = "text"

# ---- Python ----

sys.path.insert(0, str(HERE))
import python_reference  # noqa: E402

python_reference.prepare()
extensions.append("sphinx.ext.autodoc")
autodoc_member_order = "bysource"
autoclass_content = "both"
autodoc_typehints_format = "short"
# Annotations name types of other packages and type variables.
nitpick_ignore_regex = [("py:.*", ".*")]


def setup(app):
    app.connect("autodoc-process-docstring", python_reference.read_docstring)
