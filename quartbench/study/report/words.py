"""How is a number written for people? Three digits, no exponents where they can be avoided, powers of ten as such."""

from __future__ import annotations

import math
import re

from markupsafe import Markup, escape

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

#: What stands lower in print: the index of σ_min, D_L, p_in and the like.
LOWERED = re.compile(r"(?:(?<=[σD])|(?<=\bp))_(min|max|L|in|out)\b")

#: A short formula with a bar or a slash, which is not broken at it.
FORMULA = re.compile(r"(?<!\S)(?=\S*[/|])((?:[^\s{}<>]|\^\{[^\s{}<>]*\}){2,30})(?!\S)")


def short(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits."""
    value = float(value)
    if not math.isfinite(value):
        return "–"
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:g}" if rounded == 0.0 or 1e-3 <= abs(rounded) < 1e6 else gap_words(rounded, digits)


def power_of_ten(value: float) -> str:
    """Return the nearest power of ten."""
    exponent = round(math.log10(value)) if value > 0 else 0
    return f"{10**exponent}" if 0 <= exponent <= 3 else f"10{str(exponent).translate(RAISED)}"


def gap_words(value: float, digits: int = 1) -> str:
    """Return a gap: 10⁻⁶, or 3·10⁻⁷ where it is no power of ten."""
    if not math.isfinite(value) or value == 0.0:
        return "–" if not math.isfinite(value) else "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = f"10{str(int(exponent)).translate(RAISED)}" if int(exponent) else "1"
    return power if float(mantissa) == 1.0 else f"{mantissa}·{power}" if int(exponent) else mantissa


def signed(text: str) -> str:
    """Return numbers with the minus sign of mathematics in place of hyphens."""
    return re.sub(r"-(?=\d)", "−", text)


def typeset(text: object) -> Markup:
    """Return a text for HTML as print has it: a^{b} raised, σ_min lowered, 1e-06 as a power of ten, formulas whole."""
    text = re.sub(r"(?<![=\w.])\d(?:\.\d+)?e-\d+\b", lambda found: _power(found.group()), str(text))
    text = re.sub(
        r"(?<=\d) (?=%)|(?<=\w) (?=[=≤] \S)|(?<=\w [=≤]) (?=\S)|(?<=\(\w) (?=− )|(?<=\(\w −) ", "\u00a0", text
    )
    safe = FORMULA.sub(r'<span class="whole">\1</span>', str(escape(text)))
    safe = re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", safe)
    return Markup(LOWERED.sub(r"<sub>\1</sub>", safe))


def _power(number: str) -> str:
    digits = len(number.partition("e")[0].replace(".", ""))
    return gap_words(float(number), digits)


def listed(condition: str) -> str:
    """Return a condition over many cases as a list: a, b and c; not for a, b or c."""
    for word, last in ((" nor ", " or "), (" and ", " and ")):
        names = condition.split(word)
        if len(names) > 1:
            return ", ".join(names[:-1]) + last + names[-1]
    return condition


def as_many(text: str) -> str:
    """Return a sentence in which "1 times the passes of" reads "as many passes as"; 0.9 to 1 times is left alone."""
    return re.sub(r"(?<![\d.])(?<!to )1 times the (\w+) of\b", r"as many \1 as", text)


def level(text: str) -> str:
    """Return a text for a terminal or Markdown, which raise nothing: a^{b + c} is a^(b + c)."""
    return re.sub(
        r"\^\{([^{}]*)\}",
        lambda found: f"^({found.group(1)})" if len(found.group(1)) > 1 else f"^{found.group(1)}",
        text,
    )


def slug(name: str) -> str:
    """Return a name that can stand in an attribute."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def ranges(numbers: list[int]) -> str:
    """Return whole numbers in short: 0-3 7 9-12."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
