"""Recoveries: the same data for the same seed, one start for all, and an error that knows the right symmetry."""

import numpy as np
import pytest

from quartbench import ProblemError, inverse
from quartbench.inverse.recoveries import RECOVERED, RECOVERIES, application

SMALL = {
    "phase_gaussian": {"n": 10, "ratio": 6.0},
    "phase_masks": {"n": 16, "masks": 8},
    "distances_random": {"points": 25, "share": 0.6},
    "distances_near": {"points": 40},
    "distances_bridge": {"points": 60},
    "distances_clouds": {"clouds": 3, "points": 12},
    "clusters_digits": {"classes": 3},
    "clusters_partition": {"n": 40, "clusters": 2, "p_in": 0.5},
}


def make(name, seed=0, **more):
    if name == "clusters_digits":
        pytest.importorskip("sklearn")
    return RECOVERIES[name](**SMALL[name] | more, seed=seed)


def test_every_recovery_is_tested_and_named_after_its_application():
    assert SMALL.keys() == RECOVERIES.keys()
    assert {application(name) for name in RECOVERIES} == {"phase", "distances", "clusters"}


@pytest.mark.parametrize("name", RECOVERIES)
def test_a_seed_makes_the_same_data_and_another_makes_others(name):
    one, same, other = make(name), make(name), make(name, seed=1)
    np.testing.assert_array_equal(one.start, same.start)
    assert not np.array_equal(one.start, other.start)
    assert one.problem.value(one.start) == same.problem.value(one.start)


@pytest.mark.parametrize("name", ["phase_gaussian", "phase_masks", "distances_random", "distances_near"])
def test_data_without_noise_are_recovered_from_the_start_and_the_users_call_finds_them_too(name):
    recovery = make(name)
    flat = recovery.problem.form.flat
    for found in (recovery.solve("newton"), recovery.solve("auto"), recovery.solve("auto", restarts=2)):
        error = recovery.error(flat(found.x))
        assert error < 1e-6
        assert recovery.recovered(error, found)
    assert not recovery.recovered(2.0 * RECOVERED, found)


def test_errors_forget_a_phase_a_rotation_and_the_names_of_labels():
    signal = make("phase_gaussian")
    x = signal.solve("newton").x
    assert signal.error(signal.problem.form.flat(np.exp(1j) * x)) == pytest.approx(
        signal.error(signal.problem.form.flat(x))
    )
    cloud = make("distances_random")
    x = cloud.solve("newton").x
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    assert cloud.error((x @ turn + 5.0).reshape(-1)) < 1e-6
    assert cloud.error((1.1 * x).reshape(-1)) == pytest.approx(0.1)
    groups = make("clusters_partition")
    x = groups.solve("auto").x
    assert groups.error(x[:, ::-1].reshape(-1)) == groups.error(x.reshape(-1)) < 0.2


@pytest.mark.parametrize(("name", "more"), [("phase_gaussian", {}), ("distances_random", {"share": 1.0})])
def test_noise_is_of_the_size_that_it_says_and_recovery_is_judged_by_it(name, more):
    noise = 0.05
    clean, noisy = make(name, **more), make(name, noise=noise, **more)
    d, disturbed = clean.problem.misfit.d, noisy.problem.misfit.d
    if name == "phase_gaussian":
        assert np.linalg.norm(disturbed - d) <= noise * np.linalg.norm(d) * (1 + 1e-12)
        assert (disturbed >= 0.0).all()
    else:
        assert np.std(np.sqrt(disturbed / d)) == pytest.approx(noise, rel=0.3)
    found = noisy.solve("auto")
    error = noisy.error(noisy.problem.form.flat(found.x))
    assert RECOVERED < error <= noise
    assert noisy.recovered(error, found)


def test_the_one_start_is_counted_apart_and_restarts_make_their_own():
    recovery = make("phase_gaussian")
    assert recovery.start_passes > 0
    shared, own = recovery.solve("auto"), recovery.solve("auto", restarts=1)
    assert not [stage for stage in shared.stages if stage.name.endswith("start")]
    assert own.passes >= shared.passes + recovery.start_passes - 1  # the lengths of columns are found once
    assert isinstance(recovery.solve(inverse.DC(accuracy=0.5), tol=1e-3), inverse.Result)


def test_what_cannot_be_made_says_so():
    for name, more, message in (
        ("phase_masks", {"tails": "long"}, "tails must be 'light' or 'heavy', found 'long'"),
        ("distances_near", {"shape": "ball"}, "shape must be one of helix, cube, rod, bridge, found 'ball'"),
        ("distances_bridge", {"start": "spectral"}, "start must be one of landmarks, random, found 'spectral'"),
        ("distances_clouds", {"start": "spectral"}, "start must be one of landmarks, random, found 'spectral'"),
        ("distances_random", {"share": 0.06}, "there is nothing to recover"),
    ):
        with pytest.raises(ProblemError, match=message):
            make(name, **more)
