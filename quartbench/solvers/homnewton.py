"""Newton's method on the homogenised problem, with the dense Hessian by BLAS-3 and the exact search in a plane."""

from __future__ import annotations

from .contract import Solver
from .plane import Plane, Progress, first, iterate, newton_decrement, require_directions, residual
from .registry import register
from .steps import evaluate


@register("homnewton")
class HomNewton(Solver):
    """Homogenised Newton: the direction ρ''(x)⁻¹c from a dense factor, three to eight iterations to full accuracy.

    Problem
    -------
    min ρ(y) over y ∈ K, ⟨c,y⟩ = 1, on free space, the centred subspace, the orthant or the second-order cone.

    Algorithm
    ---------
    1. H = ρ''(y) = Σ 4qᵢBᵢ + 8Bᵢyyᵀ Bᵢ by BLAS-3 on row blocks; factor it.
    2. e = H⁻¹r with r = 4ρ(y)c − ∇ρ(y): as Hy = 3∇ρ(y), span{y, e} = span{y, H⁻¹c}, and y + e is Newton's step on f.
    3. y ← the best point of span{y, e}, exactly (a cubic): at least as good as Newton's step at any scale. On the
       orthant and the second-order cone, e minimises the quadratic model over y + e ∈ K.

    Guarantee
    ---------
    ρ never rises; quadratic convergence where ρ''(x*) is definite. Where it is not (‖Uᵢᵀx*‖ = 0 for terms that alone
    see a direction), Newton's step there is x⁺ = (2/3)x, and the gap falls by a factor of (2/3)⁴ ≈ 0.2
    per iteration.

    Reference
    ---------
    Newton's method with a plane search is this project's; the metric serves the start only.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=200, n=20, sigma_min=0.02, seed=0)
    >>> result = qb.solve(problem, qb.solvers.HomNewton(), rel_gap=1e-10)
    >>> result.status, result.nit <= 8
    ('converged', True)
    """

    costly = True

    def prepare(self, problem, metric):
        """Raise for cones without directions and forms without a dense Hessian."""
        require_directions(problem, self.name, dense=True)
        problem.form.require_dense()

    def iterates(self, problem, metric, start):
        """Yield y₀, y₁, …; one factor and two or three passes each."""
        form, plane, progress = problem.form, Plane(problem), Progress()
        y = evaluate(form, start)
        yield first(y, plane.c)
        while y.rho > 0.0:  # it is zero where all of y is rounding, as c may be beside translations of a graph
            r = residual(y, plane.c)
            e = problem.cone.newton_direction(form.dense_hessian(y.point, y.image), r, y.point)
            decrement = newton_decrement(y, r, e)
            step = plane.step(y, r, e)
            found = iterate(step.y, plane.c, step.t, decrement=decrement, dual=plane.dual(y, step, None))
            yield found
            y = step.y
            if step.t == 0.0 or progress.ended(found.value):
                return
