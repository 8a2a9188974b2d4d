"""The minimum f* of small problems to thirty digits and more, independently of the package; and hostile problems.

A barrier method in mpmath, 90 digits: Newton's method on t·f(x) − log-barrier of the cone for growing t, which no
scale or condition number below 1e30 troubles. The answer is proved by weak duality in the same arithmetic: f(x) is
above f*, and the dual point 4‖sᵢ‖²sᵢ, with what is left of c paid for, below it; ``error`` is their distance.
"""

from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mp, mpf

#: Decimal digits of the arithmetic, and the relative distance of the two bounds on f* that is asked for.
DIGITS, WANTED = 90, mpf(10) ** -34


class Truth(NamedTuple):
    """optimum is within error of f* (mpmath numbers), from below and above: optimum − error ≤ f* ≤ optimum."""

    optimum: mpf
    error: mpf
    x: list


class Hostile(NamedTuple):
    """A small problem, and what is hostile about it."""

    rows: np.ndarray
    rank: int
    c: np.ndarray
    cone: str
    kind: str


KINDS = ("plain", "units", "dominant", "dependent", "conditioned", "polar", "scaled")
CONES = ("free", "orthant", "second-order")


def hostile(seed, kind=None, cone=None):
    """Return a problem of 2 to 6 unknowns and up to 15 terms, by its seed."""
    rng = np.random.default_rng([seed, 14])
    kind = kind or KINDS[rng.integers(len(KINDS))]
    cone = cone or CONES[rng.integers(len(CONES))]
    n, rank = int(rng.integers(2, 7)), int(rng.choice([1, 1, 1, 2, 3]))
    terms = int(rng.integers(n, 16))
    rows, c = rng.standard_normal((terms * rank, n)), rng.standard_normal(n)
    if kind == "units":
        units = 10.0 ** rng.uniform(-8.0, 8.0, n)
        rows, c = rows * units, c * units
    elif kind == "dominant":
        rows[0] *= 10.0 ** rng.uniform(3.0, 9.0)
    elif kind == "dependent":
        rows[:, -1] = rows[:, :-1] @ rng.standard_normal(n - 1) + 10.0 ** rng.uniform(-9.0, -2.0) * rows[:, -1]
    elif kind == "conditioned":
        u, _, v = np.linalg.svd(rows, full_matrices=False)
        rows = (u * 10.0 ** np.linspace(0.0, -rng.uniform(2.0, 12.0), n)) @ v
    elif kind == "polar" and cone == "orthant":
        c = -np.abs(c)
        c[rng.integers(n)] = 10.0 ** rng.uniform(-14.0, -2.0)
    elif kind == "polar" and cone == "second-order":
        c[0] = -np.linalg.norm(c[1:]) * (1.0 - rng.choice([-1.0, 1.0, 1.0]) * 10.0 ** rng.uniform(-14.0, -2.0))
    elif kind == "scaled":
        rows, c = rows * 10.0 ** rng.uniform(-150.0, 150.0), c * 10.0 ** rng.uniform(-150.0, 150.0)
    return Hostile(rows, rank, c, cone, kind)


def truth(rows, rank, c, cone):
    """Return f* of min ρ(x) − ⟨c,x⟩ over the cone, for small dense rows in floating point, or numbers of mpmath."""
    with mp.workdps(DIGITS):
        m = [[_number(entry) for entry in row] for row in rows]
        # Units of one per column (of one in all on the second-order cone), and of one for c: only the start needs them.
        columns = [mpmath.sqrt(sum(row[j] ** 2 for row in m)) for j in range(len(m[0]))]
        if cone == "second-order":
            columns = [max(columns)] * len(columns)
        m = [[row[j] / columns[j] for j in range(len(columns))] for row in m]
        b = [_number(entry) / columns[j] for j, entry in enumerate(c)]
        size = mpmath.sqrt(sum(entry**2 for entry in b))
        b = [entry / size for entry in b]
        x, optimum, error = _solve(m, rank, b, cone)
        scale = size ** (mpf(4) / 3)
        x = [size ** (mpf(1) / 3) * v / column for v, column in zip(x, columns, strict=True)]
        return Truth(optimum * scale, error * scale, x)


def value(rows, rank, c, x):
    """Return f(x) of points in floating point, to all digits."""
    with mp.workdps(DIGITS):
        m = [[mpf(float(entry)) for entry in row] for row in rows]
        x = [mpf(float(entry)) for entry in x]
        return _rho(_image(m, x), rank) - sum(mpf(float(a)) * b for a, b in zip(c, x, strict=True))


def _number(entry):
    return entry if isinstance(entry, mpf) else mpf(float(entry))


def _image(m, x):
    return [mpmath.fdot(row, x) for row in m]


def _squares(s, rank):
    return [sum(v * v for v in s[i : i + rank]) for i in range(0, len(s), rank)]


def _rho(s, rank):
    return sum(q * q for q in _squares(s, rank))


def _polar(c, cone):
    if cone == "orthant":
        return all(v <= 0 for v in c)
    if cone == "second-order":
        return c[0] <= 0 and c[0] ** 2 >= sum(v * v for v in c[1:])
    return False


def _solve(m, rank, c, cone):
    n = len(c)
    if _polar(c, cone):
        return [mpf(0)] * n, mpf(0), mpf(0)
    x = [mpf(1)] * n if cone == "orthant" else [mpf(1)] + [mpf(0)] * (n - 1)
    if cone == "free":
        x = _linear_solve(_gram(m), c)
        x = _on_ray(m, rank, c, x)
        return _proved(m, rank, c, cone, _newton(m, rank, c, cone, x, mpf(1), mpf(10) ** -70))
    # |f*| is at most (m^{1/4}‖c‖_{G⁻¹})^{4/3}: with t below its inverse the barrier leads, and Newton's method is fast.
    t = (len(m) * mpmath.fdot(c, _linear_solve(_gram(m), c)) ** 2) ** (-mpf(1) / 3)
    scale = (n / (4 * t * _rho(_image(m, x), rank))) ** mpf("0.25")
    x = _newton(m, rank, c, cone, [scale * v for v in x], t, mpf(10) ** -2, 2000)
    growth = mpf(5000)
    while True:
        try:
            x = _newton(m, rank, c, cone, x, t, mpf(10) ** -2, 40)
        except ArithmeticError:
            t, growth = t / mpmath.sqrt(growth), mpmath.sqrt(growth)
            continue
        f = _rho(_image(m, x), rank) - mpmath.fdot(c, x)
        # The central path is n/t (orthant) or 2/t (second-order cone) above f*.
        if f < 0 and n / t <= -f * WANTED / 10:
            return _proved(m, rank, c, cone, _newton(m, rank, c, cone, x, t, mpf(10) ** -60))
        if f < 0 and n / t <= -f / 10**6:
            for y in _guesses(m, rank, c, cone, x, t):
                try:
                    return _proved(m, rank, c, cone, y)
                except ArithmeticError:
                    continue
        growth = min(growth**2, mpf(5000))
        t *= growth


def _guesses(m, rank, c, cone, x, t):
    """Yield points with all conditions of optimality but signs, from a point of the central path."""
    if cone == "orthant":
        support = [j for j, v in enumerate(x) if v > 1 / (t * v)]
        rows = [[row[j] for j in support] for row in m]
        part = [x[j] for j in support]
        part = _newton(rows, rank, [c[j] for j in support], "free", part, mpf(1), mpf(10) ** -70)
        if min(part) > 0:
            y = [mpf(0)] * len(x)
            for j, v in zip(support, part, strict=True):
                y[j] = v
            yield y
        return
    y = _newton(m, rank, c, "free", x, mpf(1), mpf(10) ** -70)
    if y[0] ** 2 >= sum(v * v for v in y[1:]) and y[0] > 0:
        yield y
        return
    y = _on_boundary(m, rank, c, x, 2 / (t * (x[0] ** 2 - sum(v * v for v in x[1:]))))
    if y is not None:
        yield y


def _on_boundary(m, rank, c, x, multiplier):
    """Return the solution of ∇ρ(x) − c = νJx, ⟨x,Jx⟩ = 0, J = diag(1, −1, …), near x, by Newton's method; or None."""
    n = len(x)
    for _ in range(30):
        s = _image(m, x)
        squares = _squares(s, rank)
        jx = [x[0]] + [-v for v in x[1:]]
        weights = [4 * squares[k // rank] * v for k, v in enumerate(s)]
        wrong = [
            mpmath.fsum(row[j] * w for row, w in zip(m, weights, strict=True)) - c[j] - multiplier * jx[j]
            for j in range(n)
        ]
        wrong.append(-mpmath.fdot(x, jx) / 2)
        h = _hessian(m, rank, s, squares, mpf(1))
        matrix = mpmath.matrix(n + 1)
        for i in range(n):
            for j in range(n):
                matrix[i, j] = h[i][j] - ((multiplier if i == 0 else -multiplier) if i == j else 0)
            matrix[i, n] = matrix[n, i] = -jx[i]
        try:
            d = mpmath.lu_solve(matrix, -mpmath.matrix(wrong))
        except ZeroDivisionError:
            return None
        x, multiplier = [v + d[j] for j, v in enumerate(x)], multiplier + d[n]
        if max(abs(d[j]) for j in range(n)) <= mpf(10) ** -75 * max(map(abs, x)):
            x[0] = mpmath.sqrt(sum(v * v for v in x[1:])) * (1 + mpf(10) ** -80) if x[0] > 0 else x[0]
            return x if x[0] > 0 else None
    return None


def _on_ray(m, rank, c, x):
    step = mpmath.cbrt(mpmath.fdot(c, x) / (4 * _rho(_image(m, x), rank)))
    return [step * v for v in x]


def _proved(m, rank, c, cone, x):
    """Return x, f there, and its distance from the dual bound."""
    s = _image(m, x)
    f = _rho(s, rank) - mpmath.fdot(c, x)
    squares = _squares(s, rank)
    weights = [4 * squares[k // rank] * v for k, v in enumerate(s)]
    r = [a - sum(row[j] * w for row, w in zip(m, weights, strict=True)) for j, a in enumerate(c)]
    if cone == "orthant":
        r = [max(v, mpf(0)) for v in r]
    elif cone == "second-order":
        norm = mpmath.sqrt(sum(v * v for v in r[1:]))
        if norm <= -r[0]:
            r = [mpf(0)] * len(r)
        elif norm > r[0]:
            half = (r[0] + norm) / 2
            r = [half] + [half / norm * v for v in r[1:]]
    rest = mpf(len(squares)) ** mpf("0.25") * mpmath.sqrt(abs(mpmath.fdot(r, _linear_solve(_gram(m), r))))
    power = sum(q ** (mpf(2) / 3) for q in _squares(weights, rank))
    dual = mpf(3) / 4 * mpf(4) ** (-mpf(1) / 3) * (power ** (mpf(3) / 4) + rest) ** (mpf(4) / 3)
    if not -WANTED * dual <= f + dual <= WANTED * dual:
        raise ArithmeticError("no truth found to the digits asked for")
    return x, f, f + dual + WANTED * dual * mpf(10) ** -20


def _gram(m):
    n = len(m[0])
    gram = [[mpf(0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            gram[i][j] = gram[j][i] = mpmath.fsum(row[i] * row[j] for row in m)
    return gram


def _linear_solve(matrix, right):
    """Solve by Cholesky's factorisation."""
    n = len(right)
    lower = [[mpf(0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = matrix[i][j] - sum(lower[i][k] * lower[j][k] for k in range(j))
            lower[i][j] = mpmath.sqrt(rest) if i == j else rest / lower[j][j]
    y = []
    for i in range(n):
        y.append((right[i] - sum(lower[i][k] * y[k] for k in range(i))) / lower[i][i])
    for i in reversed(range(n)):
        y[i] = (y[i] - sum(lower[k][i] * y[k] for k in range(i + 1, n))) / lower[i][i]
    return y


def _barrier(cone, x):
    """Return the barrier, its gradient and its Hessian; None outside of the cone."""
    n = len(x)
    if cone == "free":
        return mpf(0), [mpf(0)] * n, None
    if cone == "orthant":
        if min(x) <= 0:
            return None
        hessian = [[1 / x[i] ** 2 if i == j else mpf(0) for j in range(n)] for i in range(n)]
        return -sum(mpmath.log(v) for v in x), [-1 / v for v in x], hessian
    gap = x[0] ** 2 - sum(v * v for v in x[1:])
    if x[0] <= 0 or gap <= 0:
        return None
    jx = [x[0]] + [-v for v in x[1:]]
    hessian = [
        [4 * jx[i] * jx[j] / gap**2 - ((2 if i == 0 else -2) / gap if i == j else 0) for j in range(n)]
        for i in range(n)
    ]
    return -mpmath.log(gap), [-2 * v / gap for v in jx], hessian


def _newton(m, rank, c, cone, x, t, tolerance, steps=400):
    """Return the minimiser of t·f + barrier, by damped Newton steps until half the squared decrement is tolerance."""
    n = len(x)
    for _ in range(steps):
        s = _image(m, x)
        squares = _squares(s, rank)
        barrier, gradient, hessian = _barrier(cone, x)
        weights = [4 * squares[k // rank] * v for k, v in enumerate(s)]
        g = [
            gradient[j] + t * (mpmath.fsum(row[j] * w for row, w in zip(m, weights, strict=True)) - c[j])
            for j in range(n)
        ]
        h = _hessian(m, rank, s, squares, t)
        if hessian is not None:
            h = [[h[i][j] + hessian[i][j] for j in range(n)] for i in range(n)]
        d = [-v for v in _linear_solve(h, g)]
        decrement = -mpmath.fdot(g, d)
        scale = 1 if cone != "free" else abs(_rho(s, rank))
        if decrement <= 2 * tolerance * scale:
            return x
        now, along, step = t * (_rho(s, rank) - mpmath.fdot(c, x)) + barrier, _image(m, d), mpf(1)
        while True:
            y = [a + step * b for a, b in zip(x, d, strict=True)]
            there = _barrier(cone, y)
            if there is not None:
                image = [a + step * b for a, b in zip(s, along, strict=True)]
                if t * (_rho(image, rank) - mpmath.fdot(c, y)) + there[0] <= now - step * decrement / 10:
                    break
            step /= 2
            if step < mpf(10) ** -60:
                return x
        x = y
    raise ArithmeticError("Newton's method did not converge")


def _hessian(m, rank, s, squares, t):
    n = len(m[0])
    rows = []
    for i, q in enumerate(squares):
        block = range(i * rank, (i + 1) * rank)
        rows += [(4 * q, m[k]) for k in block]
        rows.append((mpf(8), [sum(s[k] * m[k][j] for k in block) for j in range(n)]))
    h = [[mpf(0)] * n for _ in range(n)]
    for i in range(n):
        weighted = [t * w * row[i] for w, row in rows]
        for j in range(i + 1):
            h[i][j] = h[j][i] = mpmath.fdot(weighted, [row[j] for _, row in rows])
    return h
