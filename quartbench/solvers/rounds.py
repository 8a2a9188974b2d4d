"""Which method where rows are elsewhere? By what its rounds and its bytes cost, which the form says in passes.

The fewest rounds have the largest ones: a Hessian is n² numbers in one, a factor of B⁽⁰⁾ as many once, a sample of the
rows some 20n² once, and SPAG the same for fewer rounds without a factor. The form knows what latency and bytes are
worth in the time of its own passes; nobody asks what kind it is.
"""

from __future__ import annotations

from typing import NamedTuple

from quartbench.forms import TermForm
from quartbench.forms.sampling import SAMPLE

from .registry import solvers

#: Rounds for each digit of the gap, measured on 4 blocks of 20 000×20 and 100 000×60 rows with column scales over two
#: decades: Newton-CG in B⁽⁰⁾, in that of a sample, SPAG; and of Newton, of which a third are Hessians.
FACTORED, SAMPLED, SPAG, NEWTON, HESSIANS = 1.3, 2.0, 1.7, 0.75, 0.25

#: Rows for each unknown in the sample of SPAG, and Newton steps of a problem on it, each with a Hessian.
SAMPLE_SPAG, INNER = 40, 5.0

#: A sample is at most this share of the rows.
MOST = 0.5


class Plan(NamedTuple):
    """A way to solve: its name, its rounds, the numbers of its largest one, and its cost in passes."""

    name: str
    rounds: float
    numbers: float
    cost: float


def plans(form: TermForm, digits: float) -> list[Plan]:
    """Return what can be done, the cheapest first."""
    n, rows = form.dim, form.terms * form.rank
    each = 1.0 + form.round_cost(n)
    found = []
    if form.factorable:
        once = form.factor_cost() + form.round_cost(n**2)  # of B⁽⁰⁾, for a start and for certificates
        step = form.hessian_cost() + form.round_cost(n**2)
        cost = once + digits * (HESSIANS * step + (NEWTON - HESSIANS) * each)
        found.append(Plan("newton", NEWTON * digits, n**2, cost))
        found.append(Plan("factor", FACTORED * digits, n**2, once + FACTORED * digits * each))
    if form.reads_terms and form.row_dtype.kind == "f":
        count = SAMPLE * n
        if form.factorable and count <= MOST * rows:
            once = form.round_cost(0.0, count * n) + form.factor_cost() * count / rows
            found.append(Plan("sample", SAMPLED * digits, count * n, once + SAMPLED * digits * each))
        count = SAMPLE_SPAG * n
        if "spag" in solvers() and count <= MOST * rows:
            # Each round has a problem on the sample, solved by the driver alone while all workers wait.
            once = form.round_cost(0.0, count * n)
            inner = INNER * form.hessian_cost() * form.driver_cost(count)
            found.append(Plan("spag", SPAG * digits, count * n, once + SPAG * digits * (each + inner)))
    return sorted(found, key=lambda one: one.cost)


def share(form: TermForm) -> float:
    """Return the share of the terms in the sample of SPAG."""
    return min(1.0, SAMPLE_SPAG * form.dim / (form.terms * form.rank))


def words(chosen: Plan, known: list[Plan]) -> str:
    """Say what a plan costs, beside the cheapest of the others."""
    said = f"some {max(chosen.rounds, 1.0):.0f} rounds of up to {chosen.numbers:.3g} numbers"
    others = [one for one in known if one is not chosen]
    if not others:
        return said
    return f"{said} cost about {chosen.cost:.3g} passes, against {others[0].cost:.3g} for {CALLED[others[0].name]}"


#: The plans by the words of a message.
CALLED = {
    "newton": "Newton's method",
    "factor": "Newton-CG in B⁽⁰⁾",
    "sample": "Newton-CG in the metric of a sample",
    "spag": "SPAG",
}

#: What Newton-CG is preconditioned by.
METRICS = {"factor": "B⁽⁰⁾", "sample": "the metric of a sample"}
