"""Does §5.2 of the paper hold at general p, and Prop. 4.2? Algorithm 3 against its rate, its stopping rule and its κ.

These rest on no runs but on the record that a study keeps (:mod:`quartbench.study.weights`).
"""

from __future__ import annotations

import math

import pandas as pd

from quartbench.study.report.words import short
from quartbench.study.weights import EPS

from .base import FAILS, HOLDS, Finding, claim
from .evidence import split

#: Below this a distance is what τ* itself is known to.
KNOWN = 1e-8

#: Gaps are equal up to this share of them, and to the rounding of f, of which they are the differences.
EQUAL, ROUNDED = 1e-6, 1e-13

#: e^{2ε} for the ε of the record, and rounding.
ALLOWED = math.exp(2.0 * EPS) + 1e-9


def recorded(runs: pd.DataFrame, part: str, method: str | None = None) -> pd.DataFrame:
    """Return a part of the record, or what one method has of it; empty where the study has none."""
    found = pd.DataFrame((runs.attrs.get("weights") or {}).get(part, []))
    return found if method is None or found.empty else found[found.method == method]


@claim(
    "contraction-printed",
    "Prop. 5.8 as printed",
    "The iterates of Algorithm 3 satisfy D_L(τ⁽ᵏ⁾,τ*) ≤ (1 − 1/p)^{k+1} ln(rm).",
    "quick or paper",
)
def printed_contraction(runs):
    """The distance of every iterate over the printed bound."""
    return _contraction(recorded(runs, "distances"), "printed")


@claim(
    "contraction",
    "Prop. 5.8, corrected",
    "The iterates of Algorithm 3 satisfy D_L(τ⁽ᵏ⁾,τ*) ≤ ((p − 1)^{k+1}/p) ln(rm).",
    "quick or paper",
)
def corrected_contraction(runs):
    """The distance of every iterate over the bound that the proof gives."""
    return _contraction(recorded(runs, "distances"), "corrected")


def _contraction(rows: pd.DataFrame, bound: str) -> Finding | None:
    rows = rows if rows.empty else rows[rows.distance > KNOWN]
    if rows.empty:
        return None
    shares = {
        f"{instance} at p = {p:g}": float((here.distance / here[bound]).max())
        for (instance, p), here in rows.groupby(["instance", "p"], sort=False)
    }
    worst = max(shares.values())
    text = (
        f"Over {len(rows)} iterates on {len(shares)} forms and powers the distance is at most {short(worst)} times the "
        "bound."
    )
    lines = tuple(f"{name}: {short(share)}" for name, share in shares.items())
    return Finding(HOLDS if worst <= 1.0 else FAILS, text, shares, [], cases=lines)


@claim(
    "stopping",
    "Prop. 5.9, corrected",
    "Algorithm 3 stops within 1 + ln₊(ln(rm)/((2 − p)ε))/(2 − p) iterations, with κ ≤ e^{2ε}n^{1−1/p}.",
    "quick or paper",
)
def stops_in_time(runs):
    """Iterations of Algorithm 3 over the bound, and its certified κ over n^{1−1/p}, at ε = 1 %."""
    rows = recorded(runs, "powers", "fixed-point")
    if rows.empty:
        return None
    cases = {
        f"{one.instance} at p = {one.p:g}": one.iterations <= one.allowed and one.share <= ALLOWED
        for one in rows.itertuples()
    }
    verdict, condition = split(cases)
    spent = float((rows.iterations / rows.allowed).max())
    text = (
        f"{rows.iterations.min()} to {rows.iterations.max()} iterations, at most {spent:.2g} of the bound, and κ at "
        f"most {rows.share.max():.4g} times the best."
    )
    return Finding(verdict, text, {"share of the bound": spent, "κ": float(rows.share.max())}, [], condition)


@claim(
    "powers",
    "Thm 5.6",
    "At every power p > 1 there is a norm with approximation ratio n^{1−1/p}.",
    "quick or paper",
)
def powers_have_their_norm(runs):
    """The certified ratio of our weights over n^{1−1/p}, within the 1 % that they are computed to, also for p ≥ 2."""
    rows = recorded(runs, "powers", "auto")
    if rows.empty:
        return None
    verdict, condition = split({f"{one.instance} at p = {one.p:g}": one.share <= 1.01 for one in rows.itertuples()})
    text = (
        f"For p from {rows.p.min():g} to {rows.p.max():g} the certified ratio is {rows.share.min():.4g} to "
        f"{rows.share.max():.4g} times n^{{1−1/p}}, after {rows.iterations.min()} to {rows.iterations.max()} "
        "iterations."
    )
    return Finding(verdict, text, {"largest": float(rows.share.max())}, [], condition)


@claim(
    "omega",
    "Cor. 5.10, corrected",
    "For every ω > 1 with m/n > ω², Algorithm 3 at a power p' < 2 has κ ≤ ω√n after at most "
    "1 + ln₊(ln(rm)/((2 − p')ε))/(2 − p') iterations, 1/(2 − p') = ½ + ln(m/n)/(4 ln ω).",
    "quick or paper",
)
def any_factor_has_its_count(runs):
    """Iterations of the surrogate over the count for each ω, and its certified κ over ω√n, at ε = 1 %."""
    rows = recorded(runs, "omegas")
    if rows.empty:
        return None
    cases = {
        f"{one.instance} at ω = {one.omega:g}": one.iterations <= one.allowed and one.share <= ALLOWED * one.omega
        for one in rows.itertuples()
    }
    verdict, condition = split(cases)
    spent, kappa = float((rows.iterations / rows.allowed).max()), float((rows.share / rows.omega).max())
    text = (
        f"For ω from {rows.omega.max():g} down to {rows.omega.min():g} it takes {rows.iterations.min()} to "
        f"{rows.iterations.max()} iterations, at most {spent:.2g} of the count, and κ is at most {kappa:.3g} times ω√n."
    )
    lines = tuple(
        f"{one.instance} at ω = {one.omega:g}: {one.iterations} iterations of {one.allowed:.0f}, κ = {one.share:.3g}√n"
        for one in rows.itertuples()
    )
    return Finding(verdict, text, {"share of the count": spent, "κ": kappa}, [], condition, lines)


@claim(
    "homogenised-gap",
    "Prop. 4.2 (ii), as an equality",
    "Where √ρ(y) exceeds its minimum by a factor 1 + δ, the relative gap of s(y)y is 1 − (1 + δ)^{−2/3}, which is at "
    "most ⅔δ.",
    "quick or paper",
)
def gaps_follow_from_the_root(runs):
    """The gap of points by f itself, against the equality, and against the bound that is printed."""
    rows = recorded(runs, "homogenised")
    if rows.empty:
        return None
    off = (rows.gap - rows.equality).abs() / (EQUAL * rows.gap + ROUNDED)
    told = (off <= 1.0) & (rows.gap <= rows.printed * (1.0 + EQUAL) + ROUNDED)
    cases = {
        f"{name} on the cone {cone}": bool(here.all())
        for (name, cone), here in told.groupby([rows.instance, rows.cone], sort=False)
    }
    verdict, condition = split(cases)
    worst = float(((rows.gap - rows.equality).abs() / rows.gap).max())
    share = (rows.gap / rows.printed).to_numpy(dtype=float)
    text = (
        f"At {len(rows)} points with gaps from {rows.gap.min():.2g} to {rows.gap.max():.2g}, the gap by f and the "
        f"one by the formula differ by at most {worst:.1g} of it; ⅔δ is "
        f"{1.0 / share.max():.3g} to {1.0 / share.min():.3g} times as large."
    )
    return Finding(verdict, text, {"difference": worst, "least share of ⅔δ": float(share.min())}, [], condition)
