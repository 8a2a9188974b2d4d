"""Which tables does the report hold? One file per question that a reader asks of the runs."""

from .applications import cluster_table, fit_table, metric_table, outcome_table, price_table
from .cells import Cell, Table, seconds
from .cluster import sample_table, traffic_table
from .comparison import cost_table, pair_table, peer_table
from .conditioning import kappa_table
from .growth import growth_table, rate_table
from .kernels import kernel_table
from .payoff import BreakEven, break_even, break_even_table
from .record import claim_frame, failure_table, run_table
from .regression import regression_table
from .winning import Winner, leaders, winner_table, winners

__all__ = [
    "BreakEven",
    "Cell",
    "Table",
    "Winner",
    "break_even",
    "break_even_table",
    "claim_frame",
    "cluster_table",
    "cost_table",
    "failure_table",
    "fit_table",
    "growth_table",
    "kappa_table",
    "kernel_table",
    "leaders",
    "metric_table",
    "outcome_table",
    "pair_table",
    "peer_table",
    "price_table",
    "rate_table",
    "regression_table",
    "run_table",
    "sample_table",
    "seconds",
    "traffic_table",
    "winner_table",
    "winners",
]
