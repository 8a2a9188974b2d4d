"""What the runs of a study say of the model: its counts, its rates from seconds that are made up by it, its error."""

import pandas
import pytest
from click.testing import CliRunner

from quartbench.cli import main
from quartbench.distributed.rates import Rates, read
from quartbench.errors import ProblemError
from quartbench.study import modelling, store
from quartbench.study.report import cluster

from .frames import frame, run

RATES = Rates(latency=1e-2, task=2e-3, bandwidth=5e7, memory=2e9, flops=5e9)

#: Method, metric, rounds, passes, iterations.
METHODS = [
    ("accel-homgd", "identity", 1462, 732, 725),
    ("homnewton-cg", "uniform", 8, 6, 2),
    ("homnewton", "auto", 4, 3, 1),
    ("spag", "auto", 9, 9, 8),
]


def runs(**columns):
    """Return runs on two workers whose seconds are those of the model, the first of two repeats twice as long."""
    rows = []
    for group, m, n, blocks in (
        ("cluster", 10**5, 60, 2),
        ("cluster-sizes", 10**6, 300, 2),
        ("cluster-sizes", 10**5, 60, 64),
    ):
        for method, metric, rounds, passes, nit in METHODS:
            for repeat in (0, 1):
                row = run(
                    method=method,
                    metric_asked=metric,
                    solver="spag share=0.02" if method == "spag" else method,
                    settings={"share": 0.02} if method == "spag" else {},
                    group=group,
                    instance=f"{m}×{n} in {blocks}",
                    m=m,
                    n=n,
                    nit=nit,
                    rounds=rounds,
                    workers=2,
                    blocks=blocks,
                    repeat=repeat,
                    rel_gap=1e-6,
                ) | {"passes": passes}
                (one,) = frame(row).itertuples()
                row["solve_seconds"] = modelling.load(one, 2).seconds(RATES) * (2.0 - repeat)
                row["key"] = f"{len(rows):020x}"
                rows.append(row | columns)
    return frame(*rows)


def test_rates_are_those_of_the_least_repeats():
    found, part = modelling.fit(runs(), cores=2)
    assert len(part) == 12
    assert found.usual < 1.1
    assert found.rates.memory == pytest.approx(RATES.memory, rel=0.3)
    assert found.rates.task == pytest.approx(RATES.task, rel=0.2)
    assert part.predicted.to_numpy() == pytest.approx(part.solve_seconds.to_numpy(), rel=0.1)


def test_counts_are_those_of_the_group_cluster():
    found = modelling.measured(runs())
    assert set(found) == {"accel-homgd, B = I", "homnewton-cg, B⁽⁰⁾", "homnewton", "spag"}
    newton = found["homnewton"]
    assert (newton.rounds, newton.passes, newton.hessians, newton.factors) == (4, 3, 1, 1)
    assert (found["spag"].sample, found["spag"].inner) == (40, 5)
    assert modelling.measured(runs(workers=0)) == {}


def test_runs_that_failed_or_were_here_tell_nothing():
    for columns in ({"workers": 0}, {"success": False}, {"status": "failed"}):
        with pytest.raises(ProblemError, match="at least 5 runs"):
            modelling.fit(runs(**columns), 2)


def test_a_fit_is_written_with_its_origin_and_read_by_the_command(tmp_path):
    (tmp_path / "runs").mkdir()
    for row in runs().drop(columns=["contender", "trace_true"]).to_dict("records"):
        store.write(tmp_path, row)
    system = {"processor": "a processor", "cores": 2}
    about = {"study": "cluster", "config": {}, "system": system, "command": "", "problem_set": 1}
    store.describe(tmp_path, about | {"created": "2026-01-02T03:04:05"})
    out = tmp_path / "rates.json"
    done = CliRunner().invoke(main, ["scale", "--fit", str(tmp_path), "--rates", str(out)])
    assert done.exit_code == 0, done.output
    assert "off by a factor of" in done.output
    rates, facts = read(out)
    assert rates.task == pytest.approx(RATES.task, rel=0.2)
    assert facts["origin"].startswith("12 runs of the study cluster of 2026-01-02 on 2 workers")
    assert modelling.known(facts)["homnewton"].hessians == 1
    size = ["--rows", "1e9", "--cols", "100", "--workers", "10"]
    shown = CliRunner().invoke(main, ["scale", *size, "--rates", str(out)])
    assert shown.exit_code == 0, shown.output
    assert "12 runs of the study cluster" in " ".join(shown.output.split())


def test_the_figure_holds_the_model_against_its_runs_and_goes_past_them():
    figure = cluster.figures(runs(), None, 2)[-1]
    assert figure.name == "scale"
    against, past = figure.panels
    points = pandas.concat([pandas.DataFrame({"x": one.x, "y": one.y}) for one in against.series])
    assert (points.y / points.x).between(0.8, 1.25).all()
    assert {series.name for series in past.series} == set(modelling.measured(runs()))
    assert cluster.scale_figure(frame(run()), 2) is None
