"""What does a study say? Costs, profiles and fits of its runs, claims decided by them, figures, and the page."""

from .page import Report, write

__all__ = ["Report", "write"]
