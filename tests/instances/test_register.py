import inspect
import json

import numpy as np
import pytest

from quartbench import instances
from quartbench.cones import Free
from quartbench.errors import ProblemError
from quartbench.forms import StackedForm
from quartbench.instances import INSTANCES, PROBLEM_SET, make, planted, remake
from quartbench.model import Problem

from .common import SMALL, bits

each = pytest.mark.parametrize("name", sorted(INSTANCES))


def test_every_generator_has_a_small_problem_here():
    assert SMALL.keys() == INSTANCES.keys()


@each
def test_same_arguments_give_the_same_bits(name):
    assert bits(make(name, **SMALL[name], seed=5)) == bits(make(name, **SMALL[name], seed=5))


@each
def test_another_seed_gives_another_problem(name):
    assert bits(make(name, **SMALL[name], seed=5)) != bits(make(name, **SMALL[name], seed=6))


@each
def test_origin_says_the_generator_all_its_arguments_and_the_version(name):
    problem = make(name, **SMALL[name], seed=7)
    arguments = dict(problem.origin)
    assert arguments.pop("generator") == name
    assert arguments.pop("version") == PROBLEM_SET
    assert arguments.keys() == inspect.signature(INSTANCES[name]).parameters.keys()
    assert arguments.items() >= {**SMALL[name], "seed": 7}.items()


@each
def test_origin_remakes_the_problem_bit_for_bit(name):
    problem = make(name, **SMALL[name], seed=7)
    assert bits(remake(json.loads(json.dumps(problem.origin)))) == bits(problem)


def test_origin_is_json_for_numpy_arguments_too():
    problem = make("ring", points=np.int64(9), dim=np.int32(2), neighbours=np.int64(2), seed=np.int64(3))
    assert json.loads(json.dumps(problem.origin)) == make("ring", points=9, dim=2, neighbours=2, seed=3).origin
    assert json.dumps(make("coherent", m=np.int64(9), n=3, gamma=np.float64(0.5)).origin)


@each
def test_saved_problems_keep_their_origin(name, tmp_path):
    problem = make(name, **SMALL[name])
    problem.save(tmp_path / "problem.npz")
    loaded = Problem.load(tmp_path / "problem.npz")
    assert loaded.origin == problem.origin
    np.testing.assert_allclose(loaded.c, problem.c, rtol=0, atol=1e-15 * np.abs(problem.c).max())
    assert loaded.optimum == problem.optimum


@each
def test_making_a_problem_costs_its_form_no_pass(name):
    assert make(name, **SMALL[name]).form.passes == 0


@each
def test_generators_leave_numpys_global_state_alone(name):
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (that state is what is tested)
    make(name, **SMALL[name])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_all_public_names_exist():
    assert all(hasattr(instances, name) for name in instances.__all__)


def test_unknown_instance_suggests_the_nearest():
    with pytest.raises(ProblemError, match=r"unknown instance 'spectrun'; did you mean 'spectrum'\?"):
        make("spectrun", m=3, n=2)


def test_unknown_argument_suggests_the_nearest_and_shows_the_call():
    with pytest.raises(ProblemError, match=r"spectrum has no argument 'sigma'; did you mean 'sigma_min'\?.*seed=0"):
        make("spectrum", m=3, n=2, sigma=0.1)


def test_missing_arguments_are_named():
    with pytest.raises(ProblemError, match=r"coherent needs 'n' and 'gamma' \(it is called as coherent\(m, n, gamma"):
        make("coherent", m=30)


def test_remake_refuses_another_problem_set():
    with pytest.raises(ProblemError, match="origin must be of problem set 1, found version 99"):
        remake({"generator": "ring", "points": 9, "version": 99})


def test_remake_says_that_planted_needs_its_form():
    problem = planted(StackedForm(np.eye(3)), cone=Free())
    with pytest.raises(ProblemError, match="origin keeps no form, so call planted"):
        remake(problem.origin)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("spectrum", {"seed": -1}, "seed must be at least 0, found -1"),
        ("spectrum", {"seed": 1.5}, "seed must be a whole number, found 1.5"),
        ("spectrum", {"seed": True}, "seed must be a whole number, found True"),
        ("spectrum", {"m": 7}, "m must be at least 8 .*not positive definite.*found 7"),
        ("spectrum", {"m": 40.5}, "m must be a whole number, found 40.5"),
        ("spectrum", {"n": 0}, "n must be at least 1, found 0"),
        ("spectrum", {"sigma_min": 0.0}, r"sigma_min must lie in \(0, 1\], found 0.0"),
        ("spectrum", {"sigma_min": float("nan")}, r"sigma_min must lie in \(0, 1\], found nan"),
        ("spectrum", {"sigma_min": "small"}, "sigma_min must be a real number, found 'small'"),
        ("blocks", {"m": 2}, r"m·rank must be at least n = 8.*found 2·3"),
        ("blocks", {"rank": 0}, "rank must be at least 1, found 0"),
        ("heavy_tailed", {"df": 0.1}, r"df must lie in \[0.5, .*found 0.1"),
        (
            "sparse",
            {"density": 0.01},
            r"density must lie in \[0.0833333333333, 1\] \(1/n is one entry per row\), found",
        ),
        ("orthant", {"active": 0.0}, r"active must lie in \(0, 1\], found 0.0"),
        ("orthant", {"n": 1}, "n must be at least 2, found 1"),
        ("geometric", {"degree": 60}, "degree must be at most 59 .*complete graph.*found 60"),
        ("geometric", {"points": 1}, "points must be at least 2, found 1"),
        ("geometric", {"dim": 0}, "dim must be at least 1, found 0"),
        ("regular", {"points": 31, "degree": 5}, r"points·degree must be even .*found 31·5"),
        ("regular", {"degree": 1}, "degree must be at least 2 .*connected.*found 1"),
        ("regular", {"degree": 30}, "degree must be at most 29 .*found 30"),
        ("regular", {"dim": 0}, "dim must be at least 1, found 0"),
        ("ring", {"neighbours": 10}, "neighbours must be at most 9 .*found 10"),
        ("ring", {"points": 2}, "points must be at least 3, found 2"),
        ("barbell", {"bridge": 11}, "bridge must be at most 10 .*two points in each bell.*found 11"),
        ("barbell", {"points": 3}, "points must be at least 4, found 3"),
        ("grid", {"side": 1}, "side must be at least 2, found 1"),
        ("complex_gaussian", {"m": 5}, "m must be at least 6 .*found 5"),
        ("coded_diffraction", {"masks": 0}, "masks must be at least 1, found 0"),
        ("planted_partition", {"clusters": 31}, "clusters must be at most 30 .*no cluster is empty.*found 31"),
        ("planted_partition", {"p_in": 1.5}, r"p_in must lie in \[0, 1\], found 1.5"),
        ("planted_partition", {"p_out": 0.8}, "p_out must be at most p_in = 0.7, found 0.8"),
    ],
)
def test_bad_arguments_are_named_with_what_was_found_and_what_is_needed(name, change, message):
    with pytest.raises(ProblemError, match=message):
        make(name, **{**SMALL[name], **change})
