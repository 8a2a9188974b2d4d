"""Formulas as MathML, which browsers draw themselves: no script and no font is loaded from anywhere."""

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

#: Fences that would grow as high as the sum beside them, where the font can, and not with their partner.
FENCE = re.compile(r"<mo>([⟨⟩‖{}])</mo>")


def drawn(formula, **options):
    """Return a formula as MathML, in which these fences are as high as a letter."""
    return FENCE.sub(r'<mo stretchy="false">\1</mo>', tex2mathml(formula, **options))


def _inline(translator, node):
    translator.body.append(drawn(node.astext()))
    raise nodes.SkipNode


def _block(translator, node):
    translator.body.append(f'<div class="formula">{drawn(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer under the name mathml."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True}
