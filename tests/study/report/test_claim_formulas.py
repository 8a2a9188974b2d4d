"""What the formulas of the claims say, computed once more: the numbers behind each verdict, and where it changes."""

import math

import numpy as np
import pytest

from quartbench.study.report.claims import CLAIMS, FAILS, HOLDS, ONLY, OPEN

from ..frames import frame, run

TESTS = {claim.name: claim for claim in CLAIMS}


ARMIJO = {"settings": {"step": "armijo"}}


def decide(name, *rows):
    return TESTS[name].decide(frame(*rows))


def delta(gap):
    """Return δ of a relative gap g: √ρ(y) = (1 + δ)√ρ(y*) with 1 − (1 + δ)^{−2/3} = g."""
    return (1.0 - gap) ** -1.5 - 1.0


def falls(cost, **columns):
    """Return a run that reaches gap 0.01 after ``cost`` iterations."""
    return run(gaps=(1.0, 0.1, 0.01), iterations=(0, cost // 2, cost), **columns)


# Theorems -------------------------------------------------------------------------------------------------------------


def accelerated(count, gap, kappa, **columns):
    columns = {"method": "accel-homgd", "settings": {"restart": "scheduled"}} | columns
    return run(gaps=(0.5, gap), iterations=(0, count), kappa_bound=kappa, **columns)


@pytest.mark.parametrize("gap", [0.1, 1e-6])
@pytest.mark.parametrize("kappa", [1.5, 40.0])
def test_the_bound_of_accelerated_homgd_has_its_constants(gap, kappa):
    # 32 √(L/μ) (δ₀^{1/4} + 2^{1/4}) / δ^{1/4} with L/μ = √27 κ
    bound = 32.0 * math.sqrt(math.sqrt(27.0) * kappa) * (delta(0.5) ** 0.25 + 2.0**0.25) / delta(gap) ** 0.25
    count = math.floor(bound)
    found = decide("bound-accelerated", accelerated(count, gap, kappa))
    assert found.verdict == HOLDS
    assert found.numbers == {"share of the bound": pytest.approx(count / math.ceil(bound), rel=1e-9), "runs": 1}
    assert decide("bound-accelerated", accelerated(math.ceil(bound) + 1, gap, kappa)).verdict == FAILS


def test_only_runs_with_the_schedule_are_held_against_the_bound():
    other = accelerated(10**9, 0.1, 2.0, settings={"restart": "adaptive"})
    assert decide("bound-accelerated", other).verdict == OPEN
    assert decide("bound-accelerated", other, accelerated(10, 0.1, 2.0)).numbers["runs"] == 1


@pytest.mark.parametrize("gap", [0.3, 0.1, 1e-3, 1e-8])
def test_the_bound_of_homgd_has_its_constants(gap):
    kappa, tail = 3.0, max(delta(gap) ** -0.5 - 2.0, 0.0)
    bound = 12.0 * math.sqrt(27.0) * kappa * (max(math.log(4.0 * delta(0.5)), 0.0) + tail)
    for count, verdict in ((math.floor(bound), HOLDS), (math.ceil(bound) + 1, FAILS)):
        found = decide("bound-homgd", run(gaps=(0.5, gap), iterations=(0, count), kappa_bound=kappa))
        assert found.verdict == verdict
        assert found.numbers["share of the bound"] == pytest.approx(count / math.ceil(bound), rel=1e-9)


def test_the_bound_of_homgd_from_a_start_that_is_close_has_no_logarithm():
    start, gap = 0.05, 1e-4  # 4δ₀ < 1
    bound = 12.0 * math.sqrt(27.0) * 2.0 * (delta(gap) ** -0.5 - 2.0)
    found = decide("bound-homgd", run(gaps=(start, gap), iterations=(0, 100), kappa_bound=2.0))
    assert found.numbers["share of the bound"] == pytest.approx(100 / math.ceil(bound), rel=1e-9)


def test_bounds_count_the_first_time_that_a_gap_is_reached_and_no_rounding():
    rows = run(gaps=(0.5, 0.1, 0.1, 0.2, 1e-13), iterations=(0, 10, 10**6, 10**7, 10**8), kappa_bound=2.0)
    bound = 12.0 * math.sqrt(27.0) * 2.0 * (math.log(4.0 * delta(0.5)) + max(delta(0.1) ** -0.5 - 2.0, 0.0))
    assert decide("bound-homgd", rows).numbers["share of the bound"] == pytest.approx(10 / math.ceil(bound), rel=1e-6)
    assert decide("bound-homgd", run(gaps=(0.5,), kappa_bound=2.0)).verdict == OPEN


# L = 6β and μ = √(4/3) α: √ρ has the first for the constant of its gradient, ρ the second for its uniform convexity.
STIFFNESS = 6.0 / math.sqrt(4.0 / 3.0)


def gap(delta):
    """Return the relative gap of s(y)y where √ρ(y) = (1 + δ)√ρ(y*): f is −3/4^{4/3} ρ^{−1/3}."""
    return 1.0 - (1.0 + delta) ** (-2.0 / 3.0)


def worst_of_homgd(start, last):
    """Return gaps and iterations at κ = 1 where each step gains as little as the proof of Prop. 4.4 lets it."""
    deltas, now = [start], start
    while now > last:
        now -= now**1.5 / math.sqrt(2.0 + now) / (4.0 * STIFFNESS)
        deltas.append(now)
    counts = np.unique(np.geomspace(1, len(deltas) - 1, 60).round().astype(int))
    return gap(np.array([start, *(deltas[k] for k in counts)])), [0, *counts.tolist()]


@pytest.mark.parametrize("start", [0.2, 5.0])
def test_homgd_as_slow_as_its_proof_allows_is_close_below_the_bound(start):
    # Near the end δ^{−1/2} grows by μ/(8√2 L) a step, of which the proof keeps μ/(12 L): 8√2/12 = 0.943 of the bound.
    gaps, counts = worst_of_homgd(start, 1e-5)
    found = decide("bound-homgd", run(gaps=gaps, iterations=counts, kappa_bound=1.0))
    assert found.verdict == HOLDS
    assert 0.9 < found.numbers["share of the bound"] <= 1.0
    slower = [round(1.1 * k) for k in counts]
    assert decide("bound-homgd", run(gaps=gaps, iterations=slower, kappa_bound=1.0)).verdict == FAILS


def test_a_gap_just_below_the_start_is_allowed_a_single_iteration():
    # 12 L/μ (δ^{−1/2} − 2) = 0.63 from a start with 4δ₀ < 1
    gaps, steep = gap(np.array([0.2499, 0.2475])), 12.0 * STIFFNESS
    assert 0.0 < steep * (0.2475**-0.5 - 2.0) < 1.0
    for count, verdict in ((1, HOLDS), (2, FAILS)):
        assert decide("bound-homgd", run(gaps=gaps, iterations=(0, count), kappa_bound=1.0)).verdict == verdict


def test_a_stage_more_than_the_proof_of_the_restarts_counts_is_within_the_corrected_constant_alone():
    # 4^{t₀} ≥ 64 L/μ (1 + √(2/δ₀)), as late as can be; from t₀ on δ_t = δ₀/16^{t − t₀}, and stage t takes 2^t steps.
    start, begin = 1e6, 8
    kappa = 1.0001 * 4.0 ** (begin - 1) / (64.0 * STIFFNESS * (1.0 + math.sqrt(2.0 / start)))
    last = start / 16.0**6
    for stages, verdict in ((begin + 7, HOLDS), (begin + 8, FAILS)):
        steps = 2**stages - 1
        columns = {"method": "accel-homgd", "settings": {"restart": "scheduled"}, "kappa_bound": kappa}
        found = decide("bound-accelerated", run(gaps=gap(np.array([start, last])), iterations=(0, steps), **columns))
        assert found.verdict == verdict
        assert 0.9 * 2.0 ** (stages - begin - 7) < found.numbers["share of the bound"]


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 3.5)])
def test_the_bound_of_bregman_descent_is_that_of_its_kernel(alpha, beta):
    # L D/K with h = ¼‖x‖⁴, L = 12β² and D = h(x*) from 0; and |f*| = 3ρ(x*) ≥ 3α²‖x*‖⁴, here with ‖x*‖ = 1.
    final = 0.03
    allowed = math.ceil(12.0 * beta**2 * 0.25 / (3.0 * alpha**2 * final) - 1e-6)
    columns = {"method": "bregman", "settings": {"kernel": "quartic", "step": "fixed"}, "kappa_bound": beta / alpha}
    for count, verdict in ((allowed, HOLDS), (allowed + 2, FAILS)):
        found = decide("bound-bregman", run(gaps=(0.5, final), iterations=(0, count), **columns))
        assert found.verdict == verdict


@pytest.mark.parametrize(
    ("name", "method", "theory"), [("rate-homgd", "homgd", -2.0), ("rate-accelerated", "accel-homgd", -4.0)]
)
@pytest.mark.parametrize(("above", "verdict"), [(0.09, HOLDS), (0.11, FAILS)])
def test_a_finite_run_may_be_a_tenth_above_the_exponent_of_its_limit(name, method, theory, above, verdict):
    k = np.unique(np.geomspace(1, 3000, 40).round())
    settings = {"step": "fixed", "restart": "scheduled"}
    rows = [
        run(
            gaps=(1.0, *(0.1 * k ** (theory + above))),
            iterations=(0, *k),
            method=method,
            group="rates",
            seed=seed,
            settings=settings,
        )
        for seed in (0, 1)
    ]
    assert decide(name, *rows).verdict == verdict


def sweep_bound(m, n, r):
    """Return 1 + ln(ln(rm)/((2 − p')·1 %))/(2 − p'), where 1/(2 − p') = ½ + ln(m/n)/(4 ln ω) and ω = 1.5."""
    inverse = 0.5 + math.log(m / n) / (4.0 * math.log(1.5))
    return 1.0 + inverse * math.log(max(math.log(r * m) * inverse / 0.01, 1.0))


@pytest.mark.parametrize(("m", "n", "r"), [(2000, 20, 1), (500, 100, 3), (10**6, 10, 1)])
def test_sweeps_are_held_against_the_count_of_the_corollary(m, n, r):
    bound = sweep_bound(m, n, r)
    for sweeps, verdict in ((math.floor(bound), HOLDS), (math.ceil(bound), FAILS)):
        found = decide("sweeps", run(metric="lewis", sweeps=sweeps, m=m, n=n, r=r))
        assert found.verdict == verdict
        assert found.numbers == {"share of the count": pytest.approx(sweeps / bound, rel=1e-12)}


@pytest.mark.parametrize(("m", "n", "r"), [(1000, 10, 1), (300, 50, 4)])
def test_the_count_of_sweeps_is_that_of_algorithm_3_at_the_printed_power(m, n, r):
    omega, eps = 1.5, 0.01
    power = 2.0 * math.log(m / n) / (math.log(m / n) + 2.0 * math.log(omega))
    count = 1.0 + math.log(math.log(r * m) / ((2.0 - power) * eps)) / (2.0 - power)
    found = decide("sweeps", run(metric="lewis", sweeps=3, m=m, n=n, r=r))
    assert found.numbers["share of the count"] == pytest.approx(3.0 / count, rel=1e-12)


def test_sweeps_count_where_the_surrogate_exists():
    # m/n > ω², else p' ≤ 1
    assert decide("sweeps", run(metric="lewis", sweeps=5, m=220, n=100)).verdict == OPEN
    assert decide("sweeps", run(metric="lewis", sweeps=5, m=230, n=100)).verdict == HOLDS
    assert decide("sweeps", run(metric="lewis", sweeps=0, m=2300, n=100)).verdict == OPEN


@pytest.mark.parametrize(
    ("name", "group", "method", "metric", "quantity", "limit"),
    [
        ("kappa-iterations", "scaling-kappa", "homgd", "identity", "kappa_bound", 1.0),
        ("kappa-iterations", "scaling-kappa", "accel-homgd", "identity", "kappa_bound", 0.5),
        ("gamma-iterations", "scaling-coherence", "homgd", "uniform", "coherence", 0.5),
    ],
)
def test_growth_is_held_against_the_exponent_of_the_theory(name, group, method, metric, quantity, limit):
    def rows(exponent):
        for k in (16, 64, 256, 1024):
            columns = {quantity: float(k), "instance": str(k), "seed": 0}
            yield falls(round(400 * k**exponent), group=group, method=method, metric=metric, **columns)

    below, above = decide(name, *rows(limit - 0.1)), decide(name, *rows(limit + 0.1))
    assert (below.verdict, above.verdict) == (HOLDS, FAILS)
    (exponent,) = below.numbers.values()
    assert exponent == pytest.approx(limit - 0.1, abs=0.01)
    assert "0.10 below the theory" in below.evidence
    assert "0.10 above the theory" in above.evidence
    assert "over 1 fit whose 95 % interval is" in above.evidence
    sign = {"kappa_bound": "κ", "coherence": "γ"}[quantity]
    assert above.cases[0].startswith(f"{method} · {metric} in {sign}: exponent")


def growing(*costs):
    """Return runs of HomGD whose iterations at κ = 16, 64, 256, … are these."""
    for place, cost in enumerate(costs):
        kappa = 16.0 * 4.0**place
        yield falls(cost, group="scaling-kappa", kappa_bound=kappa, instance=str(kappa), seed=0)


def test_growth_just_like_the_theory_refutes_nothing():
    # The interval of exact powers has no width, and its end is 1 up to rounding.
    assert decide("kappa-iterations", *growing(1600, 6400, 25600, 102400)).verdict == HOLDS
    assert decide("kappa-iterations", *growing(1600, 6400, 25600, 102400, 409600)).verdict == HOLDS


@pytest.mark.parametrize(("noise", "wide"), [(2, False), (4, True)])
def test_an_exponent_is_told_where_its_interval_is_at_most_one_wide(noise, wide):
    # ln(cost) = ½ ln κ + d(1, −1, −1, 1): the slope has the standard error |2d|/√(2Σ(x − x̄)²), and t₀.₉₇₅ = 4.303.
    d, x = 0.1 * noise, np.log(16.0 * 4.0 ** np.arange(4))
    width = 2.0 * 4.303 * 2.0 * d / math.sqrt(2.0 * ((x - x.mean()) ** 2).sum())
    assert (width > 1.0) == wide
    assert width < 2.0
    costs = [round(10_000 * 2.0**place * math.exp(d * sign)) for place, sign in enumerate((1, -1, -1, 1))]
    found = decide("kappa-iterations", *growing(*costs))
    assert (found.verdict == OPEN) == wide, (width, found)


def test_the_width_of_an_interval_counts_and_not_where_it_lies():
    # The exponents are 0 and 1, the one with a wide interval and the other with a narrow one.
    rough = [round(10_000 * math.exp(0.5 * sign)) for sign in (1, -1, -1, 1)]
    assert decide("kappa-iterations", *growing(*rough)).verdict == OPEN
    assert decide("kappa-iterations", *growing(1600, 6401, 25599, 102400)).verdict == HOLDS


# Metrics --------------------------------------------------------------------------------------------------------------


def test_kappa_of_the_identity_is_held_against_the_squared_condition():
    # (σ_max/σ_min)² √(mγ) = 100 · √(20 · 0.8) = 400
    for arguments in ({"sigma_min": 0.1}, {"cond": 10.0}):
        found = decide("kappa-identity", run(kappa_measured=400.0, coherence=0.8, arguments=arguments))
        assert found.verdict == HOLDS
        assert found.numbers == {"least": pytest.approx(1.0), "largest": pytest.approx(1.0)}
        assert decide("kappa-identity", run(kappa_measured=401.0, coherence=0.8, arguments=arguments)).verdict == FAILS
    assert decide("kappa-identity", run(kappa_measured=400.0, coherence=0.8)).verdict == OPEN


@pytest.mark.parametrize(
    ("name", "columns", "bound", "slack"),
    [
        ("kappa-uniform", {"metric": "uniform", "coherence": 0.45, "m": 20}, 3.0, 1e-6),
        ("kappa-lewis", {"metric": "lewis", "n": 9}, 3.0, 0.01),
    ],
)
def test_bounds_on_kappa_have_their_slack_and_no_more(name, columns, bound, slack):
    rows = [run(kappa_measured=bound * share, **columns) for share in (0.5, 0.6, 1.0 + 0.99 * slack)]
    found = decide(name, *rows)
    assert found.verdict == HOLDS
    assert (found.numbers["least"], found.numbers["largest"]) == pytest.approx((0.5, 1.0 + 0.99 * slack))
    assert "0.6 in the median" in found.evidence
    assert decide(name, *rows, run(kappa_measured=bound * (1.0 + 1.01 * slack), **columns)).verdict == FAILS


@pytest.mark.parametrize(
    ("name", "columns", "bound"),
    [
        ("kappa-identity", {"coherence": 0.45, "m": 20, "arguments": {"cond": 10.0}}, 300.0),
        ("kappa-terms", {"m": 9, "arguments": {"sigma_min": 0.1}}, 300.0),
        ("kappa-symnmf", {"r": 9, "generator": "planted_partition"}, 3.0),
    ],
)
def test_bounds_on_the_euclidean_kappa_leave_room_for_rounding_alone(name, columns, bound):
    # Points attain a measured κ, so that nothing but rounding can lift it above a bound.
    assert decide(name, run(kappa_measured=bound * (1.0 + 0.9e-6), **columns)).verdict == HOLDS
    assert decide(name, run(kappa_measured=bound * (1.0 + 1.1e-6), **columns)).verdict == FAILS


def test_the_kappa_of_symmetric_nmf_is_attained_within_a_hundredth():
    for share, verdict in ((0.991, HOLDS), (0.989, FAILS)):
        found = decide("kappa-symnmf", run(kappa_measured=3.0 * share, r=9, generator="planted_partition"))
        assert found.verdict == verdict


def test_one_kappa_is_a_number_and_several_are_a_range():
    one, other = (run(metric="lewis", n=9, kappa_measured=kappa) for kappa in (1.5, 2.1))
    assert decide("kappa-lewis", one).evidence == "Over 1 instance the largest κ found is 0.5 times √n."
    assert "is 0.5 to 0.7 times √n, 0.6 in the median." in decide("kappa-lewis", one, other).evidence


@pytest.mark.parametrize(
    ("gamma", "verdict"),
    [
        (0.7, HOLDS),
        (0.5 * (1.0 - 0.9e-9), HOLDS),
        (2.0 * (1.0 + 0.9e-9), HOLDS),
        (0.5 * (1.0 - 1.1e-9), FAILS),
        (2.0 * (1.0 + 1.1e-9), FAILS),
    ],
)
def test_coherence_lies_between_its_ends(gamma, verdict):
    found = decide("coherence-range", run(coherence=gamma, m=20, n=10, r=2))
    assert found.verdict == verdict
    assert found.numbers == {"γm/n": pytest.approx(2.0 * gamma), "γ/r": pytest.approx(0.5 * gamma)}
    assert f"On one instance γm/n is {2 * gamma:.4g} or more, and γ/r {gamma / 2:.4g} or less." == found.evidence
    assert (
        "Over 2 instances" in decide("coherence-range", run(coherence=0.6), run(coherence=0.6, instance="b")).evidence
    )


@pytest.mark.parametrize("columns", [{"cone": "centred"}, {"generator": "complex_gaussian"}, {"m": 0}])
def test_coherence_of_graphs_and_complex_rows_is_another_matter(columns):
    assert decide("coherence-range", run(coherence=0.001, **columns)).verdict == OPEN


def resistance(vertices, edges):
    """Return the largest effective resistance of an edge, from the pseudoinverse of the Laplacian."""
    ends = np.zeros((len(edges), vertices))
    for row, (i, j) in zip(ends, edges, strict=True):
        row[i], row[j] = 1.0, -1.0
    return float((ends @ np.linalg.pinv(ends.T @ ends) * ends).sum(axis=1).max())


RING = [(k, (k + 1) % 7) for k in range(7)]
TREE = [(k // 2, k + 1) for k in range(6)]
BARBELL = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3)]


def drawn(generator, vertices, edges, factor=1.0, dimension=3):
    gamma = resistance(vertices, edges) * factor
    columns = {"m": len(edges), "n": dimension * vertices, "r": dimension, "coherence": gamma}
    return decide("graph-coherence", run(cone="centred", generator=generator, instance=generator, **columns))


@pytest.mark.parametrize(
    ("generator", "vertices", "edges", "least"),
    [("ring", 7, RING, 1.0), ("tree", 7, TREE, 1.0), ("barbell", 6, BARBELL, 7 / 5)],
)
def test_the_coherence_of_a_graph_is_held_against_the_sum_of_its_resistances(generator, vertices, edges, least):
    # Foster: the resistances of all edges add up to N − 1, so that those of a ring or a tree are all (N − 1)/|Ω|.
    found = drawn(generator, vertices, edges)
    assert found.verdict == HOLDS
    assert found.numbers == {"least": pytest.approx(least), "largest": pytest.approx(resistance(vertices, edges))}


@pytest.mark.parametrize(("count", "words"), [(0, "0 of them have"), (1, "1 of them has"), (2, "2 of them have")])
def test_graphs_with_a_bridge_are_counted(count, words):
    columns = {"cone": "centred", "m": len(BARBELL), "n": 18, "r": 3, "coherence": 1.0}
    names = ["barbell"] * count + ["geometric"] * (3 - count)
    rows = [run(generator=name, instance=f"{name} {place}", **columns) for place, name in enumerate(names)]
    found = decide("graph-coherence", *rows)
    assert found.evidence == f"Over 3 graphs γ(Ω) is 1.4 to 1.4 times (N − 1)/|Ω| and at most 1; {words} a bridge."


@pytest.mark.parametrize(
    ("generator", "edges", "factor", "verdict"),
    [
        # nothing is below (N − 1)/|Ω| by more than rounding,
        ("ring", RING, 1.0 - 0.9e-6, HOLDS),
        ("ring", RING, 1.0 - 1.1e-6, FAILS),
        # nor above 1;
        ("tree", TREE, 1.0 + 0.9e-6, HOLDS),
        ("tree", TREE, 1.0 + 1.1e-6, FAILS),
        # a bridge has 1,
        ("barbell", TREE, 1.0 + 0.9e-6, HOLDS),
        ("barbell", [*TREE, (5, 6)], 1.0 - 0.9e-6, HOLDS),
        ("barbell", [*TREE, (5, 6)], 1.0 - 1.1e-6, FAILS),
        # and where there is none it is less.
        ("regular", RING, (1.0 - 1.1e-6) * 7 / 6, HOLDS),
        ("regular", RING, (1.0 - 0.9e-6) * 7 / 6, FAILS),
        ("geometric", RING, (1.0 - 0.9e-6) * 7 / 6, HOLDS),
    ],
)
def test_the_ends_of_the_coherence_of_graphs_leave_room_for_rounding_alone(generator, edges, factor, verdict):
    assert drawn(generator, 7, edges, factor).verdict == verdict


def graph(name, excess, ratio):
    """Return runs on a graph with |Ω|γ/N = excess, where B⁽⁰⁾ takes ratio times the iterations of B*."""
    gamma = excess * 30 / (300 * 3)  # mγr/n with m = 300, n = 30 and r = 3
    for metric, cost in (("uniform", round(100 * ratio)), ("lewis", 100)):
        columns = {"cone": "centred", "coherence": gamma, "m": 300, "n": 30, "r": 3, "instance": name}
        yield falls(cost, metric=metric, **columns)


def test_lewis_pays_on_graphs_of_high_resistance():
    assert decide("graphs", *graph("a", 4.0, 3.0), *graph("b", 1.1, 1.0)).verdict == HOLDS
    assert decide("graphs", *graph("a", 1.1, 3.0)).verdict == FAILS
    assert decide("graphs", *graph("a", 4.0, 1.0)).verdict == FAILS
    # SIMILAR² = 1.5625 is where κ₀/κ* = 1.25
    assert decide("graphs", *graph("a", 1.55, 1.2)).verdict == HOLDS
    assert decide("graphs", *graph("a", 1.57, 1.3)).verdict == HOLDS
    mixed = decide("graphs", *graph("a", 4.0, 3.0), *graph("b", 4.0, 1.0), *graph("c", 4.0, 3.0))
    assert (mixed.verdict, mixed.condition) == (ONLY, "not for b")
    assert mixed.cases[0].startswith("a (|Ω|γ/N = 4): 3")


@pytest.mark.parametrize(("ratio", "verdict"), [(1.24, FAILS), (1.26, HOLDS)])
def test_preconditioning_is_significant_beyond_a_quarter(ratio, verdict):
    rows = [
        falls(
            round(1000 * (ratio if metric == "identity" else 1)), metric=metric, group=group, instance=group, **ARMIJO
        )
        for metric in ("identity", "uniform", "lewis")
        for group in ("figure-2a", "figure-2b")
    ]
    found = decide("preconditioning", *rows)
    assert found.verdict == verdict
    assert len(found.numbers) == 4
    assert list(found.numbers.values()) == pytest.approx([ratio] * 4)


@pytest.mark.parametrize(("low", "high", "verdict"), [(1.24, 1.26, HOLDS), (1.24, 1.24, FAILS), (1.26, 3.0, FAILS)])
def test_lewis_is_significant_only_at_high_coherence(low, high, verdict):
    rows = [
        falls(round(1000 * (ratio if metric == "uniform" else 1)), metric=metric, group=group, instance=group, **ARMIJO)
        for group, ratio in (("figure-2a", low), ("figure-2b", high))
        for metric in ("uniform", "lewis")
    ]
    found = decide("coherence", *rows)
    assert found.verdict == verdict
    assert decide("coherence", *rows[:2]).verdict == decide("coherence", *rows[2:]).verdict == OPEN
    assert sorted(found.numbers.values()) == pytest.approx(sorted([low, high]))


# Section 6.1 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "verdict"), [(1.24, HOLDS), (1.26, FAILS), (1 / 1.24, HOLDS), (1 / 1.26, FAILS)])
def test_gd_and_homgd_are_similar_within_a_quarter_both_ways(ratio, verdict):
    rows = (
        falls(round(10_000 * ratio), method="gd", group="figure-1a", **ARMIJO),
        falls(10_000, group="figure-1a", **ARMIJO),
    )
    assert decide("gd-homgd", *rows).verdict == verdict


@pytest.mark.parametrize(("ratio", "verdict"), [(1.24, FAILS), (1.26, HOLDS)])
def test_acceleration_counts_on_ill_conditioned_rows(ratio, verdict):
    fast = {"method": "accel-homgd", "settings": {"restart": "scheduled", "step": "armijo"}}
    easy = falls(1000, group="figure-1a", **ARMIJO), falls(1000, group="figure-1a", **fast)
    hard = falls(round(1000 * ratio), group="figure-1b", **ARMIJO), falls(1000, group="figure-1b", **fast)
    found = decide("acceleration", *easy, *hard)
    assert found.verdict == verdict
    assert list(found.numbers.values()) == pytest.approx([1.0, ratio])
    assert decide("acceleration", *easy).verdict == OPEN


@pytest.mark.parametrize(("ratio", "verdict"), [(1.24, FAILS), (1.26, HOLDS)])
@pytest.mark.parametrize("step", ["armijo", "fixed"])
def test_restarts_are_significant_beyond_a_quarter(ratio, verdict, step):
    def with_restarts(kind, cost):
        return falls(cost, method="accel-homgd", group="figure-1b", settings={"restart": kind, "step": step})

    rows = with_restarts("none", round(1000 * ratio)), with_restarts("scheduled", 1000)
    assert decide("restarts", *rows).verdict == verdict


def fixed(cost, method, **settings):
    return falls(cost, method=method, group="fixed-steps", metric="lewis", settings={"step": "fixed", **settings})


@pytest.mark.parametrize(("ratio", "verdict"), [(1.24, FAILS), (1.26, HOLDS)])
def test_fixed_steps_of_a_ball_are_worse_beyond_a_quarter(ratio, verdict):
    rows = fixed(1000, "homgd"), fixed(round(1000 * ratio), "gd", radius=1.0)
    assert decide("fixed-steps", *rows).verdict == verdict
    rows = fixed(1000, "accel-homgd", restart="scheduled"), fixed(round(1000 * ratio), "agd", radius=1.0)
    assert decide("fixed-steps", *rows).verdict == verdict


BASELINES = {
    "GD": ("gd", {"radius": 1.0}),
    "accelerated GD": ("agd", {"radius": 1.0}),
    "Bregman, quartic kernel": ("bregman", {"kernel": "quartic"}),
    "Bregman, quartic + quadratic kernel": ("bregman", {"kernel": "quartic+quadratic"}),
}


@pytest.mark.parametrize(("ratio", "verdict"), [(1.24, FAILS), (1.26, HOLDS)])
@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_with_fixed_steps_is_worse_beyond_a_quarter(name, ratio, verdict):
    method, settings = BASELINES[name]
    fast = fixed(1000, "accel-homgd", restart="scheduled")
    found = decide("both-criteria", fast, fixed(round(1000 * ratio), method, **settings))
    assert (found.verdict, found.numbers) == (verdict, {name: pytest.approx(ratio)})


def test_what_acceleration_saves_in_a_ball_is_said_beside_the_baselines():
    fast = fixed(100, "accel-homgd", restart="scheduled")
    near = fixed(600, "gd", radius=1.0), fixed(200, "agd", radius=1.0)
    far = fixed(9000, "gd", radius=2.0), fixed(8000, "agd", radius=2.0)
    found = decide("both-criteria", fast, *near, *far)
    assert found.numbers == {"GD": 6.0, "accelerated GD": 2.0, "acceleration in the ball": 3.0}
    assert found.evidence.endswith("acceleration in it saves a factor of 3.")


# Additions ------------------------------------------------------------------------------------------------------------


def test_certificates_may_be_below_the_truth_by_what_optima_are_known_to():
    # The true gap is 0.01: f* = −1 and f = −0.99.
    assert decide("certificate", run(gap=0.01 - 0.9e-10)).verdict == HOLDS
    found = decide("certificate", run(gap=0.01 - 1.1e-10), run(gap=0.02, seed=1))
    assert found.verdict == FAILS
    assert found.numbers["invalid"] == 1
    found = decide("certificate", *(run(gap=gap, seed=seed) for seed, gap in enumerate((0.02, 0.03, 0.09))))
    assert found.numbers == {"invalid": 0, "median factor": pytest.approx(3.0)}


def test_factors_of_certificates_are_taken_where_the_truth_is_known():
    rounding = run(gaps=(1.0, 0.5e-9), gap=1e-9, seed=1)
    above = run(gaps=(1.0, 2e-9), gap=1e-8, seed=2)
    assert decide("certificate", rounding, above).numbers["median factor"] == pytest.approx(5.0, rel=1e-6)
    unknown = decide("certificate", rounding)
    assert unknown.numbers == {"invalid": 0}
    assert unknown.evidence == "0 of 1 certificates are below the truth."
    # An optimum below |f*| = 1 counts relative to itself.
    far = run(optimum=-4.0, value=-3.0, gap=0.5)
    assert decide("certificate", far).numbers["median factor"] == pytest.approx(2.0)


@pytest.mark.parametrize(("passes", "verdict"), [(124, HOLDS), (125, HOLDS), (126, FAILS)])
def test_gradient_iterations_cost_about_a_pass(passes, verdict):
    rows = [run(nit=100, seed=seed) | {"passes": each} for seed, each in enumerate((passes, passes, 300))]
    found = decide("one-pass", *rows)
    assert found.verdict == verdict
    assert found.numbers == {"median": pytest.approx(passes / 100)}
    assert "3.00 at most" in found.evidence


def test_short_runs_say_nothing_of_passes():
    assert decide("one-pass", run(nit=49) | {"passes": 500}).verdict == OPEN
    assert decide("one-pass", run(nit=50) | {"passes": 50}).verdict == HOLDS
    assert decide("one-pass", run(nit=50, method="homcg") | {"passes": 50}).verdict == OPEN


@pytest.mark.parametrize(("nit", "verdict"), [(10, HOLDS), (11, FAILS)])
def test_newton_takes_ten_iterations_at_most(nit, verdict):
    found = decide("newton", run(method="homnewton", nit=nit), run(method="homnewton", nit=3, seed=1))
    assert (found.verdict, found.numbers) == (verdict, {"largest": float(nit)})
    assert decide("newton", run(method="homnewton", nit=nit, success=False)).verdict == OPEN


def against_peers(*ratios):
    """Return runs in which the best peer takes ``ratio`` times the whole call of auto, one instance each."""
    for place, ratio in enumerate(ratios):
        columns = {"group": "peers", "instance": f"i{place}"}
        yield run(method="auto", wall_seconds=2.0, **columns)
        yield run(method="scipy-lbfgs", peer=True, seconds=(0, ratio, 2.0 * ratio), wall_seconds=9.0, **columns)


@pytest.mark.parametrize(
    ("ratios", "verdict", "condition"),
    [
        ((2.0, 1.5), HOLDS, ""),
        ((2.0, 1.0), ONLY, "not for i1"),
        ((0.5, 0.25), FAILS, ""),
        ((1.2, 0.9), ONLY, "not for i1"),
    ],
)
def test_auto_is_faster_where_its_whole_call_is(ratios, verdict, condition):
    found = decide("peers", *against_peers(*ratios))
    assert (found.verdict, found.condition) == (verdict, condition)
    assert found.numbers["least"] == pytest.approx(min(ratios))
    assert found.numbers["geometric mean"] == pytest.approx(math.exp(np.log(ratios).mean()))
    assert found.numbers["wins"] == sum(ratio > 1.0 for ratio in ratios)
    assert decide("peers", *(row for row in against_peers(2.0) if row["peer"])).verdict == OPEN
    assert decide("peers", *(row for row in against_peers(2.0) if not row["peer"])).verdict == OPEN


@pytest.mark.parametrize(
    ("ratios", "verdict", "counts", "condition"),
    [
        ((2.0, 1.6), HOLDS, (2, 0, 0), ""),
        ((2.0, 1.2), ONLY, (1, 1, 0), "not for i1"),
        ((1.51, 1.49, 0.9), ONLY, (1, 2, 0), "not for i1 nor i2"),
        ((1.2, 0.9), FAILS, (0, 2, 0), ""),
        ((0.5,), FAILS, (0, 0, 1), ""),
    ],
)
def test_a_lead_within_the_noise_is_a_tie(ratios, verdict, counts, condition):
    noisy = [
        run(method="auto", group="figure-1a", repeat=repeat, solve_seconds=time)
        for repeat, time in ((0, 1.0), (1, 1.5))
    ]
    found = decide("peers", *against_peers(*ratios), *noisy)
    assert (found.verdict, found.condition) == (verdict, condition)
    assert (found.numbers["wins"], found.numbers["ties"], found.numbers["losses"]) == counts
    assert "the noise floor of 50 %" in found.evidence


# Words and edges ------------------------------------------------------------------------------------------------------


def test_a_run_that_starts_at_zero_has_a_bound_all_the_same():
    rows = run(gaps=(1.0, 0.1), iterations=(0, 5), kappa_bound=2.0, trace_value=[0.0, -0.9])
    found = decide("bound-homgd", rows)
    start = (1e-12) ** -1.5
    bound = 12.0 * math.sqrt(27.0) * 2.0 * (math.log(4.0 * start) + max(delta(0.1) ** -0.5 - 2.0, 0.0))
    assert found.numbers["share of the bound"] == pytest.approx(5 / math.ceil(bound), rel=1e-3)


def test_a_gap_above_rounding_is_held_against_the_bound():
    for gap, counted in ((0.9e-12, False), (1.5e-12, True)):
        rows = run(gaps=(0.5, 0.1, gap), iterations=(0, 1, 10**9), kappa_bound=2.0, trace_value=[-0.5, -0.9, gap - 1.0])
        assert (decide("bound-homgd", rows).verdict == FAILS) == counted


def test_factors_of_certificates_are_the_median_over_all_that_are_sharp():
    rows = run(gaps=(1.0, 1.5e-9), gap=7 * 1.5e-9, seed=1), run(gaps=(1.0, 1e-3), gap=3e-3, seed=2)
    assert decide("certificate", *rows).numbers["median factor"] == pytest.approx(5.0, rel=1e-5)


def test_several_comparisons_are_a_range_and_one_is_a_number():
    alike = [
        falls(cost, method=m, group=g, **ARMIJO)
        for g in ("figure-1a", "figure-1b")
        for m, cost in (("gd", 120), ("homgd", 100))
    ]
    assert "takes 1.2 times the iterations" in decide("gd-homgd", *alike).evidence
    other = [*alike[:2], falls(110, method="gd", group="figure-1b", **ARMIJO), falls(100, group="figure-1b", **ARMIJO)]
    found = decide("gd-homgd", *other)
    assert "takes 1.1 to 1.2 times the iterations" in found.evidence
    assert found.cases[0].startswith("well-conditioned rows (1a): 1.2 (120 against 100 at gap ")


# Lewis weights --------------------------------------------------------------------------------------------------------


def with_weights(name, **parts):
    runs = frame(run())
    runs.attrs["weights"] = parts
    return TESTS[name].decide(runs)


def test_distances_count_down_to_what_the_fixed_point_is_known_to():
    def far(distance):
        return {"instance": "a", "p": 1.5, "sweep": 1, "distance": distance, "corrected": 1e-9, "printed": 1e-9}

    close = far(0.5) | {"corrected": 1.0, "printed": 1.0}
    for name in ("contraction", "contraction-printed"):
        assert with_weights(name, distances=[close, far(0.9e-8)]).verdict == HOLDS
        assert with_weights(name, distances=[close, far(1.1e-8)]).verdict == FAILS


def ended(method, share=1.0, iterations=8, allowed=10.0, p=1.5):
    return {"instance": "a", "method": method, "p": p, "iterations": iterations, "share": share, "allowed": allowed}


def surrogate(omega, share=1.0, iterations=8, allowed=10.0):
    return {"instance": "a", "omega": omega, "iterations": iterations, "share": share, "allowed": allowed}


# e^{−ε}‖x‖² ≤ W(x)^{1/p} ≤ e^ε n^{1−1/p}‖x‖² at ε = 1 %: the quotient of both ends, of which n^{1−1/p} is the best.
QUOTIENT = math.exp(0.01) / math.exp(-0.01)


@pytest.mark.parametrize(("rounding", "verdict"), [(0.9e-9, HOLDS), (1.1e-9, FAILS)])
def test_the_kappa_of_algorithm_3_may_exceed_the_best_by_its_precision_and_rounding(rounding, verdict):
    found = with_weights("stopping", powers=[ended("fixed-point", QUOTIENT + rounding)])
    assert found.verdict == verdict
    assert found.numbers == {"share of the bound": pytest.approx(0.8), "κ": pytest.approx(QUOTIENT)}
    found = with_weights("omega", omegas=[surrogate(3.0, 3.0 * (QUOTIENT + rounding))])
    assert found.verdict == verdict
    assert found.numbers == {"share of the count": pytest.approx(0.8), "κ": pytest.approx(QUOTIENT)}


def test_the_largest_share_of_the_iterations_is_told():
    powers = [ended("fixed-point", iterations=k, allowed=a, p=p) for k, a, p in ((6, 8.0, 1.5), (9, 20.0, 1.8))]
    found = with_weights("stopping", powers=[*powers, ended("auto", share=1.5, iterations=99)])
    assert found.numbers == {"share of the bound": 0.75, "κ": 1.0}
    assert found.evidence.startswith("6 to 9 iterations, at most 0.75 of the bound")
    omegas = [surrogate(1.1, 1.0, 20, 40.0), surrogate(2.0, 1.9, 6, 8.0)]
    found = with_weights("omega", omegas=omegas)
    assert found.numbers == {"share of the count": 0.75, "κ": pytest.approx(0.95)}
    assert found.cases[1] == "a at ω = 2: 6 iterations of 8, κ = 1.9√n"


def ray(gap, off=0.0, printed=1.0, cone="free"):
    return {"instance": "a", "cone": cone, "far": 0.1, "gap": gap, "equality": gap + off, "printed": printed}


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        # a millionth of the gap, where it is large,
        ([ray(0.1, 0.9e-7)], HOLDS),
        ([ray(0.1, -0.9e-7)], HOLDS),
        ([ray(0.1, 1.1e-7)], FAILS),
        ([ray(0.1, -1.1e-7)], FAILS),
        # and 1e-13 of f, where it is small.
        ([ray(1e-9, 0.9e-13)], HOLDS),
        ([ray(1e-9, 1.1e-13)], FAILS),
        ([ray(1e-9, -1.1e-13)], FAILS),
        # The bound that is printed has the same room and no more.
        ([ray(0.1 * (1.0 + 0.9e-6), printed=0.1)], HOLDS),
        ([ray(0.1 * (1.0 + 1.1e-6), printed=0.1)], FAILS),
        ([ray(1e-9 + 0.9e-13, printed=1e-9)], HOLDS),
        ([ray(1e-9 + 1.1e-13, printed=1e-9)], FAILS),
        ([ray(0.1), ray(0.1, 1.1e-7, cone="orthant")], ONLY),
    ],
)
def test_gaps_follow_the_equality_up_to_rounding_and_no_further(rows, verdict):
    assert with_weights("homogenised-gap", homogenised=rows).verdict == verdict


def test_the_equality_of_gaps_is_told_with_what_the_printed_bound_gives_away():
    deltas = (0.01, 1.0)
    rows = [ray(gap(delta), printed=2.0 / 3.0 * delta) for delta in deltas]
    rows[1]["equality"] -= 0.25 * rows[1]["gap"]
    found = with_weights("homogenised-gap", homogenised=rows)
    wide = (2.0 / 3.0) / (1.0 - 2.0 ** (-2.0 / 3.0))
    assert found.numbers == {"difference": pytest.approx(0.25), "least share of ⅔δ": pytest.approx(1.0 / wide)}
    # ⅔δ/(1 − (1 + δ)^{−2/3}) = 1 + ⅚δ + …
    assert found.evidence.endswith(f"differ by at most 0.2 of it; ⅔δ is 1.01 to {wide:.3g} times as large.")
