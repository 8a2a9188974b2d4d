"""How fast are the kernels, in numbers? What ``quartbench kernels`` measured, as a table of the page."""

from __future__ import annotations

from .cells import Cell, Table, number, seconds


def kernel_table(kernels: dict | None) -> Table | None:
    """Return the measured kernels."""
    if not kernels or not kernels["rows"]:
        return None
    rows = [
        [
            Cell(one["name"]),
            Cell(one["operation"]),
            seconds(one["seconds"]),
            number(one["gigabytes_per_second"]),
            number(one["bandwidth_fraction"], 2),
            number(one["ratio"]),
            number(one["tuned_ratio"]),
            Cell(f"≥ {one['target']:g}", one["target"]),
        ]
        for one in kernels["rows"]
    ]
    note = (
        "'read' is the fraction of the measured bandwidth; 'ratio' compares with the code as one writes it first in "
        "NumPy or scipy.sparse, 'tuned' with the same code at its best, 'wanted' is what is promised of 'tuned'."
    )
    columns = ["case", "operation", "time", "GB/s", "read", "ratio", "tuned", "wanted"]
    return Table("kernel-table", "Kernels", note, columns, rows, frozenset(range(2, 8)))
