"""Docstrings as the reference shows them: bars are no markup, a^{b} rises, a_{b} sinks, and "errata n" is a link."""

import re

from docutils import nodes
from sphinx.addnodes import literal_strong

#: Literals, examples and fields stay as they are.
LITERAL = re.compile(r"(``.*?``|:\w+:`.*?`)")
MOVED = re.compile(r"([\^_])\{([^{}]*)\}")
#: An index after one letter or a norm, as in x_k, λ_max, r_before, ‖x‖_B and ‖X‖²_F; time_limit and p_in are names.
INDEX = re.compile(
    r"((?<![A-Za-zα-ωΑ-Ω_])[A-Za-zα-ωΑ-Ω²]|‖²?)"
    r"_(min|max|hom|before|ii|\*|[A-Za-z0-9α-ω]\u0303?)(?![A-Za-z0-9_])"
)
ROLES = {"^": "sup", "_": "sub"}
SHARED = re.compile(r":(?:ivar|vartype) \w+(?:, \w+)+:")
#: "coef_" would be a reference and lose its end, "F." an item of a list.
ENDED = re.compile(r"^(:(?:ivar|vartype) \w+)_(?=:)")
LETTER = re.compile(r"^(:ivar [^:]+: )(\w\.)$")
#: The name of a parameter, where its description or its type begins.
FIELD = re.compile(r":(?:param|type) (\S+?):")
CITED = re.compile(r"\b(ERRATA|errata)((?:,? (?:and )?\d+)+)")


def readable(_app, _what, _name, _object, _options, lines):
    """Change the lines of a docstring in place."""
    example = False
    for place, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = LITERAL.split(line)
            parts[::2] = [_typeset(part.replace("|", "\\|")) for part in parts[::2]]
            lines[place] = "".join(parts)


def described(_app, what, _name, _object, _options, lines):
    """Keep napoleon from taking what stands before a colon for the type of an attribute or property."""
    if what in ("attribute", "property") and lines:
        lines[0] = lines[0].replace(": ", "; ", 1)


def together(_app, _what, _name, _object, _options, lines):
    """Keep Sphinx from taking a for the type of b in the attributes "a, b : int", and names and letters for markup."""
    for place, line in enumerate(lines):
        line = SHARED.sub(lambda match: match.group().replace(", ", ","), line)
        lines[place] = LETTER.sub(r"\1\\\2", ENDED.sub(r"\1\\_", line))


def joined(_app, _what, _name, _object, _options, lines):
    """Put parameters of one description together again, as in "m, n : int", which napoleon takes apart."""
    found = []
    for line in lines:
        field = FIELD.match(line)
        names = [field.group(1)] if field else []
        if found and found[-1][0] and (names == found[-1][0] or line.startswith(" ")):
            found[-1][1].append(line)
        else:
            found.append((names, [line]))
    kept = []
    for names, said in found:
        if names and kept and kept[-1][0] and _unnamed(said) == _unnamed(kept[-1][1]):
            kept[-1][0].extend(names)
        else:
            kept.append((names, said))
    lines[:] = [
        line.replace(f" {names[0]}:", f" {','.join(names)}:", 1) if FIELD.match(line) else line
        for names, said in kept
        for line in said
    ]


def _unnamed(said):
    return [FIELD.sub(lambda field: field.group().split()[0], line.strip(), count=1) for line in said]


def spaced(_app, doctree):
    """Put back the spaces that ``together`` took, and call attributes so."""
    for comma in [node for node in doctree.findall(literal_strong) if node.astext() == ","]:
        comma.replace_self(literal_strong(", ", ", "))
    for name in [node for node in doctree.findall(nodes.field_name) if node.astext() == "Variables"]:
        name.replace_self(nodes.field_name("", "Attributes"))


def _typeset(text):
    text = CITED.sub(_cite, text).replace("''", "″").replace("^½", "^{½}")
    return MOVED.sub(_move, INDEX.sub(r"\1_{\2}", text))


def _move(match):
    return f"\\ :{ROLES[match.group(1)]}:`{match.group(2)}`\\ "


def _cite(match):
    return match.group(1) + re.sub(r"\d+", r":ref:`\g<0> <errata-\g<0>>`", match.group(2))


def setup(app):
    """See every docstring after napoleon has, and those of attributes before."""
    app.connect("autodoc-process-docstring", described, priority=100)
    app.connect("autodoc-process-docstring", together, priority=800)
    app.connect("autodoc-process-docstring", joined, priority=850)
    app.connect("autodoc-process-docstring", readable, priority=900)
    app.connect("doctree-read", spaced)
    return {"parallel_read_safe": True}
