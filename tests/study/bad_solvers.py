"""Solvers that a study must survive, and one that is honest. The study loads this file by name, as a user's."""

import math
import os
import time

import numpy as np

from quartbench.solvers import AccelHomGD, Iterate, Solver


class Honest(Solver):
    """Accelerated HomGD under another name."""

    def iterates(self, problem, metric, start):
        yield from AccelHomGD().iterates(problem, metric, start)


class Bad(Solver):
    """Six honest iterates, more than warming takes, then mischief."""

    def iterates(self, problem, metric, start):
        for number, iterate in enumerate(AccelHomGD().iterates(problem, metric, start)):
            yield self.spoiled(iterate) if number >= 6 else iterate


class Raises(Bad):
    def spoiled(self, iterate):
        raise RuntimeError("no such luck")


class Dies(Bad):
    def spoiled(self, iterate):
        os._exit(7)


class Hangs(Bad):
    def spoiled(self, iterate):
        time.sleep(3600)


class ReturnsNaN(Bad):
    def spoiled(self, iterate):
        return Iterate(np.full_like(iterate.point, math.nan), math.nan)


class LiesAboutValues(Bad):
    def spoiled(self, iterate):
        return iterate._replace(value=2.0 * iterate.value)


class LiesALittle(Solver):
    """Reports, early on, values that are possible but not those of its points."""

    def iterates(self, problem, metric, start):
        for number, iterate in enumerate(AccelHomGD().iterates(problem, metric, start)):
            yield iterate._replace(value=iterate.value * (1.001 if 2 <= number <= 8 else 1.0))


class LiesAboutTheGap(Solver):
    """Hands the certificate a gradient that makes its poor point look optimal: ∇ρ = c."""

    def iterates(self, problem, metric, start):
        rho, _, image = problem.form.evaluate(start)
        s = problem.best_scale(rho, 1.0)
        yield Iterate(start, -0.75 * s, evaluated=(rho, problem.c / s**3, image))


class HangsAtOnce(Solver):
    def iterates(self, problem, metric, start):
        time.sleep(3600)
        yield


class Overwrites(Solver):
    """Scales the rows for its own convenience, in place: its own answers are wrong, and so would be those of others."""

    def iterates(self, problem, metric, start):
        problem.form._rows[...] *= 2.0
        yield from AccelHomGD().iterates(problem, metric, start)


class OverwritesAndRaises(Solver):
    def iterates(self, problem, metric, start):
        problem.form._rows[0] = 0.0
        raise RuntimeError("no such luck")
