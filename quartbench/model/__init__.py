"""The mathematics: problems with their homogenisation, and certificates."""

from .certificate import Certificate, certify
from .problem import Normalised, Problem

__all__ = ["Certificate", "Normalised", "Problem", "certify"]
