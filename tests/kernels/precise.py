"""The truth about a small problem: f(x) in rational arithmetic, f* by Newton's method with sixty digits."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

DIGITS = 60


def value(rows, rank, c, x):
    """Return f(x) exactly, as a Fraction."""
    a, point = [[Fraction(v) for v in row] for row in rows.tolist()], [Fraction(v) for v in x.tolist()]
    s = [sum(p * q for p, q in zip(row, point, strict=True)) for row in a]
    squares = [sum(v * v for v in s[i : i + rank]) for i in range(0, len(s), rank)]
    return sum(q * q for q in squares) - sum(Fraction(v) * p for v, p in zip(c.tolist(), point, strict=True))


def optimum(rows, rank, c, x, orthant=False):
    """Return f* as a Fraction, right to some thirty digits, from a point x near the minimiser.

    On the orthant the support of x is taken for that of the minimiser; None where the multipliers say it is not.
    """
    with localcontext() as context:
        context.prec = DIGITS
        support = np.flatnonzero(x > 0.0) if orthant else np.arange(x.size)
        a = np.array([[Decimal(v) for v in row] for row in rows.tolist()], dtype=object)
        target = np.array([Decimal(v) for v in c.tolist()], dtype=object)
        point = np.array([Decimal(v) for v in x.tolist()], dtype=object)
        point[support] = _newton(a[:, support], rank, target[support], point[support])
        rho, gradient, _ = _derivatives(a, rank, point)
        if orthant and (min(point) < 0 or any(target - gradient > abs(target) * Decimal(10) ** -30)):
            return None
        return Fraction(rho - target @ point)


def _newton(a, rank, c, x):
    for _ in range(600):
        rho, gradient, hessian = _derivatives(a, rank, x)
        inner = c @ x
        scale = (inner / (4 * rho)) ** (Decimal(1) / 3)
        x, rho, inner = scale * x, scale**4 * rho, scale * inner
        e = _solve(hessian * scale**2, c - gradient * scale**3)
        if e @ (c - gradient * scale**3) <= Decimal(10) ** -30 * inner:
            break
        # Where the Hessian is singular at the solution, Newton's steps are too short by a factor of up to three.
        trials = [x + t * e for t in (Decimal(1), Decimal(2), Decimal(3), Decimal("0.5"), Decimal("0.1"))]
        x = min(trials, key=lambda y: _derivatives(a, rank, y)[0] - c @ y)
    return x


def _derivatives(a, rank, x):
    n = len(x)
    rho, gradient, hessian = Decimal(0), np.array([Decimal(0)] * n), np.array([[Decimal(0)] * n] * n)
    for i in range(0, len(a), rank):
        u = a[i : i + rank]
        s = u @ x
        q, g = s @ s, s @ u
        rho, gradient = rho + q * q, gradient + 4 * q * g
        hessian = hessian + 4 * q * (u.T @ u) + 8 * np.outer(g, g)
    return rho, gradient, hessian


def _solve(matrix, right):
    """Solve by elimination; a coordinate that the matrix does not see stays where it is."""
    matrix, x, n = matrix.copy(), right.copy(), len(right)
    for k in range(n):
        for i in range(k + 1, n):
            share = matrix[i, k] / matrix[k, k] if matrix[k, k] else Decimal(0)
            matrix[i] = matrix[i] - share * matrix[k]
            x[i] -= share * x[k]
    for k in range(n - 1, -1, -1):
        x[k] = (x[k] - matrix[k, k + 1 :] @ x[k + 1 :]) / matrix[k, k] if matrix[k, k] else Decimal(0)
    return x
