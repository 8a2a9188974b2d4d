"""What the tests of the gate share: results that asv recorded for two commits, from the suite in recorded/suite.py."""

from pathlib import Path

from quartbench.gate.commits import Pair

RECORDED = Path(__file__).parent / "recorded"
PAIR = Pair("be82bc0cfde759043888e2f318041cf8f973f3a8", "868acb816878990c85b8034359307792e9daba90")
