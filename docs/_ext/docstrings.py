"""Docstrings as the reference shows them: bars are no markup, and "errata n" leads to its place."""

import re

#: Literals, examples and fields stay as they are.
LITERAL = re.compile(r"(``.*?``|:\w+:`.*?`)")
CITED = re.compile(r"\b(ERRATA|errata)((?:,? (?:and )?\d+)+)")


def readable(_app, _what, _name, _object, _options, lines):
    """Change the lines of a docstring in place."""
    example = False
    for place, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = LITERAL.split(line)
            parts[::2] = [CITED.sub(_cite, part.replace("|", "\\|")) for part in parts[::2]]
            lines[place] = "".join(parts)


def _cite(match):
    return match.group(1) + re.sub(r"\d+", r":ref:`\g<0> <errata-\g<0>>`", match.group(2))


def setup(app):
    """See every docstring after napoleon has."""
    app.connect("autodoc-process-docstring", readable, priority=900)
    return {"parallel_read_safe": True}
