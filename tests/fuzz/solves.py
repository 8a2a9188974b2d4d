"""Which solves does a problem get, and what do they say of it? About twenty of each, drawn by its number."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import quartbench as qb
from quartbench.precondition import METRICS
from quartbench.solvers import solvers

from .cases import CONES, Case
from .exactly import Exact, ExactRows, Optimum, power_of_two
from .problems import SET

#: Gaps that are asked for, and the one that well-posed problems must be certified to by ``auto``.
GAPS, WELL = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12), 1e-10

#: The most iterations of a solve: what is not converged must be true as well.
MOST = 300

#: The same for methods of which every iteration solves a problem of its own.
MOST_SOLVING = dict.fromkeys(("spag", "bregman-stochastic"), 20)

#: Solves by methods drawn at random, right-hand sides of one form, problems of a batch.
METHODS, SIDES, BATCH = 5, 5, 8

#: The condition of rows up to which ``solve_many`` is asked for more than its lockstep: that takes its time on worse.
MILD = 1e3

#: How far what is taken on trust (products of operators) may be from the truth, relative to f*.
TRUSTED = 1e-12

#: Powers of ten of (|c|/|rows|)^{4/3} beyond which an optimum may be refused as no number of floating point; it is 280
#: in the package, less what the other units of a problem may add.
RANGE = 268.0

#: Conditions of the rows from which on a form may be refused as not positive definite to rounding.
SINGULAR = 1e13


class Said(NamedTuple):
    """What one solve said, and whether it is true.

    Attributes
    ----------
    how : str
        The way in: solve, driver, few, float32, prepared, many, started, batch, derived, l4, certify.
    verdict : str
        true; false (also where ``proved`` is said of what is not), overclaimed (converged above the gap), nonfinite,
        error: these must not be; refused (f* out of range, rows dependent to rounding), declined (the method does not
        take such a problem).
    excess : float
        By how much of |f*| the certificate is on the wrong side of the truth: at most 0 where it is true.
    """

    how: str
    solver: str
    metric: str
    rel_gap: float
    status: str
    gap: float
    verdict: str
    excess: float
    message: str = ""


BAD = ("false", "overclaimed", "nonfinite", "error")


class Units(NamedTuple):
    """A problem in other units: x = sign·2^point·x₀ of its base, f = 2^value·f₀, columns in another order."""

    point: int = 0
    value: int = 0
    sign: int = 1
    order: Any = None


class Judge:
    """What is true of one problem.

    Parameters
    ----------
    exact : Exact
    optimum : Optimum
    proved : bool
        Whether its certificates must be true in exact arithmetic; else they may be off by what is trusted.
    """

    def __init__(self, exact: Exact, optimum: Optimum, proved: bool) -> None:
        self.exact, self.optimum, self.proved = exact, optimum, proved
        self.slack = 0.0 if proved else TRUSTED

    def verdict(self, x, fun, lower, gap, status, rel_gap, units=Units()) -> tuple[str, float, str]:  # noqa: B008
        """Return the verdict on what was said of a point, the excess, and what is wrong."""
        if not (np.isfinite(x).all() and math.isfinite(fun) and lower < math.inf and gap >= 0.0):
            return "nonfinite", math.inf, f"x {x}, fun {fun}, lower bound {lower}, gap {gap}"
        if units.order is not None:
            base = np.empty_like(x)
            base[units.order] = x
            x = base
        if not self.exact.contains(units.sign * x):
            return "false", math.inf, "x is outside of the cone"
        excess = self._excess(x, fun, lower, gap, units)
        if excess > self.slack:
            return "false", excess, f"fun {fun!r}, lower bound {lower!r}, gap {gap!r}"
        if (status == "trivial") != (self.optimum.value == 0):
            return "false", excess, f"{status}, but f* is {float(self.optimum.value)}"
        if status == "converged" and not gap <= rel_gap:
            return "overclaimed", excess, f"gap {gap!r} above {rel_gap!r}"
        return "true", excess, ""

    def _excess(self, x, fun, lower, gap, units) -> float:
        value = self.exact.value(x, -units.point, units.sign)
        factor = power_of_two(-units.value)
        best, error = self.optimum
        fun = Fraction(fun) * factor
        if best == 0:
            return 0.0 if value <= fun and lower <= 0.0 else math.inf
        size = abs(best)
        excesses = [(value - fun) / size]
        if lower > -math.inf:
            excesses.append((Fraction(lower) * factor - best - error) / size)
        if gap < math.inf:
            excesses.append((value - best - error) / (size + error) - Fraction(gap))
        return _rounded(max(excesses))


def _rounded(excess: Fraction) -> float:
    """Return a float of the same sign."""
    found = float(excess)
    return found if found != 0.0 or excess == 0 else math.copysign(5e-324, excess)


class Solves:
    """The solves of one problem.

    Parameters
    ----------
    case : Case
    optimum : Optimum
    """

    def __init__(self, case: Case, optimum: Optimum) -> None:
        self.case, self.problem = case, case.problem
        self.rng = np.random.default_rng([case.number, SET, 1])
        #: What came later draws from here, so that the draws above stay what they were.
        self.later = np.random.default_rng([case.number, SET, 2])
        form = self.problem.form
        proof = form.proof()
        factored = proof is not None and proof.proved
        self.proved = form.rigorous and factored
        # Operators give their rows to the last bit here, so that what is taken on trust of them has to be true as well.
        self.judge = Judge(case.exact, optimum, factored)

    def __iter__(self) -> Iterator[Said]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Other people's methods may look at points where f overflows.
            theirs = r"quartbench\.(forms\.plain|solvers\.peers)|scipy\.|tests\."
            warnings.filterwarnings("ignore", category=RuntimeWarning, module=theirs)
            ways = (self.well, self.methods, self.ways, self.prepared, self.many, self.batch)
            for part in (*ways, self.started, self.derived, self.regression):
                yield from part()

    def gap(self) -> float:
        """Return a gap to ask for."""
        return float(self.rng.choice(GAPS))

    # The parts --------------------------------------------------------------------------------------------------------

    def well(self) -> Iterator[Said]:
        """Solve by ``auto``, and certify what it found."""
        found = []
        most = 100_000 if self.case.well_posed else MOST
        yield from self.one("solve", "auto", "auto", WELL, keep=found, max_iter=most)
        if found and found[0].status != "trivial":
            yield self.certified(found[0].x)

    def methods(self) -> Iterator[Said]:
        """Solve by methods, and in metrics, drawn at random."""
        names, done = [str(name) for name in self.rng.permutation(sorted(solvers()))], 0
        for name in names:
            metric = str(self.rng.choice(list(METRICS))) if self.rng.random() < 0.4 else "auto"
            for said in self.one("solve", name, metric, self.gap(), max_iter=MOST_SOLVING.get(name, MOST)):
                yield said
                done += said.verdict != "declined"
            if done == METHODS:
                return

    def ways(self) -> Iterator[Said]:
        """Solve through the driver, to the end and cut short, and with rows in single precision."""
        yield from self.one("driver", "auto", "auto", self.gap(), max_iter=MOST, callback=lambda state: None)
        few = int(self.rng.integers(0, 5))
        yield from self.one("few", self._plain(), "auto", self.gap(), max_iter=few)
        yield from self.one("float32", self._plain(), "auto", self.gap(), max_iter=MOST, dtype="float32")

    def prepared(self) -> Iterator[Said]:
        """Prepare once and solve for multiples of c, from the solution before."""
        solver, rel_gap = self._plain(), self.gap()
        ready, problem = self.attempt(
            lambda: qb.prepare(self.problem.form, self.problem.cone, solver=solver, rel_gap=rel_gap)
        )
        before = None
        for units, c in self._sides(2):
            start = None if before is None else units.sign * before
            said, result = self.said(
                "prepared",
                solver,
                "auto",
                rel_gap,
                lambda c=c, start=start: _given(ready, problem).solve(c, start, max_iter=MOST),
                units,
            )
            yield said
            if result is not None and said.status != "trivial":
                before = units.sign * result.x

    def many(self) -> Iterator[Said]:
        """Solve for several multiples of c at once."""
        rel_gap, sides = self.gap(), list(self._sides(SIDES))
        if not self._together():
            return
        C = [c for _, c in sides]
        found, problem = self.attempt(lambda: qb.solve_many(self.problem.form, C, self.problem.cone, rel_gap=rel_gap))
        for j, (units, _) in enumerate(sides):
            yield self.said("many", "auto", "auto", rel_gap, lambda j=j: _given(found, problem, j), units)[0]

    def batch(self) -> Iterator[Said]:
        """Solve a batch of the same problem in other units, its terms and unknowns in other orders."""
        rows, rng, rel_gap = self.case.rows, self.rng, self.gap()
        if rows is None or self.problem.trivial:
            return
        rank = self.problem.form.rank
        variants, R, C = [], [], []
        for _ in range(BATCH):
            order, terms = rng.permutation(rows.shape[1]), rng.permutation(len(rows) // rank)
            a, j = int(rng.integers(-9, 10)), int(rng.integers(-9, 10))
            mixed = rows.reshape(-1, rank, rows.shape[1])[terms].reshape(rows.shape)[:, order]
            R.append(np.ldexp(mixed, a))
            C.append(np.ldexp(self.problem.c[order], a + 3 * j))
            variants.append(Units(j - a, 4 * j, 1, order))
        cone = CONES[self.case.cone]()
        found, problem = self.attempt(lambda: qb.solve_batch(np.stack(R), np.stack(C), cone, rank, rel_gap))

        def result(j):
            batch = _given(found, problem)
            status = "converged" if batch.success[j] else "stalled"
            numbers = (float(numbers[j]) for numbers in (batch.fun, batch.lower_bound, batch.gap))
            return qb.Result(
                zip(("x", "status", "fun", "lower_bound", "gap"), (batch.x[j], status, *numbers), strict=True)
            )

        for j, units in enumerate(variants):
            yield self.said("batch", "batch", "auto", rel_gap, lambda j=j: result(j), units)[0]

    def started(self) -> Iterator[Said]:
        """Solve for several multiples of c at once, each from a start of its own."""
        if self.problem.trivial or not self._together():
            return
        rng, rel_gap = self.later, float(self.later.choice(GAPS))
        given = self.problem.c / np.abs(self.problem.c).max()
        along = self.problem.form.native(self.problem.cone.euclidean(given))
        sides = list(self._sides(SIDES - 2, rng))
        starts = [units.sign * 2.0 ** int(rng.integers(-9, 10)) * along for units, _ in sides]
        form, cone, C = self.problem.form, self.problem.cone, [c for _, c in sides]
        found, problem = self.attempt(lambda: qb.solve_many(form, C, cone, rel_gap=rel_gap, starts=starts))
        for j, (units, _) in enumerate(sides):
            yield self.said("started", "auto", "auto", rel_gap, lambda j=j: _given(found, problem, j), units)[0]

    def derived(self) -> Iterator[Said]:
        """Solve on a form that derives from ours and does not say that it is proved: then nothing is."""
        form, rel_gap = self.problem.form.twin(), float(self.later.choice(GAPS))
        kind = type(form)

        class Derived(kind):
            """The same function, through a product of its own."""

            def _image(self, x):
                return super()._image(x)

        form.__class__ = Derived
        form._kept = {}
        for name in ("magnitude", "zero terms"):
            if name in self.problem.form._kept:
                form._kept[name] = self.problem.form._kept[name]
        problem = qb.Problem(form, self.problem.form.native(np.array(self.case.exact.c)), self.problem.cone)
        yield self.said(
            "derived",
            "auto",
            "auto",
            rel_gap,
            lambda: qb.solve(problem, rel_gap=rel_gap, max_iter=MOST),
            proved=False,
        )[0]

    def regression(self) -> Iterator[Said]:
        """Fit weighted rows with a column that depends on others: no fit is better than what is proved of another."""
        rows, rng = self.case.rows, self.later
        if rows is None or self.case.cone != "free" or "scaled" in self.case.features or self.case.condition > SINGULAR:
            return
        rank = self.problem.form.rank
        A = np.column_stack([rows, rows @ rng.integers(-2, 3, rows.shape[1])])
        b, powers = rng.standard_normal(len(A)), rng.integers(-16, 17, len(A) // rank)
        powers *= int(rng.integers(2))  # weights of which the fourth roots are exact, or ones
        exact = np.repeat(2.0**powers, rank)[:, None] * np.column_stack([A, b])
        sums, said = ExactRows(exact, rank, np.zeros(exact.shape[1]), "free"), []
        for rel_gap in rng.choice(GAPS, 2, replace=False).tolist():
            fit, problem = self.attempt(
                lambda rel_gap=rel_gap: qb.l4_regression(A, b, 16.0**powers, rank, rel_gap, max_iter=MOST)
            )
            if problem is not None:
                kind = self._kind(problem)
                yield Said("l4", "l4", "auto", rel_gap, "", math.inf, kind, -math.inf, repr(problem))
            else:
                said.append((rel_gap, fit, sums.value(np.append(fit.x, -1.0))))
        for rel_gap, fit, value in said:
            least = min(value for _, _, value in said)
            fourth, below = Fraction(fit.fun) ** 4, Fraction(fit.lower_bound) ** 4
            excess = _rounded(max(value - fourth, below - least) / fourth) if fourth else math.inf
            verdict = "true" if excess <= (0.0 if fit.proved else TRUSTED) else "false"
            if verdict == "true" and fit.status == "converged" and not fit.gap <= rel_gap:
                verdict = "overclaimed"
            yield Said("l4", "l4", "auto", rel_gap, fit.status, float(fit.gap), verdict, excess)

    # One solve --------------------------------------------------------------------------------------------------------

    def one(self, how, solver, metric, rel_gap, keep=None, **options) -> Iterator[Said]:
        """Solve once; in the metric ``auto`` where another is declined."""
        for name in dict.fromkeys((metric, "auto")):
            said, result = self.said(
                how,
                solver,
                name,
                rel_gap,
                lambda name=name: qb.solve(self.problem, solver, name, rel_gap=rel_gap, **options),
            )
            if said.verdict != "declined":
                break
        if keep is not None and result is not None:
            keep.append(result)
        yield said

    def said(
        self,
        how,
        solver,
        metric,
        rel_gap,
        solve,
        units=Units(),  # noqa: B008
        proved=None,
    ) -> tuple[Said, Any]:
        """Return what a solve said, and its result; ``proved`` is whether it may say so of itself."""
        result, problem = self.attempt(solve)
        if problem is not None:
            verdict = self._kind(problem)
            return Said(how, solver, metric, rel_gap, "", math.inf, verdict, -math.inf, repr(problem)), None
        x = self.problem.form.flat(result.x)
        proved = self.proved if proved is None else proved
        judge = self.judge if proved or not self.proved else Judge(self.case.exact, self.judge.optimum, False)
        judged = judge.verdict(x, result.fun, result.lower_bound, result.gap, result.status, rel_gap, units)
        if result.get("proved", False) and not proved and result.status != "trivial":
            judged = "false", judged[1], "proved is said of products that are taken on trust"
        return Said(how, solver, metric, rel_gap, result.status, float(result.gap), *judged), result

    def certified(self, x: np.ndarray) -> Said:
        """Return what ``certify`` says of a point, which it moves along its ray first: its bounds on f* are judged."""
        found, problem = self.attempt(lambda: qb.certify(self.problem, x))
        if problem is not None:
            return Said("certify", "none", "auto", 0.0, "", math.inf, self._kind(problem), -math.inf, repr(problem))
        best, error = self.judge.optimum
        excesses = [best - error - Fraction(found.value)]
        if found.lower_bound > -math.inf:
            excesses.append(Fraction(found.lower_bound) - best - error)
        excess = _rounded(max(excesses) / abs(best))
        verdict = "true" if excess <= self.judge.slack else "false"
        return Said("certify", "none", "auto", 0.0, "", float(found.gap), verdict, excess)

    @staticmethod
    def attempt(solve: Callable[[], Any]) -> tuple[Any, Exception | None]:
        """Return what a call returns, or what it raises."""
        try:
            return solve(), None
        except Exception as error:
            return None, error

    def _kind(self, error: Exception) -> str:
        """Return whether an error is a refusal, which must be right, a method that declines, or an error."""
        if isinstance(error, qb.ProblemError):
            if "f* must be a number of floating point" in str(error):
                size = math.log10(np.abs(self.problem.c).max()) - math.log10(self.problem.form.magnitude)
                return "refused" if abs(4.0 / 3.0 * size) > RANGE else "error"
            if "not positive definite to rounding" in str(error):
                return "refused" if self.case.condition > SINGULAR else "error"
            if re.search(r"\b(takes|needs?|is for) ", str(error)):
                return "declined"
        return "error"

    def _plain(self) -> str:
        """Return a method that takes every cone."""
        return str(self.rng.choice(["auto", "homgd", "accel-homgd", "gd", "bregman"]))

    def _together(self) -> bool:
        """Return whether many right-hand sides end soon: where not in lockstep, there is no limit on iterations."""
        return self.case.cone in ("free", "centred") or (self.case.well_posed and self.case.condition <= MILD)

    def _sides(self, count: int, rng: np.random.Generator | None = None) -> Iterator[tuple[Units, np.ndarray]]:
        """Yield c times powers of eight, which x and f follow exactly, and where K = −K times −1."""
        c, rng = self.problem.form.native(np.array(self.case.exact.c)), rng or self.rng
        for _ in range(count):
            k = int(rng.integers(-6, 7))
            sign = int(rng.choice([-1, 1])) if self.case.cone in ("free", "centred") else 1
            yield Units(k, 4 * k, sign), sign * 8.0**k * c


def _given(found, problem, j=None):
    if problem is not None:
        raise problem
    return found if j is None else found[j]


def solves(case: Case, optimum: Optimum) -> list[Said]:
    """Return what all solves of a problem said."""
    return list(Solves(case, optimum))
