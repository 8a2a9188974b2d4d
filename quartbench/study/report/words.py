"""How is a number written for people? Three digits, no exponents where they can be avoided, powers of ten as such."""

from __future__ import annotations

import math
import re

from markupsafe import Markup, escape

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    """Return a text for HTML in which a^{b} is raised and σ_min lowered, as print has them."""
    safe = str(escape(text))
    safe = re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", safe)
    return Markup(re.sub(r"(?<=[σD])_(min|max|L)\b", r"<sub>\1</sub>", safe))


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
