"""Which terms stand for all? ρ̃ from a sample of them, drawn evenly or by their Lewis weights, held by the driver."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.forms import Form, StackedForm, TermForm
from quartbench.precondition import lewis_weights

#: Rows for each unknown that a sample has at least.
LEAST = 8

#: The accuracy of the Lewis weights that terms are drawn by.
ROUGH = 0.5


def reference(form: Form, share: float, sampling: str, seed: int) -> TermForm:
    """Return ρ̃(x) = Σ_{i∈I} ⟨x,Bᵢx⟩²/pᵢ, where each term is in I with its own probability pᵢ: an unbiased ρ.

    Parameters
    ----------
    form : Form
        One whose terms can be read one by one.
    share : float
        The share of the terms, about; more where that would be too few rows for the unknowns.
    sampling : {"uniform", "lewis"}
        With equal probabilities; or with pᵢ in proportion to the leverage τᵢTr(B*⁻¹Bᵢ) ~ τᵢ² of the terms in the metric
        of their Lewis weights, which no few terms that carry a direction escape. That takes a few sweeps.
    seed : int
    """
    if not (isinstance(form, TermForm) and form.reads_terms and form.row_dtype.kind == "f"):
        raise ProblemError(f"a sample needs a form whose terms can be read one by one, found {type(form).__name__}")
    count = min(max(share * form.terms, LEAST * form.dim / form.rank), float(form.terms))
    sizes = np.ones(form.terms) if sampling == "uniform" else lewis_weights(form.twin(), eps=ROUGH).tau ** 2
    chances = probabilities(sizes, count)
    picked = np.flatnonzero(np.random.default_rng(seed).random(form.terms) < chances)
    roots = form.scale * np.repeat(chances[picked] ** -0.25, form.rank)
    rows = form.twin().term_rows(picked)
    return StackedForm(sp.diags(roots) @ rows if sp.issparse(rows) else roots[:, None] * rows, form.rank)


def probabilities(sizes: np.ndarray, count: float) -> np.ndarray:
    """Return pᵢ = min(1, t·sizeᵢ) with the t for which they add up to ``count``."""
    if count >= sizes.size:
        return np.ones(sizes.size)
    descending = np.sort(sizes)[::-1]
    # With the k largest certain, t = (count − k)/Σ of the rest; the right k is the first for which the next is below 1.
    rest = np.cumsum(descending[::-1])[::-1]
    certain = np.arange(sizes.size)
    t = (count - certain) / rest
    k = int(np.argmax(t * descending <= 1.0))
    return np.minimum(1.0, t[k] * sizes)
