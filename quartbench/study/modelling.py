"""What do the cluster runs of a study say of the model of ``quartbench scale``? Its counts, its rates, its error."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd

from quartbench.distributed import rates
from quartbench.distributed.scaling import Counts, Fit, Shape, fitted, iterating
from quartbench.errors import ProblemError
from quartbench.forms.sampling import SAMPLE
from quartbench.solvers.rounds import INNER, SAMPLE_SPAG

from . import costs, store

#: The methods that are predicted, by their contender in the group ``cluster``, with what they do once.
METHODS: dict[str, tuple[str, dict[str, float]]] = {
    "accel-homgd, B = I": ("accel-homgd · identity", {}),
    "homnewton-cg, B = I": ("homnewton-cg · identity", {}),
    "homnewton-cg, B⁽⁰⁾": ("homnewton-cg · uniform", {"factors": 1.0}),
    "homnewton-cg, sampled": ("homnewton-cg · sampled", {"sample": float(SAMPLE)}),
    "spag": ("spag share=0.02", {"sample": float(SAMPLE_SPAG), "inner": INNER}),
    "homnewton": ("homnewton", {"factors": 1.0}),
}

#: The groups with rows that are all alike: on others problems on a sample are harder, which the model does not know.
ALIKE = ("cluster", "cluster-sizes")

#: The gap that counts are for.
GAP = 1e-6


def spread(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with rows on workers, all alike, that reached their gap, of methods that the model knows."""
    runs = runs[runs.group.isin(ALIKE)]
    part = costs.iterated(runs[(runs.workers > 0) & runs.success & (runs.solve_seconds > 0.0) & (runs.rounds > 0)])
    return part[part.method.isin(["accel-homgd", "homcg", "homnewton", "homnewton-cg", "spag"])]


def counts(run: Any) -> Counts:
    """Return what a run asked for in its iterations: a Hessian for each one of Newton's."""
    hessians = float(run.nit) if run.method == "homnewton" else 0.0
    inner = INNER if run.method == "spag" else 0.0
    return Counts(float(run.rounds), float(run.passes), hessians, inner=inner)


def load(run: Any, cores: int) -> rates.Load:
    """Return what a run asked of its cluster on a machine with so many cores."""
    shape = Shape(run.m * run.r, run.n, int(run.workers), int(run.blocks), cores)
    share = json.loads(run.settings).get("share", 0.0)
    return iterating(shape, counts(run), share * shape.rows)


def fit(runs: pd.DataFrame, cores: int) -> tuple[Fit, pd.DataFrame]:
    """Return the rates that runs tell of, and the runs with what is predicted of each."""
    # The fastest of repeats and seeds: whatever else a machine does makes rounds longer, never shorter.
    part = spread(runs)
    part = part.assign(each=part.solve_seconds / part.rounds).sort_values("each", kind="stable")
    part = part.drop_duplicates(["instance", "contender"])
    loads = [load(run, cores) for run in part.itertuples()]
    found = fitted(loads, part.solve_seconds.tolist())
    return found, part.assign(predicted=[one.seconds(found.rates) for one in loads])


def measured(runs: pd.DataFrame) -> dict[str, Counts]:
    """Return what each method asks for to the gap, by its median run in the group ``cluster``."""
    part = spread(runs)
    part = part[(part.group == "cluster") & (part.rel_gap == GAP)]
    found = {}
    for name, (contender, once) in METHODS.items():
        mine = [counts(run) for run in part[part.contender == contender].sort_values("rounds").itertuples()]
        if mine:
            one = mine[len(mine) // 2]
            found[name] = Counts(one.rounds, one.passes, one.hessians, **once)
    return found


def known(about: dict[str, Any]) -> dict[str, Counts]:
    """Return the counts in a file of rates."""
    return {name: Counts(**one) for name, one in about["counts"].items()}


def write_fit(directory: Path, out: Path) -> Fit:
    """Fit rates to the results of a study, and write them with the counts, their origin and their error."""
    about, runs = store.settings(directory), costs.prepare(store.read(directory))
    found, part = fit(runs, int(about["system"].get("cores") or 1))
    asked = measured(runs)
    if not asked:
        raise ProblemError(f"{str(directory)!r} has no runs of the group 'cluster': make some by the study cluster")
    instance = part[part.group == "cluster"].instance.iloc[0]
    workers = " and ".join(map(str, sorted(set(part.workers))))
    origin = (
        f"{len(part)} runs of the study {about['study']} of {about['created'][:10]} on {workers} workers of one thread "
        f"in {part.blocks.min()} to {part.blocks.max()} blocks on one machine ({about['system'].get('processor')}, "
        f"{about['system'].get('cores')} cores), by loopback"
    )
    facts = {
        "origin": origin,
        "command": "quartbench scale --fit RESULTS",
        "error": {"usual": found.usual, "worst": found.worst, "runs": len(part)},
        "gap": GAP,
        "instance": instance,
        "counts": {name: {k: v for k, v in vars(one).items() if v} for name, one in asked.items()},
    }
    rates.write(out, found.rates, facts)
    return found


def digits(rel_gap: float) -> float:
    """Return the digits of a gap over those that counts are for."""
    if not 0.0 < rel_gap < 1.0:
        raise ProblemError(f"rel_gap must lie between 0 and 1, found {rel_gap!r}")
    return math.log(rel_gap) / math.log(GAP)
