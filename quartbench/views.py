"""How are facts shown? Numbers and times in words, and a small table for notebooks, which any theme can colour."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

import numpy as np

STYLE = "text-align: left; vertical-align: top; padding: 0.1em 1.2em 0.1em 0; border: none; background: none"


def fact_page(title: str, facts: Mapping[str, object]) -> str:
    """Return a heading with facts below it, each beside its name; all of it is escaped."""
    rows = "".join(
        f'<tr style="background: none"><th style="{STYLE}; white-space: nowrap">{escape(name)}</th>'
        f'<td style="{STYLE}">{escape(str(fact))}</td></tr>'
        for name, fact in facts.items()
    )
    return f'<div><strong>{escape(title)}</strong><table style="border: none"><tbody>{rows}</tbody></table></div>'


def numbers(values: np.ndarray, shown: int = 6) -> str:
    """Return the first of some numbers in words."""
    words = ", ".join(f"{value:.6g}" for value in values[:shown])
    return words if len(values) <= shown else f"{words}, … ({len(values)} in all)"


def work(nit: int, passes: int) -> str:
    """Say how many iterations and passes a run took."""
    return f"{counted(nit, 'iteration')}, {counted(passes, 'pass', 'passes')}"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number of things in words; their plural has an s at its end where no other is given."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def certified(lower_bound: float, gap: float, proved: bool) -> str:
    """Say what is certified of a minimum."""
    trusted = "" if proved or not math.isfinite(lower_bound) else ", up to rounding that is taken on trust"
    return f"f* ≥ {lower_bound:.12g}, relative gap {gap:.2e}{trusted}"


def duration(seconds: float) -> str:
    """Return a time in the unit that reads best."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
