"""What the tables of the page say, from runs that can be read off by hand."""

import numpy as np
import pytest

from quartbench.study.report.tables import break_even, kappa_table, leaders, winner_table, winners

from ..frames import frame, run


def test_break_even_by_hand():
    plain = frame(run(gaps=(1.0, 0.05, 0.005), seconds=(0.0, 1.0, 10.0)))
    quick = frame(run(gaps=(1.0, 0.05, 0.005), seconds=(0.0, 0.5, 1.0), setup_seconds=3.0, metric="uniform"))
    found = break_even(plain, quick)
    # At 10⁻¹: 1 s against 3.5 s; at 10⁻²: 10 s against 4 s. The set-up of 3 s is repaid by one saving of 9 s.
    assert found.gap == pytest.approx(0.01)
    assert found.solves == 1
    assert found.shared == pytest.approx(0.01)
    assert found.saving == pytest.approx(2.5)
    assert np.isnan(break_even(quick, plain).gap)
    assert break_even(frame(run(gaps=(1.0, 0.05), seconds=(0.0, 1.0))), quick).solves == 6  # 3 s by savings of ½ s


def test_ties_are_spoken_of_where_repeats_tell_the_noise():
    assert "A lead of less than 21 %, the noise floor, is a tie" in winner_table([], 0.21).note
    assert "no lead is called a tie" in winner_table([], 0.0).note


def test_a_lead_within_the_noise_is_a_tie():
    rows = [
        run(solver="a", seconds=(0, 1.0, 2.0), gaps=(1, 0.1, 0.005)),
        run(solver="b", seconds=(0, 1.0, 2.1), gaps=(1, 0.1, 0.005)),
    ]
    found = winners(frame(*rows))
    assert (found[0].first, found[0].second, found[0].factor) == ("a · identity", "b · identity", pytest.approx(1.05))
    assert leaders(found, 0.1)[0] == {"a · identity": 1, "b · identity": 1}
    assert leaders(found, 0.01)[0] == {"a · identity": 1}
    assert found[0].lead(0.1) == "tie with b · identity"
    assert found[0].lead(0.01) == "1.05× faster than b · identity"


def test_who_is_alone_leads_nobody():
    (alone,) = winners(frame(run()))
    assert (alone.second, alone.lead(0.1)) == ("", "")


def test_kappa_stands_beside_its_bounds():
    rows = [
        run(metric="uniform", kappa_measured=2.0, kappa_bound=3.0, coherence=0.8),  # √(mγ) = 4
        run(metric="lewis", kappa_measured=1.0, kappa_bound=3.2),  # √n = √10
        run(metric="identity", kappa_measured=40.0, coherence=0.8, arguments={"cond": 10.0}),  # 100·4
        run(metric="identity", kappa_measured=2.0, generator="planted_partition", instance="z", r=4),
    ]
    table = kappa_table(frame(*rows))
    shares = {(row[0].text, row[1].text): row[5].value for row in table.rows}
    assert shares == {
        ("spectrum 20×10", "uniform"): 0.5,
        ("spectrum 20×10", "lewis"): pytest.approx(10**-0.5),
        ("spectrum 20×10", "identity"): pytest.approx(0.1),
        ("z", "identity"): 1.0,
    }
    assert table.rows[0][2].keys
    assert kappa_table(frame(run(kappa_bound=2.0))) is None
