"""Recoveries in the report: what claims, curves, answers and tables make of runs that are written down."""

import json

import numpy as np
import pytest

from quartbench.study import outcomes, store
from quartbench.study.report import applications, tables, write
from quartbench.study.report.claims import CLAIMS, FAILS, HOLDS, ONLY, OPEN

from ..frames import frame, run

TESTS = {claim.name: claim for claim in CLAIMS}


def recovery(values=(100.0, 1.0, 1e-8), method="dc", application="phase", **columns):
    """Return a recovery whose F falls through ``values``, ‖d‖ = 10: two passes and a second a step unless given."""
    steps = list(range(len(values)))
    row = run(gaps=[float("nan")] * len(values), iterations=steps, passes=[2 * step for step in steps], method=method)
    row |= {
        "application": application,
        "group": "recovery-costs",
        "instance": "phase-gaussian n=8 m/n=6",
        "generator": "phase_gaussian",
        "arguments": json.dumps({"n": 8, "ratio": 6.0, "noise": 0.0}),
        "metric": "auto",
        "metric_asked": "auto",
        "optimum": float("nan"),
        "status": "fitted",
        "value": values[-1],
        "residual": values[-1] ** 0.5 / 10.0,
        "error": 1e-5,
        "nit": len(values) - 1,
        "passes": 2 * len(values) - 2,
        "start_passes": 3,
        "setup_seconds": 0.5,
        "solve_seconds": float(len(values) - 1),
        "wall_seconds": len(values) - 0.5,
        "trace_value": list(values),
        "gap": float("nan"),
    }
    return row | {"solver": method} | columns


def decide(name, *rows):
    return TESTS[name].decide(frame(*rows))


# Claims ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("second", "verdict"), [(1.0, HOLDS), (100.0, HOLDS), (100.0 + 1e-13, HOLDS), (101.0, FAILS)])
def test_f_must_fall_at_every_step_of_dc(second, verdict):
    fine = recovery(seed=1)
    assert decide("dc-monotone", recovery((100.0, second, 0.5)), fine).verdict == verdict
    assert decide("dc-monotone", recovery((100.0, second, 0.5), method="dc-accelerated"), fine).verdict == verdict
    assert decide("dc-monotone", recovery((1.0, 5.0, 0.1), method="wirtinger")).verdict == OPEN


@pytest.mark.parametrize(("rise", "verdict"), [(0.9e-11, HOLDS), (1.1e-11, FAILS)])
def test_f_may_rise_by_what_extrapolated_images_are_exact_to(rise, verdict):
    # relative to ‖d‖² = 100
    found = decide("dc-monotone", recovery((50.0, 40.0, 40.0 + 100.0 * rise, 1.0)))
    assert found.verdict == verdict
    assert found.numbers == {"largest rise": pytest.approx(rise, rel=1e-3)}
    assert ("never rises beyond rounding" in found.evidence) == (verdict == HOLDS)


def test_the_largest_rise_of_f_is_told():
    found = decide("dc-monotone", recovery((50.0, 40.0, 65.0, 1.0)), recovery((50.0, 60.0), seed=1))
    assert found.numbers == {"largest rise": pytest.approx(0.25)}
    assert found.evidence == "Over 2 runs and 4 steps F rises by up to 0.25‖d‖²."
    # Where it ends at 0, ‖d‖ is not known, and F counts relative to the first.
    exact = decide("dc-monotone", recovery((50.0, 10.0, 20.0, 0.0)))
    assert (exact.verdict, exact.numbers) == (FAILS, {"largest rise": pytest.approx(0.2)})


def accuracy(share, steps, passes, **columns):
    row = recovery(group="dc-accuracy", settings=json.dumps({"accuracy": share}), **columns)
    return row | {"solver": f"dc accuracy={share}", "trace_iteration": [0, 1, steps], "trace_passes": [0, 1, passes]}


@pytest.mark.parametrize(
    ("steps", "passes", "verdict"), [(10, 60, HOLDS), (12, 60, HOLDS), (20, 60, FAILS), (10, 150, FAILS)]
)
def test_rough_steps_must_be_as_many_and_cheaper(steps, passes, verdict):
    found = decide("dc-accuracy", accuracy(0.1, steps, passes), accuracy(0.001, 10, 100))
    assert found.verdict == verdict
    assert sorted(found.numbers.values()) == sorted([steps / 10, passes / 100])
    assert decide("dc-accuracy", accuracy(0.1, 10, 60)).verdict == OPEN


def test_accuracies_are_compared_at_the_least_f_that_both_reached():
    rough = accuracy(0.1, 10, 60) | {"trace_value": [100.0, 1.0, 0.5], "value": 0.5}
    found = decide("dc-accuracy", rough, accuracy(0.001, 10, 100) | {"trace_value": [100.0, 0.5, 1e-8]})
    assert found.numbers["steps on phase-gaussian n=8 m/n=6"] == 10.0, "ten steps to F = 0.5 against one"


def test_accuracies_are_compared_where_both_took_steps_and_passes():
    # Its stages before left the one at the least F of the other: it took passes to it, and no step of the last.
    there = accuracy(0.1, 10, 60) | {"trace_value": [0.5, 0.4, 0.3], "trace_passes": [7, 8, 9], "value": 0.3}
    other = accuracy(0.001, 10, 100) | {"trace_value": [100.0, 1.0, 0.5], "value": 0.5}
    assert decide("dc-accuracy", there, other).verdict == OPEN


@pytest.mark.parametrize(("steps", "passes", "verdict"), [(124, 999, HOLDS), (126, 999, FAILS), (100, 1001, FAILS)])
def test_rough_steps_may_be_a_quarter_more_and_no_dearer(steps, passes, verdict):
    assert decide("dc-accuracy", accuracy(0.1, steps, passes), accuracy(0.001, 100, 1000)).verdict == verdict


def metrics(instance, uniform, lewis, solver="dc", names=("uniform", "lewis")):
    for metric, passes in zip(names, (uniform, lewis), strict=True):
        row = recovery(group="dc-metrics", instance=instance, metric=metric, metric_asked=metric, solver=solver)
        yield row | {"trace_passes": [0, 1, passes]}


@pytest.mark.parametrize(
    ("bridge", "heavy", "verdict"), [(200, 300, HOLDS), (200, 100, ONLY), (110, 100, FAILS), (50, 60, FAILS)]
)
def test_the_lewis_metric_must_save_passes_where_terms_are_uneven(bridge, heavy, verdict):
    even = metrics("distances-near N=200", 100, 100)
    rows = [*metrics("distances-clouds N=200", bridge, 100), *metrics("phase-masks heavy", heavy, 100), *even]
    found = decide("dc-metric", *rows)
    assert found.verdict == verdict
    assert len(found.cases) == 3, "the even ones are shown beside them"
    assert decide("dc-metric", *metrics("distances-near N=200", 300, 100)).verdict == OPEN


def test_the_condition_names_the_solvers_and_where_none_gains():
    rows = [
        *metrics("distances-bridge N=200", 300, 100, "dc solver=homgd"),
        *metrics("distances-bridge N=200", 100, 100, "dc solver=homnewton-cg"),
        *metrics("distances-clouds N=20", 300, 100, "dc solver=homgd"),
        *metrics("phase-masks heavy", 100, 100, "dc solver=homgd"),
    ]
    assert decide("dc-metric", *rows).condition == (
        "with homgd on distances-bridge N=200, distances-clouds N=20; not on phase-masks heavy"
    )


@pytest.mark.parametrize(("passes", "verdict"), [(1240, FAILS), (1260, HOLDS)])
def test_a_metric_saves_passes_beyond_a_quarter(passes, verdict):
    found = decide("dc-metric", *metrics("distances-bridge N=200", passes, 1000))
    assert (found.verdict, found.condition) == (verdict, "")


@pytest.mark.parametrize(("identity", "verdict"), [(2000, HOLDS), (110, FAILS)])
def test_the_euclidean_norm_is_held_against_a_metric_where_places_are_dark(identity, verdict):
    names = ("identity", "uniform")
    rows = [*metrics("phase-masks heavy", identity, 100, names=names), *metrics("light", 100, 100, names=names)]
    found = decide("dc-norm", *rows)
    assert found.verdict == verdict
    assert len(found.cases) == 2
    assert decide("dc-norm", *metrics("phase-masks heavy", 200, 100)).verdict == OPEN


@pytest.mark.parametrize(("first", "second", "verdict"), [(2.0, 3.0, HOLDS), (2.0, 0.5, ONLY), (0.9, 0.5, FAILS)])
def test_auto_must_be_faster_than_the_best_peer_from_the_same_start(first, second, verdict):
    rows = []
    for instance, time in (("first", first), ("second", second)):
        for method, last, peer in (("auto", 1.0, False), ("scipy-lbfgs", time, True), ("wirtinger", 9.0, True)):
            seconds = [0.0, 0.1, last]
            rows.append(recovery(method=method, peer=peer, instance=instance, trace_seconds=seconds))
    found = decide("recovery-peers", *rows)
    assert found.verdict == verdict
    assert found.numbers["least"] == min(first, second)
    assert found.condition == ("not for second" if verdict == ONLY else "")
    assert found.cases[0] == f"first: {first:g} (scipy-lbfgs {first:g} s, auto 1 s)"


@pytest.mark.parametrize(("time", "won"), [(1.01, 1), (1.0, 0), (0.99, 0)])
def test_auto_is_faster_than_a_peer_that_takes_longer(time, won):
    rows = [
        recovery(method=method, peer=method != "auto", instance=instance, trace_seconds=[0.0, 0.1, last])
        for instance, theirs in (("first", 1.5), ("second", time))
        for method, last in (("auto", 1.0), ("scipy-lbfgs", theirs))
    ]
    found = decide("recovery-peers", *rows)
    assert (found.verdict, found.condition) == ((HOLDS, "") if won else (ONLY, "not for second"))
    assert found.evidence.startswith(f"auto is faster on {1 + won} of 2 instances: ")


def test_a_peer_that_never_fits_the_data_is_beaten():
    rows = [recovery(method="auto"), recovery((100.0, 50.0), method="scipy-lbfgs", peer=True)]
    found = decide("recovery-peers", *rows)
    assert found.verdict == HOLDS
    assert found.evidence == "auto is faster on 1 of 1 instances."
    assert found.cases == ("phase-gaussian n=8 m/n=6: no peer gets there, auto takes 2 s",)
    rows += [recovery((100.0, 50.0), method=row["method"], peer=row["peer"], instance="hard") for row in rows]
    assert decide("recovery-peers", *rows).cases[1] == "hard: no peer gets there, nor does auto"


# Outcomes -------------------------------------------------------------------------------------------------------------


def test_costs_to_a_residual_are_read_off_the_trace():
    (one,) = frame(recovery((100.0, 1.0, 1e-6, 1e-8))).itertuples()
    np.testing.assert_allclose(outcomes.residuals(one), [1.0, 0.1, 1e-4, 1e-5])
    assert outcomes.to_residual(one, 1.001e-4, "passes") == 4.0
    assert outcomes.to_residual(one, 0.2, "steps") == 1.0
    assert outcomes.to_residual(one, 1e-6, "passes") == np.inf
    assert outcomes.to_value(one, 1.0, "seconds") == 1.0
    (exact,) = frame(recovery((100.0, 1.0, 0.0))).itertuples()
    assert outcomes.to_residual(exact, 1e-4, "steps") == 2.0
    assert decide("dc-monotone", recovery((100.0, 1.0, 0.0))).verdict == HOLDS


def test_a_seed_counts_once_however_often_it_is_repeated():
    rows = [recovery(seed=0, repeat=0), recovery(seed=0, repeat=1), recovery(seed=1, success=False, error=0.5)]
    (found,) = outcomes.outcomes(frame(*rows)).itertuples()
    assert (found.recovered, found.seeds, found.passes, found.start_passes) == (1, 2, 4, 3)
    assert found.error == pytest.approx((1e-5 + 0.5) / 2)


def grid(method, won, **columns):
    """Return runs over three ratios and two seeds; ``won`` says how many seeds were recovered at each."""
    for ratio, count in zip((2.0, 3.0, 4.0), won, strict=True):
        for seed in (0, 1):
            good = seed < count
            arguments = json.dumps({"n": 8, "ratio": ratio, "noise": 0.0})
            row = recovery(method=method, seed=seed, success=good, error=1e-6 if good else 0.5, **columns)
            yield row | {"group": "phase-measurements", "instance": f"phase m/n={ratio:g}", "arguments": arguments}


def test_success_is_drawn_against_measurements_and_put_into_words():
    runs = frame(*grid("auto", (0, 2, 2)), *grid("wirtinger", (0, 1, 1)), *grid("dc", (1, 2, 2)))
    (part,) = applications.parts(runs)
    assert part.question.endswith("?")
    assert part.answer[0] == (
        "Every signal of 2 seeds is recovered by auto and dc from m/n = 3 on; by wirtinger nowhere."
    )
    shares = {series.name: series.y.tolist() for series in part.figures[0].panels[0].series}
    assert shares == {"auto": [0.0, 1.0, 1.0], "wirtinger": [0.0, 0.5, 0.5], "dc": [0.5, 1.0, 1.0]}
    cost = {series.name: (series.x.tolist(), series.y.tolist()) for series in part.figures[0].panels[1].series}
    assert cost["auto"] == ([3.0, 4.0], [7.0, 7.0]), "passes with the start, of what was recovered"
    row = next(row for row in part.tables[0].rows if row[1].text == "wirtinger" and row[0].text.endswith("=3"))
    assert (row[2].text, len(row[2].keys)) == ("1/2", 2)


def test_noise_is_drawn_in_decibels():
    rows = [
        recovery(method="auto", error=noise / 2, group="phase-noise", arguments=json.dumps({"noise": noise}))
        for noise in (0.1, 0.001)
    ]
    (part,) = applications.parts(frame(*rows))
    (series,) = part.figures[0].panels[0].series
    np.testing.assert_allclose(series.x, [60.0, 20.0])
    np.testing.assert_allclose(series.y, [5e-4, 5e-2])
    assert "0.05 at 20 dB" in part.answer[0]
    assert "'noise' has the error: of one seed." in part.figures[0].caption
    (part,) = applications.parts(frame(*rows, *(row | {"seed": 1} for row in rows)))
    assert "'noise' has the error: the median over 2 seeds, the band is all of them." in part.figures[0].caption


def test_the_price_of_dc_is_said_as_it_is():
    rows = [
        recovery(method="auto", trace_seconds=[0.0, 0.1, 1.0]),
        recovery(method="scipy-lbfgs", peer=True, trace_seconds=[0.0, 0.1, 2.0]),
        recovery(method="dc", trace_passes=[0, 1, 40], trace_seconds=[0.0, 1.0, 30.0]),
    ]
    (part,) = applications.parts(frame(*rows))
    assert "takes 10 times the passes of that peer, and 30 times the seconds of auto" in part.answer[1]
    texts = [cell.text for cell in part.tables[0].rows[0]]
    assert texts[3] == "scipy-lbfgs"
    assert texts[-1] == "10"
    rows[2] |= {"trace_value": [100.0, 90.0, 80.0], "value": 80.0, "residual": 0.89}
    (part,) = applications.parts(frame(*rows))
    assert "does not fit phase-gaussian n=8 m/n=6 within its time" in part.answer[-1]


def test_clusters_are_judged_by_time_by_f_and_by_labels():
    columns = {"group": "clusters", "application": "clusters", "instance": "digits"}
    fast = recovery((100.0, 51.0), method="auto", error=0.3, wall_seconds=1.0, **columns)
    exact = recovery((100.0, 50.0), method="symhals", peer=True, error=0.1, wall_seconds=4.0, **columns)
    (part,) = applications.parts(frame(fast, exact))
    assert part.answer == [
        "digits: auto ends first, after 1 s, with an accuracy of 0.700; the best is 0.900 by symhals after 4 s."
    ]
    above = {row[1].text: row[4].value for row in tables.cluster_table(frame(fast, exact)).rows}
    assert above == {"auto": pytest.approx(0.02), "symhals": 0.0}


# The page -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path):
    """Write results of recoveries alone, and the page of them."""
    rows = [
        *grid("auto", (0, 2, 2)),
        *metrics("distances-bridge N=200", 200, 100),
        accuracy(0.1, 10, 60) | {"trace_gap": [float("nan"), 1e-3, 1e-5]},
        recovery(method="scipy-lbfgs", status="timeout", message="killed after <2> s", success=False),
    ]
    (tmp_path / "runs").mkdir()
    for place, row in enumerate(rows):
        store.write(tmp_path, row | {"key": f"{place:020x}"})
    facts = {"study": "test", "config": {}, "system": {}, "command": "", "problem_set": 1, "created": "2026"}
    store.describe(tmp_path, facts)
    return write(tmp_path, tmp_path / "page" / "report.html")


def test_a_study_of_recoveries_alone_has_a_page(page):
    text = page.page.read_text()
    assert '<figure id="phase">' in text
    assert "How many measurements does a signal need" in text
    assert "Not measured in this study; <code>quartbench compare --study peers</code>" in text
    assert "killed after &lt;2&gt; s" in text
    assert "Who wins where" not in text
    assert text.count("auto · ") == 0
    summary = page.page.with_suffix(".md").read_text()
    assert "### How many measurements does a signal need" in summary
    assert "| phase m/n=3 | auto | 2/2 |" in summary
    assert "Who wins where" not in summary
    assert (page.page.parent / "figures" / "phase.pdf").read_bytes().startswith(b"%PDF")


def test_recoveries_are_no_evidence_for_claims_about_convex_problems(page):
    verdicts = {claim.name: found.verdict for claim, found in page.claims}
    assert verdicts["dc-metric"] == HOLDS
    assert {name for name, verdict in verdicts.items() if verdict != OPEN} <= {
        claim.name for claim in CLAIMS if claim.inverse
    }
