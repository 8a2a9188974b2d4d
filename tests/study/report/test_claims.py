"""Claims are pure functions of the runs: each verdict from runs that are made for it."""

import json

import numpy as np
import pytest

from quartbench.study.report.claims import CLAIMS, FAILS, HOLDS, ONLY, OPEN, claim, compare, pick, split

from ..frames import frame, run, trivial

TESTS = {claim.name: claim for claim in CLAIMS}


def decide(name, *rows):
    return TESTS[name].decide(frame(*rows))


def falls(cost, **columns):
    """Return a run that reaches gap 0.01 after ``cost`` iterations."""
    return run(gaps=(1.0, 0.1, 0.01), iterations=(0, cost // 2, cost), **columns)


HARD = {"group": "figure-1b", "settings": {"step": "armijo"}}


def test_names_are_unique_and_every_claim_says_where_it_stands():
    assert len(TESTS) == len(CLAIMS)
    for one in CLAIMS:
        assert one.source
        assert one.sentence.endswith(".")
        assert one.test.__doc__


def test_claims_come_in_the_order_of_the_page():
    names = list(TESTS)
    order = [
        "gd-homgd",
        "both-criteria",
        "preconditioning",
        "graphs",
        "bound-homgd",
        "rate-homgd",
        "sweeps",
        "powers",
        "peers",
    ]
    assert [name for name in names if name in order] == order
    assert (names[0], names[-1]) == (order[0], order[-1])


@pytest.mark.parametrize("name", TESTS)
def test_a_claim_without_its_runs_is_not_measured_and_says_which_study_does(name):
    found = decide(name, run(method="stranger", metric="diagonal", optimum=float("nan"), gap=float("nan")))
    assert found.verdict == OPEN
    assert TESTS[name].studies in found.evidence


@pytest.mark.parametrize(("gd", "verdict"), [(110, HOLDS), (90, HOLDS), (200, FAILS), (40, FAILS)])
def test_gd_and_homgd_are_similar_within_a_factor(gd, verdict):
    found = decide("gd-homgd", falls(gd, method="gd", **HARD), falls(100, **HARD))
    assert found.verdict == verdict
    assert found.numbers == {"ill-conditioned rows (1b)": pytest.approx(gd / 100)}


def test_restarts_that_help_on_one_figure_only_hold_only_when():
    def both(group, without):
        for cost, restart in ((without, "none"), (100, "scheduled")):
            yield falls(cost, method="accel-homgd", settings={"restart": restart, "step": "armijo"}, group=group)

    found = decide("restarts", *both("figure-1a", 100), *both("figure-1b", 300))
    assert found.verdict == ONLY
    assert "(1b)" in found.condition
    assert "(1a)" not in found.condition


@pytest.mark.parametrize(
    ("generic", "degenerate", "verdict"), [(300, 300, HOLDS), (300, 40, ONLY), (100, 40, FAILS), (None, 40, FAILS)]
)
def test_restarts_are_judged_on_generic_and_on_degenerate_rows(generic, degenerate, verdict):
    found = decide(
        "restarts", *restarted("figure-1b", none=generic), *restarted("rates", none=degenerate, step="fixed")
    )
    assert found.verdict == verdict
    assert found.numbers["degenerate rows with fixed steps"] == degenerate / 100
    assert ("degenerate" in found.condition) is False or verdict == ONLY


def restarted(group, step="armijo", scheduled=100, **costs):
    for restart, cost in {"scheduled": scheduled, **costs}.items():
        if cost is not None:
            yield falls(cost, method="accel-homgd", settings={"restart": restart, "step": step}, group=group)


@pytest.mark.parametrize(("generic", "degenerate", "verdict"), [(60, 50, HOLDS), (60, 100, ONLY), (100, 100, FAILS)])
def test_adaptive_restarts_are_held_against_the_better_of_the_other_two(generic, degenerate, verdict):
    found = decide(
        "adaptive-restarts",
        *restarted("figure-1b", scheduled=50, none=300, adaptive=generic),
        *restarted("rates", none=50, scheduled=300, adaptive=degenerate, step="fixed"),
    )
    assert found.verdict == verdict
    assert found.numbers == {
        "generic, ill-conditioned rows (1b) with Armijo's rule": generic / 50,
        "degenerate rows with fixed steps": degenerate / 50,
    }


def powers(exponent, method, spread=0.0, seeds=4, **settings):
    """Return runs on degenerate rows whose gap is k to a power, which spreads over the seeds."""
    k = np.unique(np.geomspace(1, 10_000, 80).round())
    for seed in range(seeds):
        gaps = 0.1 * k ** (exponent + spread * (seed - (seeds - 1) / 2))
        yield run(
            gaps=(1.0, *gaps),
            iterations=(0, *k),
            method=method,
            group="rates",
            seed=seed,
            settings={"step": "armijo", **settings},
        )


@pytest.mark.parametrize(
    ("claimed", "method", "theory"), [("rate-homgd", "homgd", -2), ("rate-accelerated", "accel-homgd", -4)]
)
def test_exponents_are_held_against_those_of_the_abstract(claimed, method, theory):
    for exponent, verdict in ((theory, HOLDS), (theory - 0.5, HOLDS), (theory + 0.06, HOLDS), (theory + 0.5, FAILS)):
        found = decide(claimed, *powers(exponent, method, spread=0.01, restart="scheduled"))
        assert found.verdict == verdict
        assert [*found.numbers.values()] == [pytest.approx(exponent, abs=0.01)]
    slow = (row | {"instance": "other"} for row in powers(theory + 0.5, method, restart="scheduled"))
    assert decide(claimed, *powers(theory, method, restart="scheduled"), *slow).verdict == ONLY
    wide = decide(claimed, *powers(theory, method, spread=1.0, restart="scheduled"))
    assert wide.verdict == OPEN
    assert "more seeds" in wide.evidence
    assert decide(claimed, *powers(theory, method, seeds=1, restart="scheduled")).verdict == OPEN


def test_the_rate_of_algorithm_2_is_that_of_its_schedule():
    assert decide("rate-accelerated", *powers(-1, "accel-homgd", restart="none")).verdict == OPEN


def coherent(low, high, **columns):
    for group, ratio in (("figure-2a", low), ("figure-2b", high)):
        for metric, cost in (("uniform", 100 * ratio), ("lewis", 100)):
            yield falls(int(cost), metric=metric, group=group, instance=group, settings={"step": "armijo"}, **columns)


@pytest.mark.parametrize(("low", "high", "verdict"), [(1.0, 5.0, HOLDS), (1.0, 1.0, FAILS), (3.0, 5.0, FAILS)])
def test_lewis_beats_uniform_at_high_coherence_only(low, high, verdict):
    assert decide("coherence", *coherent(low, high)).verdict == verdict


def test_keys_are_those_of_the_runs_compared():
    found = decide(
        "gd-homgd",
        falls(1000, method="gd", key="gd", **HARD),
        falls(100, key="h", **HARD),
        falls(1, method="homcg", key="other", **HARD),
    )
    assert sorted(found.keys) == ["gd", "h"]


@pytest.mark.parametrize(("kappa", "verdict"), [(3.0, HOLDS), (4.0, FAILS)])
def test_the_measured_kappa_of_lewis_is_held_against_the_root_of_n(kappa, verdict):
    assert decide("kappa-lewis", run(metric="lewis", kappa_measured=kappa, n=10)).verdict == verdict
    assert decide("kappa-lewis", run(metric="lewis", kappa_bound=kappa, n=10)).verdict == OPEN


@pytest.mark.parametrize(("kappa", "verdict"), [(4.0, HOLDS), (4.1, FAILS)])
def test_the_measured_kappa_of_uniform_is_held_against_its_bound(kappa, verdict):
    # √(mγ) = √(20·0.8) = 4
    assert decide("kappa-uniform", run(metric="uniform", kappa_measured=kappa, coherence=0.8)).verdict == verdict


@pytest.mark.parametrize(
    ("kappa", "sum_of_terms", "with_coherence"), [(400, HOLDS, HOLDS), (420, HOLDS, FAILS), (450, FAILS, FAILS)]
)
def test_the_measured_kappa_of_identity_is_held_against_both_bounds(kappa, sum_of_terms, with_coherence):
    # (σ_max/σ_min)² = 100; √(mγ) = 4 and √m = 4.47
    rows = run(kappa_measured=kappa, coherence=0.8, arguments={"sigma_min": 0.1})
    assert decide("kappa-terms", rows).verdict == sum_of_terms
    assert decide("kappa-identity", rows).verdict == with_coherence
    assert decide("kappa-terms", run(kappa_measured=kappa)).verdict == OPEN


@pytest.mark.parametrize(("kappa", "verdict"), [(2.0, HOLDS), (2.1, FAILS), (1.9, FAILS)])
def test_the_kappa_of_symmetric_nmf_is_the_root_of_r_and_attained(kappa, verdict):
    rows = run(kappa_measured=kappa, r=4, generator="planted_partition")
    assert decide("kappa-symnmf", rows).verdict == verdict
    assert decide("kappa-symnmf", rows | {"generator": "spectrum"}).verdict == OPEN


@pytest.mark.parametrize(
    ("generator", "gamma", "verdict"),
    [
        ("barbell", 1.0, HOLDS),
        ("barbell", 0.9, FAILS),
        ("ring", 0.5, HOLDS),
        ("ring", 1.0, FAILS),
        ("geometric", 1.0, HOLDS),
        ("geometric", 0.3, FAILS),
        ("geometric", 1.1, FAILS),
    ],
)
def test_the_coherence_of_graphs_lies_between_its_ends_and_knows_bridges(generator, gamma, verdict):
    # N = 30/3 = 10 vertices and 20 edges: γ ≥ 9/20
    graph = run(cone="centred", generator=generator, instance=generator, coherence=gamma, m=20, n=30, r=3)
    assert decide("graph-coherence", graph).verdict == verdict
    other = run(cone="centred", generator="regular", instance="another", coherence=0.5, m=20, n=30, r=3)
    assert decide("graph-coherence", graph, other).verdict == (HOLDS if verdict == HOLDS else ONLY)


@pytest.mark.parametrize(("slow", "verdict"), [(1, HOLDS), (100_000, FAILS)])
def test_iterations_are_held_against_the_bound_of_the_theorem(slow, verdict):
    rows = run(gaps=(0.5, 0.1, 1e-3), iterations=(0, 10 * slow, 100 * slow), kappa_bound=2.0)
    found = decide("bound-homgd", rows)
    assert found.verdict == verdict
    # δ = (1 − 10⁻³)^{−3/2} − 1 and 12√27·2·(ln 4δ₀ + δ^{−1/2} − 2) iterations are allowed for it.
    delta, start = (1 - 1e-3) ** -1.5 - 1, 0.5**-1.5 - 1
    allowed = np.ceil(12 * np.sqrt(27) * 2 * (np.log(4 * start) + delta**-0.5 - 2))
    first = (1 - 0.1) ** -1.5 - 1
    early = np.ceil(12 * np.sqrt(27) * 2 * (np.log(4 * start) + max(first**-0.5 - 2, 0)))
    assert found.numbers["share of the bound"] == pytest.approx(max(100 * slow / allowed, 10 * slow / early))


@pytest.mark.parametrize(("exponent", "verdict"), [(1.0, HOLDS), (0.3, HOLDS), (1.6, FAILS)])
def test_growth_significantly_above_the_theory_refutes_it(exponent, verdict):
    rows = (
        falls(int(10 * k**exponent), group="scaling-kappa", instance=str(k), kappa_bound=float(k))
        for k in (10, 40, 160, 640)
    )
    assert decide("kappa-iterations", *rows).verdict == verdict


def test_growth_that_is_all_noise_is_not_decided():
    wild = zip((10, 40, 160), (10, 1000, 20), strict=True)
    rows = (falls(c, group="scaling-kappa", instance=str(k), kappa_bound=float(k)) for k, c in wild)
    found = decide("kappa-iterations", *rows)
    assert found.verdict == OPEN
    assert "too wide" in found.evidence


def test_a_certificate_below_the_truth_is_found():
    assert decide("certificate", run(gap=0.02)).verdict == HOLDS
    assert decide("certificate", run(gap=0.02), run(gap=1e-6, solver="liar")).verdict == FAILS
    assert "is 2 times the true one in the median" in decide("certificate", run(gap=0.02)).evidence
    assert "is the true one to two digits in the median" in decide("certificate", run(gap=0.01)).evidence


def fixed(cost, method="homgd", **settings):
    return falls(cost, method=method, group="fixed-steps", metric="lewis", settings={"step": "fixed", **settings})


@pytest.mark.parametrize(("near", "far", "verdict"), [(200, 3200, HOLDS), (100, 1600, ONLY), (100, 100, FAILS)])
def test_fixed_steps_of_a_ball_are_held_against_those_that_need_none(near, far, verdict):
    found = decide("fixed-steps", fixed(100), fixed(near, "gd", radius=1.0), fixed(far, "gd", radius=4.0))
    assert found.verdict == verdict
    assert [*found.numbers.values()] == [near / 100, far / 100]
    assert decide("fixed-steps", fixed(100)).verdict == OPEN


def test_accelerated_steps_of_a_ball_are_held_against_algorithm_2():
    rows = fixed(50, "accel-homgd", restart="scheduled"), fixed(10, "accel-homgd", restart="none")
    found = decide("fixed-steps", fixed(100), *rows, fixed(200, "agd", radius=1.0))
    assert found.numbers == {"accelerated GD in 1 times the ball of the level set": 4.0}


def test_fixed_steps_of_homgd_that_end_higher_refute_it():
    higher = run(gaps=(0.01, 0.5), group="fixed-steps", metric="lewis", settings={"step": "fixed"}, seed=1)
    rows = fixed(100), fixed(1000, "gd", radius=1.0)
    assert decide("fixed-steps", *rows).verdict == HOLDS
    assert decide("fixed-steps", *rows, higher).verdict == FAILS


@pytest.mark.parametrize(("gd", "bregman", "verdict"), [(500, 300, HOLDS), (500, 110, ONLY), (100, 110, FAILS)])
def test_fixed_steps_and_acceleration_together(gd, bregman, verdict):
    rows = [
        fixed(100, "accel-homgd", restart="scheduled"),
        fixed(gd, "gd", radius=1.0),
        fixed(bregman, "bregman", kernel="quartic"),
    ]
    found = decide("both-criteria", *rows)
    assert found.verdict == verdict
    assert found.numbers == {"GD": gd / 100, "Bregman, quartic kernel": bregman / 100}
    more = decide("both-criteria", *rows, fixed(250, "agd", radius=1.0))
    assert more.numbers["acceleration in the ball"] == gd / 250
    assert decide("both-criteria", rows[0]).verdict == OPEN


@pytest.mark.parametrize(("count", "verdict"), [(400, HOLDS), (402, FAILS)])
def test_bregman_descent_is_held_against_kappa_squared_over_k(count, verdict):
    settings = {"kernel": "quartic", "step": "fixed"}
    rows = run(gaps=(0.5, 0.01), iterations=(0, count), kappa_bound=2.0, method="bregman", settings=settings)
    assert decide("bound-bregman", rows).verdict == verdict
    assert decide("bound-bregman", rows | {"settings": '{"kernel": "quartic", "step": "adaptive"}'}).verdict == OPEN


def test_comparison_is_at_the_tightest_gap_that_both_reach_on_every_cell():
    fast = frame(run(gaps=(1.0, 0.1, 1e-3, 1e-5), iterations=(0, 1, 2, 3)))
    slow = frame(run(gaps=(1.0, 0.1, 1e-3), iterations=(0, 5, 20), solver="slow"))
    found = compare(slow, fast)
    assert found.gap == pytest.approx(1e-3)
    assert (found.first, found.second, found.ratio) == (20.0, 2.0, 10.0)
    assert compare(slow, frame(run(instance="elsewhere"))) is None


def test_broken_runs_are_no_evidence():
    rows = falls(1, method="gd", status="failed", **HARD), falls(100, **HARD)
    assert decide("gd-homgd", *rows).verdict == OPEN


@pytest.mark.parametrize("name", sorted(TESTS.keys() - {"coherence-range"}))  # that one is of instances, not of runs
def test_runs_on_trivial_problems_are_no_evidence(name):
    methods = ("gd", "homgd", "accel-homgd", "homnewton")
    groups = ("figure-1b", "figure-2b", "scaling-kappa")
    settings = ('{"step": "fixed", "restart": "scheduled"}', '{"step": "armijo", "restart": "none"}')
    known = {"kappa_bound": 2.0, "kappa_measured": 2.0, "coherence": 0.8, "sweeps": 3}
    rows = [
        trivial(method=method, solver=method, metric=metric, metric_asked=metric, group=group, settings=given, **known)
        for method in methods
        for metric in ("identity", "uniform", "lewis")
        for group in groups
        for given in settings
    ]
    assert decide(name, *rows).verdict == OPEN


def test_split_names_the_shorter_side():
    assert split({"x": True, "y": True}) == (HOLDS, "")
    assert split({"x": False}) == (FAILS, "")
    assert split({"x": np.bool_(False)}) == (FAILS, "")  # which is not the False of Python
    assert split({"x": True, "y": False, "z": False}) == (ONLY, "for x")
    assert split({"x": True, "y": True, "z": False}) == (ONLY, "not for z")


def test_a_new_claim_takes_its_place_in_the_list():
    before = len(CLAIMS)
    try:
        claim("mine", "§9", "It holds.", "quick")(lambda runs: None)
        assert CLAIMS[-1].decide(frame(run())).verdict == OPEN
    finally:
        del CLAIMS[before:]


def test_settings_tell_variants_of_a_method_apart():
    runs = frame(run(settings={"restart": "none"}), run(settings={"restart": "adaptive"}, solver="b"))
    assert [json.loads(text)["restart"] for text in pick(runs, "homgd", restart="none").settings] == ["none"]


# Lewis weights --------------------------------------------------------------------------------------------------------


def with_weights(name, **parts):
    runs = frame(run())
    runs.attrs["weights"] = parts
    return TESTS[name].decide(runs)


def distances(*shares):
    """Return an iterate for each power, whose distance is a share of the corrected bound, twice that of the printed."""
    rows = enumerate(shares)
    return [
        {"instance": "a", "p": 1.2 + k / 10, "sweep": 1, "distance": s, "corrected": 1.0, "printed": 0.5}
        for k, s in rows
    ]


@pytest.mark.parametrize(
    ("shares", "printed", "corrected"),
    [((0.4, 0.5), HOLDS, HOLDS), ((0.4, 0.8), FAILS, HOLDS), ((0.8, 0.9), FAILS, HOLDS), ((1.1, 1.2), FAILS, FAILS)],
)
def test_iterates_of_algorithm_3_are_held_against_both_rates(shares, printed, corrected):
    assert with_weights("contraction-printed", distances=distances(*shares)).verdict == printed
    found = with_weights("contraction", distances=distances(*shares))
    assert found.verdict == corrected
    assert [*found.numbers.values()] == list(shares)


def ended(method, share=1.0, **columns):
    return {"instance": "a", "method": method, "p": 1.5, "iterations": 8, "share": share, "allowed": 10.0} | columns


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([ended("fixed-point")], HOLDS),
        ([ended("fixed-point", iterations=11)], FAILS),
        ([ended("fixed-point", share=1.03)], FAILS),
        ([ended("fixed-point"), ended("fixed-point", iterations=11, p=1.8)], ONLY),
    ],
)
def test_algorithm_3_is_held_against_its_stopping_rule(rows, verdict):
    assert with_weights("stopping", powers=rows).verdict == verdict


@pytest.mark.parametrize(("shares", "verdict"), [((1.0, 1.009), HOLDS), ((1.0, 1.02), ONLY), ((1.02, 1.02), FAILS)])
def test_every_power_has_its_norm(shares, verdict):
    rows = [ended("auto", share, p=p) for p, share in zip((1.5, 3.0), shares, strict=True)]
    assert with_weights("powers", powers=rows).verdict == verdict


def test_what_the_record_does_not_hold_is_left_open():
    assert with_weights("contraction", distances=distances(1e-9)).verdict == OPEN  # no distance that is known
    assert with_weights("stopping", powers=[ended("auto")]).verdict == OPEN
    assert with_weights("powers", powers=[ended("fixed-point")]).verdict == OPEN


def surrogate(omega, iterations=8, share=1.0, allowed=10.0):
    return {"instance": "a", "omega": omega, "iterations": iterations, "share": share, "allowed": allowed}


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([surrogate(1.1), surrogate(2.0, share=1.9)], HOLDS),
        ([surrogate(1.1), surrogate(2.0, iterations=11)], ONLY),
        ([surrogate(1.1, share=1.2), surrogate(2.0, iterations=11)], FAILS),
    ],
)
def test_the_surrogate_is_held_against_the_count_of_its_factor(rows, verdict):
    found = with_weights("omega", omegas=rows)
    assert found.verdict == verdict
    assert len(found.cases) == 2


def ray(gap, equality=None, printed=None, cone="free"):
    return {
        "instance": "a",
        "cone": cone,
        "far": 0.1,
        "gap": gap,
        "equality": equality or gap,
        "printed": printed or 1.0,
    }


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([ray(0.1), ray(1e-9, 1e-9 + 5e-14)], HOLDS),
        ([ray(0.1), ray(0.1, 0.1001, cone="orthant")], ONLY),
        ([ray(0.1, 0.0999)], FAILS),
        ([ray(0.1, printed=0.09)], FAILS),
    ],
)
def test_gaps_are_held_against_the_equality_of_the_proposition_and_its_bound(rows, verdict):
    assert with_weights("homogenised-gap", homogenised=rows).verdict == verdict


# Claims of several cases, of which some hold --------------------------------------------------------------------------


def test_gd_and_homgd_may_be_similar_on_one_figure_alone():
    easy = {"group": "figure-1a", "settings": {"step": "armijo"}}
    rows = falls(100, method="gd", **easy), falls(100, **easy), falls(300, method="gd", **HARD), falls(100, **HARD)
    found = decide("gd-homgd", *rows)
    assert (found.verdict, found.condition) == (ONLY, "for well-conditioned rows (1a)")


def test_metrics_may_pay_on_some_instances_alone():
    def rows(group, instance, **costs):
        settings = {"step": "armijo"}
        return [falls(costs[name], metric=name, group=group, instance=instance, settings=settings) for name in costs]

    found = decide(
        "preconditioning",
        *rows("figure-2a", "a", identity=300, uniform=100, lewis=100),
        *rows("figure-2b", "b", identity=300, uniform=300, lewis=100),
    )
    assert found.verdict == ONLY
    assert "uniform on b" in found.condition
    found = decide(
        "coherence",
        *rows("figure-2a", "a", uniform=100, lewis=100),
        *rows("figure-2b", "b", uniform=300, lewis=100),
        *rows("figure-2b", "c", uniform=100, lewis=100),
    )
    assert found.verdict == ONLY
    assert "b with" in found.condition or "c with" in found.condition


@pytest.mark.parametrize(
    ("name", "group", "quantity"),
    [("kappa-iterations", "scaling-kappa", "kappa_bound"), ("gamma-iterations", "scaling-coherence", "coherence")],
)
def test_iterations_may_grow_too_fast_for_one_method_alone(name, group, quantity):
    metric = "identity" if quantity == "kappa_bound" else "uniform"
    rows = [
        falls(round(400 * k**power), group=group, method=method, metric=metric, instance=str(k), **{quantity: float(k)})
        for k in (16, 64, 256, 1024)
        for method, power in (("homgd", 0.4), ("accel-homgd", 0.9))
    ]
    assert decide(name, *rows).verdict == ONLY


@pytest.mark.parametrize(("in_m", "in_n", "verdict"), [(1.0, 2.0, HOLDS), (1.0, 2.5, ONLY), (1.4, 2.5, FAILS)])
def test_the_time_of_weights_is_held_against_its_order(in_m, in_n, verdict):
    def rows(axis, power):
        for k in (100, 400, 1600, 6400):
            columns = {"m": 6400, "n": 10} | {axis: k}
            seconds = 1e-6 * float(k) ** power
            yield run(group=f"scaling-{axis}", metric="lewis", instance=f"{axis} {k}", setup_seconds=seconds, **columns)

    assert decide("complexity", *rows("m", in_m), *rows("n", in_n)).verdict == verdict
