"""Does what the paper says hold? Every checkable sentence with the test that decides it, in the order of the page."""

from .base import CLAIMS, FAILS, HOLDS, ONLY, OPEN, Claim, Finding, claim
from .evidence import compare, pick, split

# Each file enters its claims when it is imported: this is their order on the page.
# isort: off
from . import homogenisation
from . import preconditioning
from . import theorems
from . import weights
from . import inverse
from . import cluster
from . import additions
# isort: on

__all__ = [
    "CLAIMS",
    "FAILS",
    "HOLDS",
    "ONLY",
    "OPEN",
    "Claim",
    "Finding",
    "additions",
    "claim",
    "cluster",
    "compare",
    "homogenisation",
    "inverse",
    "pick",
    "preconditioning",
    "split",
    "theorems",
    "weights",
]
