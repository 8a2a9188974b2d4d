"""The model of ``quartbench scale``: it recovers made-up rates, and grows the way that a cluster does."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import quartbench as qb
from quartbench.cli import main
from quartbench.distributed.rates import Load, Rates, read, round_load, write
from quartbench.distributed.scaling import Counts, Shape, beginning, fitted, iterating, memory, predict, reduction

RATES = Rates(latency=2e-3, task=4e-4, bandwidth=1.25e9, memory=8e9, flops=4e10)
NEWTON = Counts(rounds=4, passes=3, hessians=1, factors=1)
GRADIENTS = Counts(rounds=1400, passes=700)
SPAG = Counts(rounds=9, passes=9, sample=40, inner=5)
METHODS = {"newton": NEWTON, "gradients": GRADIENTS, "spag": SPAG}


def made_up(rates=RATES, noise=0.0):
    """Return loads of runs of all sizes, and the seconds that a cluster of these rates takes for them."""
    rng = np.random.default_rng(0)
    shapes = [
        Shape(rows, n, workers, blocks)
        for rows in (1e4, 1e6, 1e8)
        for n in (10, 100, 1000)
        for workers, blocks in ((2, 2), (2, 64), (500, 500))
    ]
    loads = [iterating(shape, counts) for shape in shapes for counts in METHODS.values()]
    return loads, [one.seconds(rates) * math.exp(noise * rng.standard_normal()) for one in loads]


def test_the_fit_recovers_made_up_rates():
    found = fitted(*made_up())
    for name, value in vars(RATES).items():
        assert getattr(found.rates, name) == pytest.approx(value, rel=0.1), name
    assert found.worst < 1.2


def test_the_error_of_a_fit_is_that_of_the_noise():
    found = fitted(*made_up(noise=0.3))
    assert 1.1 < found.usual < 1.5 < found.worst
    assert found.rates.latency == pytest.approx(RATES.latency, rel=0.5)


def test_a_fit_needs_runs():
    loads, seconds = made_up()
    with pytest.raises(qb.ProblemError, match="at least 5 runs with rows on workers, found 4"):
        fitted(loads[:4], seconds[:4])


def test_loads_add_up_as_counted_by_hand():
    shape, n = Shape(1e6, 100, 20), 100
    small, large = round_load(20, 800.0, 800.0), round_load(20, 800.0, 8.0 * n * n)
    assert small == Load(2, 20, 800.0 * 20 + 800.0 * 11, 0.0, 0.0)
    found = iterating(shape, NEWTON)
    assert found == 3 * small + large + Load(0, 0, 0, 3 * 8e8 / 20, 1e6 / 20 * n**2 + n**3 / 3.0)
    assert beginning(shape, NEWTON) == reduction(shape)
    sample = beginning(shape, SPAG)
    assert sample.bytes == 20 * 8.0 + 8.0 * 40 * n * n
    assert iterating(shape, SPAG).flops == pytest.approx(9 * 5 * (40 * n * n**2 + n**3 / 3.0))
    assert iterating(shape, SPAG, sample_rows=10.0).flops == pytest.approx(9 * 5 * (10 * n**2 + n**3 / 3.0))
    assert Shape(1e6, 100, 4, at_once=2).share == 0.5


@pytest.mark.parametrize("method", METHODS)
def test_more_rows_take_longer_and_more_workers_less_as_long_as_reading_is_what_takes_it(method):
    def seconds(rows, workers):
        (found,) = predict(Shape(rows, 500, workers), {method: METHODS[method]}, RATES)
        return found.seconds

    for rows in (1e8, 1e9, 1e10):
        assert seconds(10 * rows, 10) > seconds(rows, 10)
    assert seconds(1e10, 10) > 5.0 * seconds(1e10, 100)
    # A few rows on very many workers: the scheduler is what takes it.
    assert seconds(1e6, 10_000) > seconds(1e6, 100)


@pytest.mark.parametrize(("name", "worse"), [("latency", 2.0), ("task", 2.0), ("bandwidth", 0.5), ("memory", 0.5)])
def test_a_worse_cluster_takes_longer(name, worse):
    shape = Shape(1e8, 1000, 50)
    slow = RATES.changed(**{name: worse * getattr(RATES, name)})
    for good, bad in zip(*(predict(shape, METHODS, rates) for rates in (RATES, slow)), strict=True):
        assert bad.seconds > good.seconds or bad.method != good.method


def test_the_one_to_choose_is_the_fastest_that_fits():
    shape = Shape(1e8, 1000, 50)
    free = predict(shape, METHODS, RATES)
    assert free[0].seconds == min(one.seconds for one in free)
    assert all(one.fits for one in free)
    spag_memory = memory(shape, SPAG)[1]
    assert spag_memory == pytest.approx(8.0 * (40 * 1000**2 + 1000**2 + 10 * 1000))
    tight = predict(shape, METHODS, RATES, driver_memory=0.9 * spag_memory)
    assert [one.method for one in tight if not one.fits] == ["spag"]
    assert tight[-1].method == "spag"
    assert not any(one.fits for one in predict(shape, METHODS, RATES, worker_memory=1e6))
    # Forty rows for each unknown are more than there are.
    assert not next(one for one in predict(Shape(3e4, 1000, 2), METHODS, RATES) if one.method == "spag").fits


def test_rounds_are_in_proportion_to_digits_and_what_is_done_once_is_not():
    assert NEWTON.times(1.5) == Counts(rounds=6, passes=4.5, hessians=1.5, factors=1)
    assert SPAG.times(2.0).sample == SPAG.sample


def test_a_shape_that_is_none_is_refused():
    with pytest.raises(qb.ProblemError, match="rows ≥ columns ≥ 1 and a worker, found 10 rows, 20 columns"):
        predict(Shape(10, 20, 2), METHODS, RATES)


# The command ----------------------------------------------------------------------------------------------------------


def scale(*flags):
    return CliRunner().invoke(main, ["scale", *flags])


def test_the_command_predicts_and_says_what_it_assumes():
    size = ("--rows", "1e10", "--cols", "1e4", "--workers", "1000")
    shown = scale(*size)
    assert shown.exit_code == 0, shown.output
    for words in (
        "choose:",
        "Gbit/s a link",
        "off by a factor of",
        "assumed: rounds as measured",
        "1e+10 × 1e+04 on 1000",
    ):
        assert words in shown.output
    found = json.loads(scale(*size, "--json").stdout)
    assert found["choose"] == found["methods"][0]["method"]
    assert {one["method"] for one in found["methods"]} >= {"spag", "homnewton", "accel-homgd, B = I"}
    rates = found["rates"]
    other = json.loads(scale(*size, "--json", "--bandwidth", "10", "--latency", "3", "--gflops", "7").stdout)["rates"]
    assert other["bandwidth"] == 1.25e9
    assert other["latency"] == pytest.approx(rates["latency"] + 3e-3)
    assert (other["flops"], other["memory"]) == (7e9, rates["memory"])
    tighter = json.loads(scale(*size, "--json", "--rel-gap", "1e-12").stdout)["methods"]
    rounds = {one["method"]: one["rounds"] for one in found["methods"]}
    assert all(one["rounds"] == pytest.approx(2.0 * rounds[one["method"]]) for one in tighter)
    none = scale(*size, "--worker-memory", "1")
    assert "no method fits" in none.output


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--cols", "10", "--workers", "2"), "Missing option '--rows'"),
        (("--rows", "1.5", "--cols", "10", "--workers", "2"), "'1.5' is not a whole number of at least 1"),
        (("--rows", "5", "--cols", "10", "--workers", "2"), "rows ≥ columns"),
        (("--rows", "50", "--cols", "10", "--workers", "2", "--rel-gap", "2"), "rel_gap must lie between 0 and 1"),
        (("--rows", "50", "--cols", "10", "--workers", "2", "--rates", "no.json"), "there is no file 'no.json'"),
        (("--fit", "."), "Missing option '--rates'"),
    ],
)
def test_bad_flags_are_refused(flags, said):
    done = scale(*flags)
    assert done.exit_code == 2
    assert said in done.output


def test_rates_are_written_and_read(tmp_path):
    write(tmp_path / "rates.json", RATES, {"origin": "made up"})
    assert read(tmp_path / "rates.json") == (RATES, {"origin": "made up"})
