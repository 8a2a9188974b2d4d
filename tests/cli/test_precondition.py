"""quartbench precondition: κ in every metric."""

import json

from .common import run


def test_preconditioners_are_compared(files):
    found = json.loads(run("precondition", files / "A.npy", "--json").stdout)
    kappas = [one["kappa"] for one in found["metrics"]]
    assert [one["name"] for one in found["metrics"]] == ["identity", "uniform", "lewis"]
    assert kappas[2] <= 1.01 * found["best_kappa"]
    assert "█" in run("precondition", files / "A.npy").output
