"""Runs that are written down, not measured: for statistics whose results can be computed by hand."""

import json

import pandas as pd

from quartbench.study import costs
from quartbench.study.store import COLUMNS

EMPTY = {"string": "", "int64": 0, "double": float("nan"), "bool": False}


def run(gaps=(1.0, 0.1, 0.01), iterations=None, passes=None, seconds=None, settings=None, arguments=None, **columns):
    """Return one run with f* = −1: its trace has these gaps, an iteration, a pass and a second apart unless given."""
    steps = list(range(len(gaps)))
    row = {column.name: EMPTY.get(column.type, []) for column in COLUMNS}
    row |= {
        "study": "test",
        "group": "catalogue",
        "instance": "spectrum 20×10",
        "generator": "spectrum",
        "arguments": json.dumps(arguments or {}),
        "m": 20,
        "n": 10,
        "r": 1,
        "cone": "free",
        "solver": columns.get("method", "homgd"),
        "method": "homgd",
        "settings": json.dumps(settings or {}),
        "metric": "identity",
        "metric_asked": columns.get("metric", "identity"),
        "rel_gap": 0.01,
        "status": "converged",
        "success": True,
        "optimum": -1.0,
        "value": gaps[-1] - 1.0,
        "lower_bound": -1.0,
        "gap": gaps[-1],
        "nit": len(gaps) - 1,
        "passes": len(gaps),
        "setup_seconds": 0.0,
        "solve_seconds": float(len(gaps) - 1),
        "trace_iteration": list(iterations or steps),
        "trace_passes": list(passes or steps),
        "trace_seconds": [float(s) for s in (seconds or steps)],
        "trace_value": [(1.0 - 1e-9) * gap - 1.0 for gap in gaps],  # below the gap by more than rounding
        "trace_gap": list(gaps),
        "trace_restart": [False] * len(gaps),
        "trace_rounds": [0] * len(gaps),
        "trace_bytes": [0] * len(gaps),
        "commit": "abc",
    }
    return row | columns


def trivial(**columns):
    """Return a run on a problem with c in the polar cone, as the worker leaves it: nothing but its set-up."""
    nothing = dict.fromkeys(("optimum", "value", "lower_bound", "gap", "solve_seconds"), 0.0) | {"nit": 0, "passes": 0}
    nothing |= {column.name: [] for column in COLUMNS if column.name.startswith("trace_")}
    return run(metric="none", metric_asked="auto") | nothing | {"status": "trivial"} | columns


def frame(*rows):
    """Return runs as the summary and the report take them, each with a key of its own."""
    for place, row in enumerate(rows):
        row["key"] = row["key"] or f"{place:020x}"
    return costs.prepare(pd.DataFrame(list(rows)))
