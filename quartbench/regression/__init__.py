"""ℓ4 regression: fits whose largest residuals count most, as homogenised quartic problems, certified."""

from typing import TYPE_CHECKING, Any

from .l4 import Regression, l4_regression
from .methods import methods
from .placement import edge_rows, placement

if TYPE_CHECKING:
    from .estimator import QuarticRegressor

__all__ = ["QuarticRegressor", "Regression", "edge_rows", "l4_regression", "methods", "placement"]


def __getattr__(name: str) -> Any:
    """Import the estimator when it is first asked for: scikit-learn is an extra, and slow to import."""
    if name == "QuarticRegressor":
        from .estimator import QuarticRegressor

        return QuarticRegressor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
