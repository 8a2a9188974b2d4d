"""The mathematics: forms, cones, metrics, problems with their homogenisation, certificates and bounds."""

from .bounds import Bounds
from .certificate import Certificate, certificate_metric, certify, uniform_convexity_gap
from .cones import CONES, Centred, Cone, Free, Orthant, SecondOrder
from .forms import FORMS, ComplexForm, Form, GramForm, GraphForm, StackedForm
from .metrics import METRICS, Cholesky, Diagonal, Identity, Laplacian, Metric, weighted
from .problem import Normalised, Problem

__all__ = [
    "CONES",
    "FORMS",
    "METRICS",
    "Bounds",
    "Centred",
    "Certificate",
    "Cholesky",
    "ComplexForm",
    "Cone",
    "Diagonal",
    "Form",
    "Free",
    "GramForm",
    "GraphForm",
    "Identity",
    "Laplacian",
    "Metric",
    "Normalised",
    "Orthant",
    "Problem",
    "SecondOrder",
    "StackedForm",
    "certificate_metric",
    "certify",
    "uniform_convexity_gap",
    "weighted",
]
