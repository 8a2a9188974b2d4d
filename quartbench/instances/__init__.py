"""Seeded generators of problems, and their register: the same name, arguments and seed give the same bits.

Every problem records its ``origin``, from which :func:`remake` makes it again.
"""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping
from difflib import get_close_matches

from quartbench.errors import ProblemError, unknown_name
from quartbench.model import Problem

from .arguments import PROBLEM_SET
from .clusters import Similarity, partition_similarity, planted_partition
from .coherence import coherent, coherent_scores
from .graphs import (
    barbell,
    barbell_edges,
    geometric,
    geometric_edges,
    geometric_points,
    grid,
    grid_edges,
    regular,
    regular_edges,
    ring,
    ring_edges,
)
from .matrices import blocks, degenerate, heavy_tailed, orthant, scaled, sparse, spectrum
from .planted import planted
from .saved import saved
from .signals import coded_diffraction, complex_gaussian, diffraction_masks

#: The generators by name, each called with plain numbers and words (``planted`` takes a form, so it is not here).
INSTANCES: dict[str, Callable[..., Problem]] = {
    function.__name__: function
    for function in (
        spectrum,
        coherent,
        blocks,
        heavy_tailed,
        scaled,
        sparse,
        orthant,
        degenerate,
        geometric,
        regular,
        ring,
        barbell,
        grid,
        complex_gaussian,
        coded_diffraction,
        planted_partition,
    )
}


#: What can be made by name: the generators, and problems that were saved.
MADE: Mapping[str, Callable[..., Problem]] = ChainMap(INSTANCES, {"saved": saved})


def make(name: str, **arguments: object) -> Problem:
    """Return the problem of a registered generator.

    Parameters
    ----------
    name : str
        A key of ``INSTANCES``.
    **arguments
        Those of the generator.

    Examples
    --------
    >>> qb.instances.make("spectrum", m=50, n=5, sigma_min=0.5, seed=1).dim
    5
    """
    if not isinstance(name, str) or name not in MADE:
        raise unknown_name("instance", name, INSTANCES)
    signature = inspect.signature(MADE[name])
    for given in arguments:
        if given not in signature.parameters:
            near = get_close_matches(given, signature.parameters, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ProblemError(f"{name} has no argument {given!r}{hint} (it is called as {_call(name, signature)})")
    missing = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty and parameter.name not in arguments
    ]
    if missing:
        wanted = " and ".join(repr(parameter) for parameter in missing)
        raise ProblemError(f"{name} needs {wanted} (it is called as {_call(name, signature)})")
    return MADE[name](**arguments)


def remake(origin: dict) -> Problem:
    """Return the problem that has this origin, made again bit for bit on the same machine.

    Examples
    --------
    >>> problem = qb.instances.spectrum(50, 5, sigma_min=0.5, seed=1)
    >>> bool((qb.instances.remake(problem.origin).c == problem.c).all())
    True
    """
    arguments = dict(origin)
    version, name = arguments.pop("version", None), arguments.pop("generator", None)
    if version != PROBLEM_SET:
        raise ProblemError(f"origin must be of problem set {PROBLEM_SET}, found version {version!r}")
    if name == planted.__name__:
        raise ProblemError("origin keeps no form, so call planted(form, seed, cone) again with the one it had")
    return make(name, **arguments)


def _call(name: str, signature: inspect.Signature) -> str:
    shown = (
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in signature.parameters.values()
    )
    return f"{name}({', '.join(shown)})"


__all__ = [
    "INSTANCES",
    "MADE",
    "PROBLEM_SET",
    "Similarity",
    "barbell",
    "barbell_edges",
    "blocks",
    "coded_diffraction",
    "coherent",
    "coherent_scores",
    "complex_gaussian",
    "degenerate",
    "diffraction_masks",
    "geometric",
    "geometric_edges",
    "geometric_points",
    "grid",
    "grid_edges",
    "heavy_tailed",
    "make",
    "orthant",
    "partition_similarity",
    "planted",
    "planted_partition",
    "regular",
    "regular_edges",
    "remake",
    "ring",
    "ring_edges",
    "saved",
    "scaled",
    "sparse",
    "spectrum",
]
