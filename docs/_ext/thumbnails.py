"""Thumbnails of the gallery say of which page they are, to those who do not see them."""

import html
import re

from docutils import nodes

TITLE = re.compile(r'class="sphx-glr-thumbnail-title">(.*?)</div>', re.S)


def named(_app, doctree):
    """Give every thumbnail the title that stands below it."""
    for image in doctree.findall(nodes.image):
        if image["uri"].endswith("_thumb.png"):
            below = image.next_node(_titled, siblings=True, ascend=True)
            title = html.unescape(TITLE.search(below.astext()).group(1)).strip()
            image["alt"] = f"Picture of “{title}”"


def _titled(node):
    return isinstance(node, nodes.raw) and TITLE.search(node.astext())


def setup(app):
    """Look at the pages when they are read."""
    app.connect("doctree-read", named)
    return {"parallel_read_safe": True}
