"""``quartbench demo``: what inverse problems are, a picture each in under a minute."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from .display import require_folder, time_words


@click.command()
@click.argument("what", type=click.Choice(["phase", "distances", "clusters", "protein"]))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The picture: demo-WHAT.png unless given.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the masks, or the known pairs.")
def demo(what: str, out: Path | None, seed: int) -> None:
    """Recover an image, points, clusters or a protein.

    phase: a photograph from 12 coded diffraction patterns. distances: a helix of 1000 points from a tenth of their
    distances. clusters: handwritten digits from their similarities (needs scikit-learn). protein: ubiquitin from half
    of the distances below 6 Å. What is found is drawn. All data are on this machine already.
    """
    from quartbench.study.figures import check_format

    path = out or Path(f"demo-{what}.png")
    check_format(path)
    require_folder(path)
    began = perf_counter()
    words = {"phase": _phase, "distances": _distances, "clusters": _clusters, "protein": _protein}[what](path, seed)
    click.echo(f"{words}; {time_words(perf_counter() - began)} in all, with the picture\n{path}")


def _phase(path: Path, seed: int) -> str:
    import numpy as np

    from quartbench import DiffractionForm, inverse
    from quartbench.study.applications import draw_image

    masks, d, truth = inverse.examples.coded_image(inverse.examples.portrait(256), 12, seed)
    form = DiffractionForm(masks)
    found = inverse.phase(form, d, tol=1e-7, progress=sys.stderr.isatty())
    start = np.abs(form.native(inverse.spectral_start(form, d.reshape(-1))))
    error = inverse.phase_error(found.x, truth)
    words = (
        f"256 × 256 image from 12 coded diffraction patterns: relative error {error:.0e}, "
        f"{found.passes} passes, {time_words(found.seconds)}"
    )
    draw_image(truth, d[0], start / start.max(), np.abs(found.x), words, path)
    return words


def _distances(path: Path, seed: int) -> str:
    from quartbench import inverse
    from quartbench.study.applications import draw_points

    truth = inverse.examples.helix(1000)
    pairs = inverse.examples.random_pairs(1000, 0.1, seed)
    known = inverse.examples.lengths(truth, pairs)
    found = inverse.distances(known, pairs, progress=sys.stderr.isatty())
    words = (
        f"helix of 1000 points from 10 % of their distances: RMSD {inverse.rmsd(found.x, truth):.0e}, "
        f"{found.passes} passes, {time_words(found.seconds)}"
    )
    draw_points(truth, inverse.procrustes(found.x, truth), pairs, _longest(found), words, path)
    return words


def _clusters(path: Path, seed: int) -> str:
    from quartbench import inverse
    from quartbench.study.applications import draw_clusters

    data, truth = inverse.examples.digits()
    matrix = inverse.similarity(data)
    found = inverse.symnmf(matrix, 10, restarts=4, seed=seed, progress=sys.stderr.isatty())
    accuracy = inverse.clustering_accuracy(found.labels, truth)
    mutual = inverse.normalised_mutual_information(found.labels, truth)
    words = (
        f"{len(data)} handwritten digits in 10 clusters, no label seen: accuracy {accuracy:.2f}, NMI {mutual:.2f}, "
        f"{found.passes} passes, {time_words(found.seconds)}"
    )
    draw_clusters(matrix, data, found.labels, found.history, words, path)
    return words


def _protein(path: Path, seed: int) -> str:
    import numpy as np

    from quartbench import inverse
    from quartbench.study.applications import draw_protein

    atoms = inverse.examples.ubiquitin()
    pairs = inverse.examples.close_pairs(atoms, 6.0, 0.5, seed)
    kept = inverse.largest_part(len(atoms), pairs)
    atoms, pairs = atoms[kept], inverse.examples.among(pairs, kept)
    known = inverse.examples.lengths(atoms, pairs)
    found = inverse.distances(known, pairs, seed=seed, progress=sys.stderr.isatty())
    held = np.setdiff1d(np.arange(len(atoms)), found.loose)
    placed = inverse.procrustes(found.x[held], atoms[held])
    error = float(np.sqrt(((placed - atoms[held]) ** 2).sum(axis=1).mean()))
    words = (
        f"ubiquitin, {len(atoms)} atoms from {len(pairs):,} distances, half of those below 6 Å: RMSD {error:.0e} Å "
        f"of the {held.size} atoms that enough distances hold, {time_words(found.seconds)}"
    )
    anchors = {int(i): atoms[i] for i in held}
    draw_protein(atoms, inverse.onto_anchors(found.x, anchors), found.loose, words, path)
    return words


def _longest(found: Any) -> Any:
    """Return the history of the longest stage: where the last one begins fitted, its own is one point."""
    return max((stage.history for stage in found.stages if stage.history is not None), key=len)
