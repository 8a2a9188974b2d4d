"""What is a claim? A sentence with the small pure function that decides it, and the finding that this makes.

A test takes the prepared runs and returns a finding: the verdict, the evidence in words and numbers, and the keys of
the runs it rests on; or None where the runs at hand cannot decide it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from quartbench.study import costs

HOLDS, FAILS, ONLY, OPEN = "holds", "does not hold", "holds only when", "not measured in this study"


@dataclass(frozen=True)
class Finding:
    """What the runs say of a claim: the evidence in a sentence, its numbers, and a line for each of several cases."""

    verdict: str
    evidence: str
    numbers: dict[str, float]
    keys: list[str]
    condition: str = ""
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A sentence, where it stands, the test that decides it, and the studies whose runs can.

    The test is given the runs on convex problems, or those on inverse problems where ``inverse`` is set.
    """

    name: str
    source: str
    sentence: str
    studies: str
    test: Callable[[pd.DataFrame], Finding | None] = field(repr=False)
    inverse: bool = False

    def decide(self, runs: pd.DataFrame) -> Finding:
        """Return the finding; that nothing can be said is one too."""
        found = self.test(costs.recoveries(runs) if self.inverse else costs.convex(runs))
        if found is None:
            return Finding(OPEN, f"The study {self.studies} measures it.", {}, [])
        return found


#: Every claim, in the order of the page.
CLAIMS: list[Claim] = []


def claim(name: str, source: str, sentence: str, studies: str, inverse: bool = False) -> Callable:
    """Enter a test into the list of claims, in the order of the page."""

    def enter(test: Callable[[pd.DataFrame], Finding | None]) -> Callable[[pd.DataFrame], Finding | None]:
        CLAIMS.append(Claim(name, source, sentence, studies, test, inverse))
        return test

    return enter
