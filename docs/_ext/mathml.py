"""Formulas as MathML, which browsers draw themselves: no script and no font is loaded from anywhere."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def _inline(translator, node):
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(translator, node):
    translator.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer under the name mathml."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True}
