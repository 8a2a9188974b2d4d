"""What was tried, and what came of it: a table of solves by form, cone, way, solver, gap and feature."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .solves import BAD, WELL, Said


class Record(NamedTuple):
    """A problem and what its solves said: one line of the file."""

    set: int
    number: int
    form: str
    cone: str
    features: list[str]
    condition: float
    well_posed: bool
    proved: bool
    solves: list[Said]

    @classmethod
    def read(cls, line: dict[str, Any]) -> Record:
        """Return the record of a line of JSON."""
        return cls(**{**line, "solves": [Said(*said) for said in line["solves"]]})

    def judged(self) -> bool:
        """Say whether ``auto`` must have certified it: it is well-posed, and f* in range."""
        return self.well_posed and self.solves[0].verdict != "refused"

    def short(self) -> bool:
        """Say whether ``auto`` did not certify the gap that it must reach."""
        return self.judged() and not self.solves[0].gap <= WELL


class Count:
    """Solves of one kind."""

    def __init__(self) -> None:
        self.solves = self.converged = self.proved = self.open = self.refused = 0
        self.bad = dict.fromkeys(BAD, 0)
        self.excess = -math.inf

    def add(self, said: Said, proved: bool) -> None:
        """Count one more."""
        self.solves += 1
        self.converged += said.status in ("converged", "trivial")
        self.proved += proved and said.verdict == "true" and said.how != "derived"
        self.open += said.verdict == "true" and said.gap == math.inf
        self.refused += said.verdict == "refused"
        if said.verdict in BAD:
            self.bad[said.verdict] += 1
        self.excess = max(self.excess, said.excess)

    def cells(self) -> list[str]:
        """Return the columns as text."""
        numbers = (self.solves, self.converged, self.proved, self.open, self.refused, *self.bad.values())
        return [*map(str, numbers), f"{self.excess:.0e}" if self.excess > -math.inf else ""]


HEAD = ["", "", "solves", "converged", "proved", "no gap", "refused", *BAD, "worst excess"]


def counts(records: Iterable[Record]) -> dict[tuple[str, str], Count]:
    """Return the counts by what is counted and its name."""
    found: dict[tuple[str, str], Count] = {}
    for record in records:
        for said in record.solves:
            if said.verdict == "declined":
                continue
            for key in _keys(record, said):
                found.setdefault(key, Count()).add(said, record.proved)
    return found


def _keys(record: Record, said: Said) -> Iterator[tuple[str, str]]:
    yield "all", "proved" if record.proved else "on trust"
    yield "form", record.form
    yield "cone", record.cone
    yield "way", said.how
    if said.how == "solve":
        yield "solver", said.solver
        yield "metric", said.metric
    yield "gap", f"{said.rel_gap:.0e}"
    for feature in record.features or ["none"]:
        yield "feature", feature


SECTIONS = ("all", "form", "cone", "feature", "way", "solver", "metric", "gap")


def table(records: list[Record]) -> str:
    """Return the table, what is bad below it, and the share of well-posed problems that were certified."""
    found = counts(records)
    lines = [HEAD]
    for key in sorted(found, key=lambda key: (SECTIONS.index(key[0]), key[1])):
        lines.append([*key, *found[key].cells()])
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]
    text = [
        "  ".join(
            cell.ljust(width) if k < 2 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join([*text, "", *well_posed(records), *bad(records)])


def well_posed(records: list[Record]) -> list[str]:
    """Return lines on well-posed problems, those that are proved and those taken on trust apart."""
    lines = []
    for proved in (True, False):
        judged = [record for record in records if record.judged() and record.proved == proved]
        if not judged:
            continue
        short = [record.number for record in judged if record.short()]
        share = 100.0 * (1.0 - len(short) / len(judged))
        lines.append(
            f"well-posed problems{'' if proved else ' by products alone, taken on trust,'} certified to {WELL:.0e} by "
            f"auto: {share:.2f} % of {len(judged)}" + (f"; not: {', '.join(map(str, short))}" if short else "")
        )
    return lines


def bad(records: list[Record]) -> list[str]:
    """Return a line on every solve that must not be."""
    return [
        f"{said.verdict}: number {record.number} ({record.form}, {record.cone}, {' '.join(record.features)}), {said}"
        for record in records
        for said in record.solves
        if said.verdict in BAD
    ]
