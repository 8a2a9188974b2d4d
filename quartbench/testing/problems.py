"""Which small problems try everything? Every kind of form, on every cone that it allows, with known minimisers."""

from __future__ import annotations

import numpy as np

from quartbench import instances
from quartbench.cones import Centred, Cone, Free, Orthant, SecondOrder
from quartbench.forms import Form, GramForm, StackedForm
from quartbench.model import Problem


def problems(seed: int = 0) -> dict[str, Problem]:
    """Return small problems with known minimisers: every kind of form, on every cone it allows.

    Examples
    --------
    >>> from quartbench.testing import problems
    >>> list(problems())[:3]
    ['dense, free', 'dense, orthant', 'dense, second-order']
    """
    rng = np.random.default_rng(seed)
    dense: Form = StackedForm(rng.standard_normal((40, 8)))
    cases: dict[str, tuple[Form, Cone]] = {
        "dense, free": (dense, Free()),
        "dense, orthant": (dense, Orthant()),
        "dense, second-order": (dense, SecondOrder()),
        "rank 3, free": (StackedForm(rng.standard_normal((60, 8)), rank=3), Free()),
        "sparse, free": (instances.sparse(60, 8, 0.3, seed=seed).form, Free()),
        "complex, free": (instances.complex_gaussian(30, 4, seed=seed).form, Free()),
        "graph, centred": (instances.geometric(12, 2, degree=4, seed=seed).form, Centred()),
        "Gram, free": (GramForm(6, 2), Free()),
        "Gram, orthant": (GramForm(6, 2), Orthant()),
        "Gram, centred": (GramForm(6, 2), Centred()),
    }
    return {name: instances.planted(form, seed=seed, cone=cone) for name, (form, cone) in cases.items()}
