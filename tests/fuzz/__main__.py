"""``python -m tests.fuzz``: solve hostile problems by the thousand, and say whether anything said of them is false.

Each problem is one line of the file, written when its solves are done; a run that was stopped goes on where it was.
Ends with a table, and with exit code 1 where a certificate is false, a gap is claimed that was not reached, a result is
not finite, or a solve fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from .problems import FORMS, LARGE, SET, case, form_of
from .solves import BAD, Solves
from .table import Record, table

#: The truths of the first problems, for the tests.
TRUTHS = Path(__file__).with_name("truths.json")


def run(number: int, optimum=None) -> Record:
    """Return what the solves of one problem say; its truth is found here where it is not given."""
    problem = case(number)
    solves = Solves(problem, optimum or problem.exact.optimum())
    return Record(
        SET,
        number,
        problem.form,
        problem.cone,
        list(problem.features),
        problem.condition,
        problem.well_posed,
        solves.proved,
        list(solves),
    )


def kept(path: Path) -> Iterator[Record]:
    """Yield what a file holds of these problems; a line that was cut short is taken off."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole, end, cut = text.rpartition("\n")
    if cut:
        path.write_text(whole + end, encoding="utf-8")
    for line in whole.splitlines():
        record = json.loads(line)
        if record["set"] == SET:
            yield Record.read(record)


def count(record: Record) -> int:
    """Return how many solves there were."""
    return sum(said.verdict != "declined" for said in record.solves)


def wrong(record: Record) -> int:
    """Return how many solves say what must not be."""
    return sum(said.verdict in BAD for said in record.solves)


def keep(numbers: range) -> None:
    """Write the truths of problems, but for those that are planted."""
    problems = {number: case(number).exact for number in numbers}
    found = {number: exact.optimum().written() for number, exact in problems.items() if exact.planted is None}
    TRUTHS.write_text(json.dumps(found, indent=0) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Work through the numbers until there are as many solves as asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--solves", type=int, default=100_000, help="how many solves there are to be in the file")
    parser.add_argument("--out", type=Path, default=Path(".fuzz/solves.jsonl"), help="the file of what was solved")
    parser.add_argument("--first", type=int, default=0, help="the first number")
    parser.add_argument("--form", choices=FORMS, help="only problems of this form")
    parser.add_argument("--large", action="store_true", help="only large problems; from number 1000000 on larger ones")
    parser.add_argument("--list", action="store_true", help="print the table of the file, and solve nothing")
    parser.add_argument(
        "--again", action="store_true", help="solve again what went wrong, and what auto did not certify"
    )
    parser.add_argument("--keep", type=int, metavar="N", help="write the truths of the first N problems for the tests")
    options = parser.parse_args(arguments)
    if options.keep is not None:
        keep(range(options.keep))
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    records = {record.number: record for record in kept(options.out)}
    if options.again:
        records = {number: record for number, record in records.items() if not (wrong(record) or record.short())}
        lines = "".join(json.dumps(record._asdict()) + "\n" for record in records.values())
        options.out.write_text(lines, encoding="utf-8")
    done, number, started, here = sum(map(count, records.values())), options.first, perf_counter(), 0
    with options.out.open("a", encoding="utf-8") as file:
        while done < options.solves and not options.list:
            wanted = not options.large or number % LARGE == LARGE - 1
            if number not in records and wanted and options.form in (None, form_of(number)):
                records[number] = record = run(number)
                file.write(json.dumps(record._asdict()) + "\n")
                file.flush()
                done, here = done + count(record), here + count(record)
                rate = here / (perf_counter() - started)
                if wrong(record):
                    print(f"\nnumber {number}: {wrong(record)} of {count(record)} solves are wrong", file=sys.stderr)
                print(
                    f"\r{done} of {options.solves} solves, {rate:.0f} per second", end="", file=sys.stderr, flush=True
                )
            number += 1
    print(file=sys.stderr)
    found = sorted(records.values(), key=lambda record: record.number)
    print(table(found))
    return int(any(map(wrong, found)))


if __name__ == "__main__":
    sys.exit(main())
