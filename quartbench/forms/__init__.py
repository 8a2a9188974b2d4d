"""The quartic forms ρ, one kind per file: how each stores its terms, and what it does better than the defaults."""

from .base import FORMS, Form, Image, register_form
from .complex import ComplexForm
from .dense import DenseForm
from .diffraction import DiffractionForm
from .epigraph import Epigraph
from .given import form_of, require_form
from .gram import GramForm
from .graph import GraphForm
from .operator import OperatorForm
from .plain import PlainForm
from .sparse import SparseForm
from .stacked import StackedForm
from .terms import TermForm
from .weighted_graph import WeightedGraphForm

__all__ = [
    "FORMS",
    "ComplexForm",
    "DenseForm",
    "DiffractionForm",
    "Epigraph",
    "Form",
    "GramForm",
    "GraphForm",
    "Image",
    "OperatorForm",
    "PlainForm",
    "SparseForm",
    "StackedForm",
    "TermForm",
    "WeightedGraphForm",
    "form_of",
    "register_form",
    "require_form",
]
