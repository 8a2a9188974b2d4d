"""Docstrings as the reference shows them: bars are no markup, a^{b} rises, a_{b} sinks, and "errata n" is a link."""

import re

#: Literals, examples and fields stay as they are.
LITERAL = re.compile(r"(``.*?``|:\w+:`.*?`)")
MOVED = re.compile(r"([\^_])\{([^{}]*)\}")
ROLES = {"^": "sup", "_": "sub"}
CITED = re.compile(r"\b(ERRATA|errata)((?:,? (?:and )?\d+)+)")


def readable(_app, _what, _name, _object, _options, lines):
    """Change the lines of a docstring in place."""
    example = False
    for place, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = LITERAL.split(line)
            parts[::2] = [MOVED.sub(_move, CITED.sub(_cite, part.replace("|", "\\|"))) for part in parts[::2]]
            lines[place] = "".join(parts)


def described(_app, what, _name, _object, _options, lines):
    """Keep napoleon from taking what stands before a colon for the type of an attribute."""
    if what == "attribute" and lines:
        lines[0] = lines[0].replace(": ", "; ", 1)


def _move(match):
    return f"\\ :{ROLES[match.group(1)]}:`{match.group(2)}`\\ "


def _cite(match):
    return match.group(1) + re.sub(r"\d+", r":ref:`\g<0> <errata-\g<0>>`", match.group(2))


def setup(app):
    """See every docstring after napoleon has, and those of attributes before."""
    app.connect("autodoc-process-docstring", described, priority=100)
    app.connect("autodoc-process-docstring", readable, priority=900)
    return {"parallel_read_safe": True}
