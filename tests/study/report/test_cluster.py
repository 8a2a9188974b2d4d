"""The section on clusters: claims, tables and figures from runs and records that are written down, not measured."""

import math

import pytest

from quartbench.study.report import cluster, tables
from quartbench.study.report.claims import CLAIMS, FAILS, HOLDS, ONLY, OPEN

from ..frames import frame, run

TESTS = {claim.name: claim for claim in CLAIMS}
COHERENT = {"group": "cluster-coherent"}


def spread(rounds, gaps=(1.0, 0.1, 0.01), **columns):
    """Return a run on two workers that ends after so many rounds, at 0.01 unless told otherwise."""
    settings = columns.pop("settings", {})
    counts = {"trace_rounds": [0, rounds // 2, rounds], "trace_bytes": [0, 500 * rounds, 1000 * rounds]}
    where = {"group": "cluster", "workers": 2, "rounds": rounds, "bytes": 1000 * rounds}
    return run(gaps=gaps, settings=settings, **(counts | where | columns))


def spag(rounds, share=0.02, sampling="uniform", **columns):
    settings = {"share": share, "sampling": sampling}
    solver = f"spag share={share}" + (" sampling=lewis" if sampling == "lewis" else "")
    return spread(rounds, method="spag", solver=solver, settings=settings, metric_asked="auto", **columns)


def plain(rounds, **columns):
    return spread(rounds, method="accel-homgd", **columns)


def decide(name, *rows, samples=None):
    runs = frame(*rows)
    if samples is not None:
        runs.attrs["samples"] = {"rows": samples}
    return TESTS[name].decide(runs)


@pytest.mark.parametrize(
    ("rounds", "verdict"), [((20, 10), HOLDS), ((20, 30), ONLY), ((50, 30), FAILS)], ids=["both", "one", "none"]
)
def test_rounds_that_a_sample_saves(rounds, verdict):
    found = decide("spag-rounds", plain(400), *(spag(n, share) for n, share in zip(rounds, (0.02, 0.05), strict=True)))
    assert found.verdict == verdict
    assert found.numbers == {
        "2 % of the rows": pytest.approx(400 / rounds[0]),
        "5 % of the rows": pytest.approx(400 / rounds[1]),
    }
    assert len(found.keys) == 3
    if verdict == ONLY:
        assert found.condition == "for 2 % of the rows"


def test_rounds_are_compared_on_workers_only():
    assert decide("spag-rounds", plain(400, workers=0), spag(10, workers=0)).verdict == OPEN
    assert decide("spag-rounds", plain(400)).verdict == OPEN
    assert decide("spag-rounds", plain(400), spag(10, sampling="lewis")).verdict == OPEN


@pytest.mark.parametrize(
    ("lewis", "uniform", "verdict"),
    [(15, 91, HOLDS), (16, 91, FAILS), (15, 90, FAILS)],
)
def test_rounds_of_either_sampling(lewis, uniform, verdict):
    found = decide("lewis-sampling", spag(lewis, sampling="lewis", **COHERENT), spag(uniform, **COHERENT))
    assert found.verdict == verdict
    assert found.numbers == {"2 %, lewis": lewis, "2 %, uniform": uniform}


def test_lewis_sampling_may_be_needed_for_small_samples_only():
    rows = [spag(8, share, "lewis", **COHERENT) for share in (0.02, 0.05)]
    found = decide("lewis-sampling", *rows, spag(200, 0.02, **COHERENT), spag(37, 0.05, **COHERENT))
    assert (found.verdict, found.condition) == (ONLY, "for 2 % of the rows")
    assert len(found.keys) == 4


def test_equal_rounds_are_a_number_and_others_a_range():
    uniform = [spag(200, share, **COHERENT) for share in (0.02, 0.05)]
    for second, words in ((8, "takes 8 rounds"), (12, "takes 8 to 12 rounds")):
        lewis = [spag(n, share, "lewis", **COHERENT) for n, share in ((8, 0.02), (second, 0.05))]
        found = decide("lewis-sampling", *lewis, *uniform)
        assert words in found.evidence
        assert found.evidence.endswith("uniform sampling 200 or more.")


def test_a_run_that_did_not_arrive_needs_at_least_its_rounds():
    short = {"gaps": (1.0, 0.5, 0.3), "status": "max_iter", "success": False, **COHERENT}
    for rounds, verdict in ((200, HOLDS), (50, FAILS)):
        found = decide("lewis-sampling", spag(8, sampling="lewis", **COHERENT), spag(rounds, **short))
        assert found.verdict == verdict
    found = decide("lewis-sampling", spag(8, sampling="lewis", **short), spag(200, **short))
    assert found.verdict == FAILS
    assert "not enough" in found.evidence


def record(*conditions, instance="even", sampling="uniform"):
    """Return samples of 10, 20, … % of the terms with these ratios of L and μ, twice."""
    return [
        {
            "instance": instance,
            "sampling": sampling,
            "share": 0.1 * place,
            "seed": seed,
            "terms": 100 * place,
            "low": 0.5,
            "high": 0.5 * one,
        }
        for place, one in enumerate(conditions, 1)
        for seed in (0, 1)
    ]


@pytest.mark.parametrize(
    ("conditions", "verdict"),
    [((4.0, 2.0, 1.2), HOLDS), ((4.0, 2.0, 1.3), FAILS), ((1.1, 1.2, 1.1), FAILS), ((math.inf, 2.0, 1.0), HOLDS)],
)
def test_samples_become_the_whole(conditions, verdict):
    found = decide("sample-condition", run(), samples=record(*conditions))
    assert found.verdict == verdict
    assert found.numbers == {"uniform sampling of even": pytest.approx(conditions[-1])}


@pytest.mark.parametrize(("last", "verdict"), [(1.24, HOLDS), (1.26, FAILS)])
def test_a_sample_is_like_the_whole_within_a_quarter(last, verdict):
    found = decide("sample-condition", run(), samples=record(4.0, 2.0, last))
    assert found.verdict == verdict
    assert (
        found.evidence == f"From 10 to 30 % of the terms, Lₘ/μₘ falls to {last}; Hessians are compared at five points."
    )
    assert found.cases == (f"uniform sampling of even: 4 → 2 → {last}",)


def test_samples_of_one_kind_only_become_the_whole():
    both = record(4.0, 1.1, sampling="lewis") + record(40.0, 9.0)
    found = decide("sample-condition", run(), samples=both)
    assert (found.verdict, found.condition) == (ONLY, "for lewis sampling of even")


def test_a_table_has_rounds_to_the_gap_and_until_certified():
    late = spag(20, rel_gap=0.1)
    table = tables.traffic_table(frame(plain(400), late))
    rows = {row[1].text: [cell.text for cell in row[2:]] for row in table.rows}
    assert rows["accel-homgd · identity"][1:4] == ["400", "400", "400 kB"]
    assert rows["spag share=0.02"][1:4] == ["10", "20", "10 kB"]
    assert tables.traffic_table(frame(run())) is None


def test_the_record_shows_rounds_where_there_are_some():
    assert "rounds" in tables.run_table(frame(plain(400), run())).columns
    assert "rounds" not in tables.run_table(frame(run())).columns


def test_figures_have_the_units_of_traffic_and_the_constants():
    runs = frame(plain(400), spag(10), run())
    (curves,) = cluster.figures(runs, None)
    assert [panel.xlabel for panel in curves.panels] == ["rounds", "bytes", "seconds"]
    assert {series.name: series.x.max() for series in curves.panels[0].series} == {
        "accel-homgd · identity": 400.0,
        "spag share=0.02": 10.0,
    }
    assert len(curves.keys) == 2
    (constants,) = cluster.figures(frame(run()), {"rows": record(4.0, 2.0)})
    assert [list(series.y) for series in constants.panels[0].series] == [[0.5, 0.5], [2.0, 1.0]]
    (table,) = [tables.sample_table(cluster.sampled({"rows": record(4.0, 2.0)}))]
    assert [row[-1].text for row in table.rows] == ["4", "2"]
    assert cluster.figures(frame(run()), None) == []
    assert tables.sample_table(cluster.sampled(None)) is None
