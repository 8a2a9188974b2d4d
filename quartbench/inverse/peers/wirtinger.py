"""Wirtinger flow and its reshaped kind: gradient descent on intensities and on amplitudes, as published."""

from __future__ import annotations

import numpy as np

from quartbench.errors import ProblemError, number
from quartbench.inverse.contract import Iterate, Method, register, require_subspace
from quartbench.inverse.misfits import TermMisfit


def _terms(problem, name: str) -> TermMisfit:
    if not isinstance(problem.misfit, TermMisfit):
        raise ProblemError(f"{name} needs a form with terms, found {problem.form!r}")
    return problem.misfit


@register("wirtinger")
class Wirtinger(Method):
    """Wirtinger flow: gradient descent on F with the published, growing step.

    Problem
    -------
    min F(x) on free space, from a spectral start.

    Algorithm
    ---------
    x ← x − μₖ/‖x₀‖² · ∇F(x)/(4m̄) with μₖ = min(1 − e^{−k/330}, μ_max), m̄ the mean leverage: for rows with E|q|² = 1 an
    entry it is the number of measurements, as published.

    Guarantee
    ---------
    Linear convergence to the signal with high probability, for Gaussian rows and m of the order of N ln N.

    Reference
    ---------
    Candès, Li & Soltanolkotabi, *Phase retrieval via Wirtinger flow*, IEEE Trans. Inf. Theory 2015.

    Parameters
    ----------
    largest : float
        μ_max; the published 0.4 for coded diffraction, 0.2 for Gaussian rows.
    """

    peer = True

    def __init__(self, largest: float = 0.2) -> None:
        self.largest = number(largest, "largest", 0.0, open_low=True)

    def prepare(self, problem):
        """Raise for cones that are no subspaces, and forms without terms."""
        require_subspace(problem, self.name, "'nolips'")
        _terms(problem, self.name)

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; one pass each where the form fuses value and gradient."""
        misfit = problem.misfit
        energy = float(problem.form.twin().gram_diagonal().mean()) * float(start @ start)
        at, count = misfit.evaluate(start), 0
        yield Iterate(at)
        while True:
            count += 1
            step = min(1.0 - np.exp(-count / 330.0), self.largest) / (4.0 * energy)
            at = misfit.evaluate(problem.cone.euclidean(at.point - step * at.gradient))
            yield Iterate(at, step)


@register("reshaped-wirtinger")
class ReshapedWirtinger(Method):
    """Reshaped Wirtinger flow: gradient descent on the amplitudes Σ (|sᵢ| − √dᵢ)² with a constant step.

    Problem
    -------
    min Σ (‖sᵢ‖ − √dᵢ)² on free space, from a spectral start; F is reported, as for the others.

    Algorithm
    ---------
    x ← x − μ/m̄ · Mᵀ(sᵢ − √dᵢ·sᵢ/‖sᵢ‖), m̄ as for ``wirtinger``.

    Guarantee
    ---------
    Linear convergence with high probability for Gaussian rows and m of the order of N.

    Reference
    ---------
    Zhang, Zhou, Liang & Chi, *A nonconvex approach for phase retrieval: reshaped Wirtinger flow and incremental
    algorithms*, J. Mach. Learn. Res. 2017.

    Parameters
    ----------
    step : float
        μ; the published 0.8 is for real rows, 1 for complex ones.
    """

    peer = True

    def __init__(self, step: float = 1.0) -> None:
        self.step = number(step, "step", 0.0, open_low=True)

    def prepare(self, problem):
        """Raise for cones that are no subspaces, and forms without terms."""
        require_subspace(problem, self.name, "'nolips'")
        _terms(problem, self.name)

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; two passes each, and one more for the ∇F that the driver judges by, which is not counted."""
        misfit = problem.misfit
        form, roots = misfit.form, np.sqrt(np.maximum(misfit.d, 0.0))
        judge = misfit.twin()
        share = self.step / float(form.twin().gram_diagonal().mean())
        x = start
        while True:
            image = form.image(x)
            yield Iterate(judge.moved(x, image), share)
            length = np.sqrt(form.term_squares(image))
            keep = 1.0 - np.divide(roots, length, out=np.zeros_like(roots), where=length > 0.0)
            x = problem.cone.euclidean(x - share * form.adjoint(form.weighted_image(keep, image)))
