"""Are the numbers that forms prove true? Images, residuals, values and sizes of dual points, N(w) of what is left.

Truth is rational arithmetic where it can be, else mpmath: N(w) = max {⟨w,x⟩ : ρ(x) ≤ 1} follows from f* of c = w.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import quartbench as qb
from quartbench.cones import SecondOrder
from quartbench.forms import GramForm, OperatorForm, StackedForm
from quartbench.forms.curvature import BoundaryCurvature, Curvature
from quartbench.forms.gram import Frobenius
from quartbench.forms.proof import Factor, Iterated, factor_of_gram, factor_of_rows
from quartbench.forms.reading import WATCHED, watched
from quartbench.kernels import exact
from quartbench.linalg.known import Known, exactly
from tests.forms.random_forms import SEEDS, STYLES, RowProducts, dense_rows, make
from tests.forms.unseen import Smoothness
from tests.kernels import plain
from tests.model import truth

#: Kinds whose numbers have proven bounds; those of operators are taken on trust.
EXACT = ("dense", "float32", "sparse", "complex", "graph", "gram")


def dual_norm(rows, w):
    """Return ‖w‖ in the inverse of the Gram matrix of the rows, to many digits."""
    with mpmath.workdps(60):
        m, w = mpmath.matrix(rows.tolist()), mpmath.matrix(list(map(float, w)))
        return mpmath.sqrt((w.T * mpmath.lu_solve(m.T * m, w))[0])


def quartic_norm(rows, rank, w):
    """Return N(w) to thirty digits: f* = −¾ 4^{−1/3} N^{4/3} where c = w."""
    found = truth.truth(rows, rank, w, "free")
    with mpmath.workdps(50):
        return (-found.optimum * 4 / 3 * mpmath.mpf(4) ** (mpmath.mpf(1) / 3)) ** 0.75


def schatten(weights, shape):
    """Return the Schatten norm of exponent 4/3, which is dual to ρ^{1/4}, the one of exponent 4."""
    with mpmath.workdps(50):
        columns = shape[1]
        rows = [weights[i : i + columns] for i in range(0, len(weights), columns)]
        singular = mpmath.svd_r(mpmath.matrix(rows), compute_uv=False)
        return sum(s ** (mpmath.mpf(4) / 3) for s in singular) ** 0.75


def rational(numbers):
    return np.array([Fraction(float(v)) for v in np.ravel(numbers)], dtype=object)


def exact_rows(form):
    """Return the rows of a form as they are stored, of rational numbers; the identity for ‖XᵀX‖²."""
    rows = np.eye(form.dim) if isinstance(form, GramForm) else dense_rows(form)
    return rational(rows).reshape(rows.shape)


def exact_value(form, image):
    """Return ρ of a rational image."""
    if isinstance(form, GramForm):
        x = image.reshape(form.shape)
        return ((x.T @ x) ** 2).sum()
    return ((image.reshape(-1, form.rank) ** 2).sum(axis=1) ** 2).sum()


def within(known, truths):
    middle, error = rational(known.hi) + rational(known.lo), rational(known.error)
    return bool((abs(middle - truths) <= error).all())


@st.composite
def exact_forms(draw):
    return make(
        draw(st.sampled_from(EXACT)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 3)),
        draw(st.integers(0, 8)),
        draw(st.sampled_from(STYLES)),
        draw(SEEDS),
    )


# Images, residuals, values and sizes ----------------------------------------------------------------------------------


@given(exact_forms(), SEEDS, st.booleans(), st.sampled_from([1.0, 3.7]))
def test_images_and_residuals_are_within_their_bounds_whatever_the_scale(form, seed, precise, scale):
    rng, rows = np.random.default_rng(seed), exact_rows(form)
    scaled = form.scaled(scale)
    x = rng.standard_normal(form.dim) * 10.0 ** rng.uniform(-5.0, 5.0, form.dim)
    image = scaled.known_image(x, precise)
    assert within(image, rows @ rational(x))
    hi = rng.standard_normal(len(rows)) * 10.0 ** rng.uniform(-5.0, 5.0, len(rows))
    for lo in (np.zeros_like(hi), 2.0**-54 * rng.uniform(-1.0, 1.0, hi.size) * hi):
        c = np.array([float(v) for v in rows.T @ rational(hi)]) + 1e-9 * rng.standard_normal(form.dim)
        residual = scaled.known_residual(c, hi, lo, precise)
        assert within(residual, rational(c) - rows.T @ (rational(hi) + rational(lo)))
    # And they are as small as they promise: of the order u², or u in one plain pass over dense rows.
    unit = 1e-13 if not precise and type(form).__name__ == "DenseForm" else 1e-27
    assert (image.error <= unit * (abs(rows) @ abs(rational(x))).astype(float) + 1e-300).all()
    assert (residual.error <= 1e-27 * (abs(rational(c)) + abs(rows.T) @ abs(rational(hi))).astype(float)).all()


@given(exact_forms(), SEEDS)
def test_values_are_never_too_small(form, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(form.dim) * 10.0 ** rng.uniform(-3.0, 3.0, form.dim)
    image = form.known_image(x)
    assume(image.hi.any())
    exactly_there = exact_value(form, rational(image.hi) + rational(image.lo))
    found = Fraction(form.known_value(image))
    assert exactly_there <= found <= exactly_there * (1 + Fraction(1, 10**13))


@pytest.mark.parametrize(
    "kind",
    [
        *EXACT[:-1],
        "gram",
    ],
)
def test_values_cover_every_image_within_its_bounds(kind):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        form = make(kind, 3, 2, 5, "gaussian", seed)
        hi = form.known_image(rng.standard_normal(form.dim)).hi
        image = Known(hi, 2.0**-54 * hi, 10.0 ** rng.uniform(-20.0, 0.0) * np.abs(rng.standard_normal(hi.size)))
        found = form.known_value(image)
        outward = np.where(hi >= 0.0, 1, -1) * rational(image.error)
        for signs in (outward, rng.choice([-1, 1], hi.size) * rational(image.error)):
            assert Fraction(found) >= exact_value(form, rational(hi) + rational(image.lo) + signs)


@given(exact_forms(), SEEDS, st.floats(-40.0, 40.0))
def test_sizes_of_dual_points_are_never_too_small_and_close(form, seed, power):
    rng = np.random.default_rng(seed)
    count = form.dim if isinstance(form, GramForm) else form.terms * form.rank
    hi = rng.standard_normal(count) * 10.0 ** (power + rng.uniform(-3.0, 3.0, count))
    lo = 2.0**-54 * hi
    found = form.dual_size(hi, lo)
    with mpmath.workdps(50):
        weights = [mpmath.mpf(float(a)) + mpmath.mpf(float(b)) for a, b in zip(hi, lo, strict=True)]
        if isinstance(form, GramForm):
            wanted = schatten(weights, form.shape)
        else:
            squares = [sum(v * v for v in weights[i : i + form.rank]) for i in range(0, count, form.rank)]
            wanted = sum(q ** (mpmath.mpf(2) / 3) for q in squares) ** 0.75
        assert wanted <= found <= wanted * (1 + mpmath.mpf(10) ** -12)


@given(exact_forms(), SEEDS)
def test_the_dual_point_of_x_gives_the_gradient(form, seed):
    x = np.random.default_rng(seed).standard_normal(form.dim)
    hi, lo = form.dual_start(form.known_image(x))
    gradient = exact_rows(form).T.astype(float) @ (hi + lo)
    plain.close(gradient, form.gradient(x), 1e-11)
    # Its size is 4ρ^{3/4}, as N(∇ρ(x)) = ⟨∇ρ(x),x⟩/ρ(x)^{1/4}.
    assert form.dual_size(hi, lo) == pytest.approx(4.0 * form.value(x) ** 0.75, rel=1e-11)


@given(SEEDS, st.integers(1, 4), st.integers(0, 9))
def test_products_that_are_taken_on_trust_are_as_good_as_they_say(seed, rank, extra):
    rng = np.random.default_rng(seed)
    for form in (make("operator", 4, rank, extra, "gaussian", seed), Smoothness(3, 4)):
        rows = rational(form.real_rows()).reshape(-1, form.dim)
        x, hi = rng.standard_normal(form.dim), rng.standard_normal(len(rows))
        lo, c = 2.0**-54 * hi, rng.standard_normal(form.dim)
        image = form.known_image(x)
        assert within(image, rows @ rational(x))
        assert within(form.known_residual(c, hi, lo), rational(c) - rows.T @ (rational(hi) + rational(lo)))
        assert exact_value(form, rows @ rational(x)) <= Fraction(form.known_value(image))


# N of what is left: one Cholesky factor -------------------------------------------------------------------------------


@given(SEEDS)
def test_a_factor_bounds_the_dual_norm(seed):
    problem = truth.hostile(seed % 10**6)
    assume(problem.kind != "scaled")
    rows, rng = problem.rows, np.random.default_rng(seed)
    terms = len(rows) // problem.rank
    factor = factor_of_rows(rows, problem.rank)
    assert factor is not None
    assert factor.slack > 0.0
    assert factor.proved
    assert (np.frexp(factor.unit)[0] == 0.5).all()  # powers of two
    for w in (rows.T @ rng.standard_normal(len(rows)), rng.standard_normal(rows.shape[1]) * factor.unit):
        bound = factor.norm(exactly(w))
        wanted = dual_norm(rows, w) * mpmath.mpf(terms) ** 0.25
        assert bound >= wanted
        assert bound <= 2.0 * wanted


def smallest_eigenvalue(rows, factor):
    """Return λ_min of (MX)ᵀ(MX) − LLᵀ, to many digits."""
    with mpmath.workdps(60):
        m, basis, lower = (mpmath.matrix(part.tolist()) for part in (rows, factor.basis(), np.tril(factor._lower)))
        y = m * basis
        return min(mpmath.eigsy(y.T * y - lower * lower.T, eigvals_only=True))


@given(SEEDS)
def test_a_factor_is_below_the_gram_matrix_by_its_slack(seed):
    # (MX)ᵀ(MX) ⪰ LLᵀ + sI: what all of its bounds rest on, with powers of two for X or columns made orthonormal.
    problem = truth.hostile(seed % 10**6)
    assume(problem.kind != "scaled")
    factor = factor_of_rows(problem.rows, problem.rank)
    left = smallest_eigenvalue(problem.rows, factor)
    assert 0.0 < factor.slack <= left <= 10.0 * factor.slack


@given(SEEDS, st.integers(1, 6), st.floats(0.0, 5.0))
def test_a_factor_of_a_given_gram_matrix_is_below_it_by_its_slack(seed, n, digits):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((20, n)) * 10.0 ** rng.uniform(-3.0, 3.0, n)
    rows[:, -1] = rows[:, 0] + 10.0**-digits * rows[:, -1]
    factor = factor_of_gram(rows.T @ rows, 20, 20)
    assume(factor is not None)
    assert 0.0 < factor.slack <= smallest_eigenvalue(rows, factor)


@settings(max_examples=30)
@given(SEEDS)
def test_a_factor_bounds_n_itself(seed):
    problem = truth.hostile(seed % 10**6, cone="free")
    assume(problem.kind != "scaled")
    bound = factor_of_rows(problem.rows, problem.rank).norm(exactly(problem.c))
    wanted = quartic_norm(problem.rows, problem.rank, problem.c)
    # Between the two norms lies m^{1/4} at the most.
    terms = len(problem.rows) // problem.rank
    assert wanted <= bound <= 2.0 * terms**0.25 * wanted


@given(SEEDS, st.sampled_from([1e-140, 1e-60, 1e60, 1e140]))
def test_a_factor_bounds_the_dual_norm_at_any_scale(seed, scale):
    rng = np.random.default_rng(seed)
    rows, w = rng.standard_normal((12, 4)) * scale, rng.standard_normal(4)
    bound = factor_of_rows(rows).norm(exactly(w))
    wanted = dual_norm(rows, w) * mpmath.mpf(12) ** 0.25
    assert wanted <= bound <= 1.1 * wanted


def sampled(rng, rows, rank, terms):
    """Return the rows of so many of the terms."""
    blocks = rows.reshape(-1, rank, rows.shape[1])
    return blocks[rng.choice(len(blocks), terms, replace=False)].reshape(-1, rows.shape[1])


@given(SEEDS)
def test_a_factor_of_a_sample_bounds_the_dual_norm_of_all_rows(seed):
    rng = np.random.default_rng(seed)
    rows, w = rng.standard_normal((240, 5)) * 10.0 ** rng.uniform(-5.0, 5.0, 5), rng.standard_normal(5)
    factor = factor_of_rows(sampled(rng, rows, 2, 30), 2, of=120)
    assert factor.terms == 30
    assert factor.share == 0.25
    full = factor_of_rows(rows, 2).norm(exactly(w))
    assert dual_norm(rows, w) * mpmath.mpf(120) ** 0.25 <= full
    assert 0.8 * full <= factor.norm(exactly(w)) <= 4.0 * full


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 2))
def test_a_factor_of_a_sample_bounds_n_of_all_terms(seed, rank):
    rng = np.random.default_rng(seed)
    rows, w = rng.standard_normal((24 * rank, 3)), rng.standard_normal(3)
    wanted = quartic_norm(rows, rank, w)
    for sample in (6, 12, 24):
        assert wanted <= factor_of_rows(sampled(rng, rows, rank, sample), rank).norm(exactly(w)) <= 12.0 * wanted


def test_a_factor_of_a_given_gram_matrix_bounds_the_dual_norm():
    rng = np.random.default_rng(0)
    rows, w = rng.standard_normal((300, 20)), rng.standard_normal(20)
    factor = factor_of_gram(rows.T @ rows, 300, 300)
    assert 1.0 <= factor.norm(exactly(w)) / float(dual_norm(rows, w) * mpmath.mpf(300) ** 0.25) <= 1.1
    np.testing.assert_allclose(factor.solve(w), np.linalg.solve(rows.T @ rows, w), rtol=0.1)


def test_nothing_is_claimed_of_dependent_columns():
    rows = np.random.default_rng(0).standard_normal((20, 4))
    rows[:, 3] = rows[:, 0] + rows[:, 1]
    assert factor_of_rows(rows) is None or factor_of_rows(rows).slack > 0.0
    rows = np.round(8.0 * rows)
    rows[:, 3] = rows[:, 0] + rows[:, 1]  # exactly so
    assert factor_of_rows(rows) is None
    assert factor_of_gram(rows.T @ rows, 20, 20) is None
    assert factor_of_rows(np.zeros((3, 2))) is None


def test_unknown_entries_count_as_what_is_left():
    rng = np.random.default_rng(0)
    rows, w = rng.standard_normal((50, 6)), rng.standard_normal(6)
    factor = factor_of_rows(rows)
    error = 0.1 * np.abs(w)
    bound = factor.norm(Known(w, np.zeros(6), error))
    for signs in rng.choice([-1.0, 1.0], (50, 6)):
        assert bound >= dual_norm(rows, w + signs * error) * mpmath.mpf(50) ** 0.25


def test_no_number_says_nothing():
    factor = factor_of_rows(np.eye(2))
    for bad in (np.nan, np.inf):
        assert factor.norm(exactly(np.array([bad, 0.0]))) == np.inf
        assert factor.norm(Known(np.zeros(2), np.zeros(2), np.array([bad, 0.0]))) == np.inf


@given(SEEDS)
def test_a_correction_carries_w(seed):
    problem = truth.hostile(seed % 10**6)
    assume(problem.kind in ("plain", "units", "polar"))
    rows, w = problem.rows, problem.c
    factor = factor_of_rows(rows, problem.rank)
    mu = factor.correction(w, lambda z: rows @ z)
    # To a share of 1/63, by the shift of the factor: what is left is then corrected again.
    left = factor.norm(exactly(w - rows.T @ mu))
    assert left <= 0.05 * factor.norm(exactly(w))


# The proof of every form ----------------------------------------------------------------------------------------------


@st.composite
def provable_forms(draw):
    return make(
        draw(st.sampled_from(("dense", "float32", "sparse", "complex", "operator"))),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 2)),
        draw(st.sampled_from([0, 3, 40])),  # beyond six terms for each unknown a sample serves
        draw(st.sampled_from(STYLES)),
        draw(SEEDS),
    )


@settings(max_examples=40)
@given(provable_forms(), SEEDS, st.sampled_from([1.0, 3.7]))
def test_the_proof_of_a_form_bounds_n_on_its_rows_as_stored(form, seed, scale):
    rng, rows = np.random.default_rng(seed), dense_rows(form)
    proof = form.scaled(scale).proof()
    assert form.proof() is proof  # made once, for all twins
    assert isinstance(proof, Factor)
    w = rng.standard_normal(form.dim)
    wanted = quartic_norm(rows, form.rank, w)
    assert wanted <= proof.norm(exactly(w)) <= 5.0 * form.terms**0.25 * wanted
    mu = proof.correction(w, form.twin_image)
    assert proof.norm(exactly(w - rows.T @ mu)) <= 0.5 * proof.norm(exactly(w)) or form.terms > proof.terms


def test_nearly_dependent_sparse_rows_have_a_proof():
    rows = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9], [1.0, 1.0 - 1e-9]])
    proof = StackedForm(sp.csr_matrix(rows)).proof()
    w = rows.T @ np.array([1.0, -2.0, 0.5])
    assert proof.norm(exactly(w)) >= dual_norm(rows, w) * mpmath.mpf(3) ** 0.25


@settings(max_examples=30)
@given(SEEDS, st.integers(2, 4), st.integers(2, 4))
def test_the_proof_of_an_unseen_form_bounds_n(seed, height, width):
    assume(height * width <= 9)
    form, w = Smoothness(height, width), np.random.default_rng(seed).standard_normal(height * width)
    bound = form.proof().norm(exactly(w))
    for x in _points(form, w, seed):
        assert w @ x <= bound * form.value(x) ** 0.25 * (1.0 + 1e-12)


def _points(form, w, seed):
    """Give points for which ⟨w,x⟩/ρ(x)^{1/4} is large, and any."""
    rng = np.random.default_rng(seed)
    rows = form.real_rows() if not isinstance(form, GramForm) else np.eye(form.dim)
    best = np.linalg.solve(rows.T @ rows, w)
    for _ in range(30):  # Newton's method on ρ − ⟨w,x⟩, damped, after which x is near the maximum
        yield best
        hessian = np.array([form.hessian_product(best, unit) for unit in np.eye(form.dim)])
        best = best - 0.7 * np.linalg.lstsq(hessian, form.gradient(best) - w, rcond=None)[0]
    for distance in (0.1, 1.0, 10.0):
        yield best + distance * np.abs(best).max() * rng.standard_normal(form.dim)


# ‖XᵀX‖² ---------------------------------------------------------------------------------------------------------------


@given(SEEDS, st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_the_proof_of_a_gram_form_bounds_the_schatten_norm(seed, n, r, unknown):
    rng, form = np.random.default_rng(seed), GramForm(n, r)
    w = rng.standard_normal(form.dim) * 10.0 ** rng.uniform(-3.0, 3.0, form.dim)
    known = Known(w, 2.0**-54 * w, 0.1 * np.abs(w) if unknown else np.zeros_like(w))
    proof = form.scaled(3.7).proof()
    assert isinstance(proof, Frobenius)
    assert proof.proved
    bound = proof.norm(known)
    with mpmath.workdps(40):
        for signs in rng.choice([-1.0, 1.0], (4, form.dim)):
            corner = [
                sum(mpmath.mpf(float(part)) for part in parts)
                for parts in zip(*known[:2], signs * known.error, strict=True)
            ]
            assert bound >= schatten(corner, form.shape)
        if not unknown:
            assert bound <= min(n, r) ** 0.25 * schatten(list(map(float, w)), form.shape) * (1 + mpmath.mpf(10) ** -13)
    assert (proof.correction(w) == w).all()


@given(SEEDS, st.integers(1, 4), st.integers(1, 3))
def test_no_point_shows_more_than_the_bounds_of_a_gram_form(seed, n, r):
    form, w = GramForm(n, r), np.random.default_rng(seed).standard_normal(n * r)
    bound, size = form.proof().norm(exactly(w)), form.dual_size(w, np.zeros_like(w))
    assert size <= bound * (1.0 + 1e-12)
    most = 0.0
    for x in _points(form, w, seed):
        reached = w @ x / form.value(x) ** 0.25
        most = max(most, reached)
        assert reached <= size * (1.0 + 1e-12)
    assert most >= 0.99 * size  # the size is N itself


# Estimates, where a factor is too dear --------------------------------------------------------------------------------


@given(SEEDS, st.sampled_from(STYLES))
def test_conjugate_gradients_bound_n_as_far_as_they_tell(seed, style):
    form = make("dense", 6, 1, 20, style, seed)
    proof, rows = Iterated(form), dense_rows(form)
    assert not proof.proved
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(form.dim)
    assert proof.norm(exactly(w)) >= float(dual_norm(rows, w)) * form.terms**0.25
    assert proof.norm(exactly(np.zeros(form.dim))) == 0.0
    plain.close(rows.T @ proof.correction(w, form.twin_image), w, 1e-9)


def test_an_operator_with_many_unknowns_has_an_estimate(monkeypatch):
    monkeypatch.setattr("quartbench.forms.terms.PRODUCT_DIMENSION", 5)
    rows = np.random.default_rng(0).standard_normal((40, 8))
    proof = OperatorForm(RowProducts(rows)).proof()
    assert isinstance(proof, Iterated)
    w = np.random.default_rng(1).standard_normal(8)
    wanted = quartic_norm(rows, 1, w)
    assert wanted <= proof.norm(exactly(w)) <= 20.0 * wanted


# Corrections that follow the Hessian ----------------------------------------------------------------------------------


def hessian(rows, rank, x):
    return np.stack([plain.hessian_product(rows, rank, x, unit) for unit in np.eye(rows.shape[1])], axis=1)


@given(SEEDS, st.integers(1, 3))
def test_a_correction_along_the_hessian_carries_w_on_the_support(seed, rank):
    rng = np.random.default_rng(seed)
    rows, x, w = rng.standard_normal((12 * rank, 5)), rng.standard_normal(5), rng.standard_normal(5)
    for support in (None, np.array([0, 2, 3])):
        where = np.arange(5) if support is None else support
        point = np.zeros(5)
        point[where] = x[where]
        mu = Curvature(rows, rank, rows @ point, support).correction(w, w)
        plain.close((rows.T @ mu)[where], w[where], 1e-6)
        # It is ρ''(x)e along an e on the support.
        e = np.zeros(5)
        e[where] = np.linalg.solve(hessian(rows, rank, point)[np.ix_(where, where)], w[where])
        plain.close(rows.T @ mu, hessian(rows, rank, point) @ e, 1e-6)


def test_there_is_no_curvature_at_zero_nor_of_dependent_rows():
    with pytest.raises(np.linalg.LinAlgError):
        Curvature(np.eye(2), 1, np.zeros(2))
    with pytest.raises(np.linalg.LinAlgError):
        Curvature(np.ones((3, 2)), 1, np.ones(3))


@pytest.mark.parametrize("seed", range(6))
def test_corrections_along_the_boundary_turn_the_normal(seed):
    # At a distance δ from a minimiser on the boundary w is of the order δ; a correction leaves the order δ².
    rng, n = np.random.default_rng(seed), 5
    rows, best = rng.standard_normal((20, n)), rng.standard_normal(n)
    best[0] = np.linalg.norm(best[1:])
    signs = SecondOrder().mirror(best)
    c = plain.gradient(rows, 1, best) - 2.0 * signs * best
    sizes = []
    for distance in (1e-3, 1e-4):
        x = best * (1.0 + distance * rng.standard_normal(n))
        x[0] = np.linalg.norm(x[1:])
        weights = 4.0 * (rows @ x) ** 3
        boundary = BoundaryCurvature(rows, 1, rows @ x, x, signs)
        for turn in range(3):
            r = Known(*exact.residual(rows, c, weights, np.zeros_like(weights)))
            w = SecondOrder().outside(r)
            sizes.append(float(np.linalg.norm(w.hi)))
            if turn < 2:
                weights = weights + boundary.correction(w.rounded, r.rounded)
        assert sizes[-2] <= 100.0 * distance * sizes[-3]
        assert sizes[-1] <= max(0.1 * sizes[-2], 1e-12)


# Rows that change -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse", "complex"])
def test_a_proof_does_not_outlive_its_rows(kind):
    # A factor of the rows before was taken for one of those that had been scaled since.
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((140, 70)) + (1j * rng.standard_normal((140, 70)) if kind == "complex" else 0.0)
    rows = sp.csr_matrix(rows) if kind == "sparse" else rows
    form = (qb.ComplexForm if kind == "complex" else qb.StackedForm)(rows)
    problem = qb.Problem(form, rng.standard_normal(form.dim))
    x = qb.solve(problem).x
    before = qb.certify(problem, x)
    (rows.data if kind == "sparse" else rows)[:] *= 1e-3
    with pytest.raises(qb.ProblemError, match="the rows of this form have been changed since it was made"):
        qb.certify(problem, x)
    (rows.data if kind == "sparse" else rows)[:] *= 1e3
    if np.array_equal(form._sample(), form._kept["sample"]):
        assert qb.certify(problem, x) == before
    assert qb.certify(qb.Problem(type(form)(form.rows.copy()), problem.c), x).gap <= 1e-5


def test_what_is_watched_is_spread_over_the_rows():
    array = np.arange(10_000.0).reshape(100, 100)
    found = watched(array)
    assert 500 <= found.size <= WATCHED
    assert found[0] == 0.0
    assert found[-1] >= 9_980.0
    assert (watched(array[:5]) == array[:5].reshape(-1)).all()
    assert not np.shares_memory(watched(array[:5]), array)
