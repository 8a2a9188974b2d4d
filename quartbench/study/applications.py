"""A picture of each application: an image from its patterns, points from some distances, clusters, a protein."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quartbench.inverse.examples import close_pairs

from .figures import COLOURS, check_format, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Atoms that are nearer than this, in angstrom, are bonded.
BOND = 1.9


def draw_image(
    truth: np.ndarray, pattern: np.ndarray, start: np.ndarray, found: np.ndarray, words: str, path: Path
) -> Path:
    """Draw an image, one of its diffraction patterns, the start and what was recovered."""
    figure = _figure(path, (10, 2.9))
    shown = {
        "the image": truth,
        "one of its patterns (logarithm)": np.fft.fftshift(np.log10(pattern + 1e-6 * pattern.max()), axes=(0, 1)),
        "the spectral start": start,
        "recovered": found,
    }
    for panel, (title, picture) in zip(figure.subplots(1, 4), shown.items(), strict=True):
        limits = {} if picture is shown["one of its patterns (logarithm)"] else {"vmin": 0.0, "vmax": 1.0}
        picture = picture if limits else (picture - picture.min()) / np.ptp(picture)
        panel.imshow(np.clip(picture, 0.0, 1.0), cmap="gray", interpolation="nearest")
        panel.set_title(title, fontsize=9)
        panel.axis("off")
    return _written(figure, words, path)


def draw_points(truth: np.ndarray, found: np.ndarray, pairs: np.ndarray, history: Any, words: str, path: Path) -> Path:
    """Draw known distances, the points found over the true ones, and how the residual fell."""
    figure = _figure(path, (10, 3.4))
    known = figure.add_subplot(1, 3, 1)
    matrix = np.zeros((len(truth), len(truth)))
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = 1.0
    known.imshow(matrix, cmap="Greys", interpolation="antialiased")
    known.set_title(f"known distances: {len(pairs):,}", fontsize=9)
    known.set_xticks([])
    known.set_yticks([])
    place = figure.add_subplot(1, 3, 2, projection="3d")
    place.plot(*truth.T, "-", color=COLOURS[4], linewidth=3.0, alpha=0.5, label="truth")
    place.plot(*found.T, ".", color=COLOURS[0], markersize=1.8, label="found")
    place.legend(fontsize=8, frameon=False)
    place.set_axis_off()
    fall = figure.add_subplot(1, 3, 3)
    _draw_fall(fall, history)
    return _written(figure, words, path)


def draw_clusters(matrix: Any, data: np.ndarray, labels: np.ndarray, history: Any, words: str, path: Path) -> Path:
    """Draw similarities in the order of the clusters, the mean of each, and how the residual fell."""
    figure = _figure(path, (10, 3.4))
    panels = figure.subplots(1, 3)
    order = np.argsort(labels, kind="stable")
    matrix = matrix[order][:, order].tocoo()
    panels[0].plot(matrix.col, matrix.row, ",", color=COLOURS[0], alpha=0.6)
    panels[0].set(xlim=(0, matrix.shape[0]), ylim=(matrix.shape[0], 0), aspect="equal", xticks=[], yticks=[])
    panels[0].set_title("similarities, by cluster", fontsize=9)
    side = int(np.sqrt(data.shape[1]))
    means = [np.pad(data[labels == label].mean(axis=0).reshape(side, side), 1) for label in np.unique(labels)]
    means += [np.zeros_like(means[0])] * (-len(means) % 2)
    half = len(means) // 2
    panels[1].imshow(np.block([means[:half], means[half:]]), cmap="gray_r")
    panels[1].set_title("the mean of each cluster", fontsize=9)
    panels[1].axis("off")
    _draw_fall(panels[2], history)
    return _written(figure, words, path)


def draw_protein(truth: np.ndarray, found: np.ndarray, loose: np.ndarray, words: str, path: Path) -> Path:
    """Draw the atoms found over the true ones, and how far each is off."""
    figure = _figure(path, (10, 4.0))
    place = figure.add_subplot(1, 2, 1, projection="3d")
    bonds = close_pairs(truth, BOND)
    ends = np.full((3 * len(bonds), 3), np.nan)  # a gap after every bond
    ends[0::3], ends[1::3] = truth[bonds[:, 0]], truth[bonds[:, 1]]
    place.plot(*ends.T, "-", color=COLOURS[4], linewidth=1.0, alpha=0.8, label="PDB 1UBI")
    place.plot(*found.T, ".", color=COLOURS[0], markersize=3.0, label="found")
    place.legend(fontsize=8, frameon=False)
    place.set_axis_off()
    error = figure.add_subplot(1, 2, 2)
    off = np.maximum(np.linalg.norm(found - truth, axis=1), 1e-16)
    held = np.setdiff1d(np.arange(len(truth)), loose)
    error.semilogy(held, off[held], ".", color=COLOURS[0], markersize=3.0, label="held by four distances or more")
    if loose.size:
        error.semilogy(loose, off[loose], "x", color=COLOURS[1], label="held by fewer")
    error.set(xlabel="atom", ylabel="distance from its place (Å)")
    error.legend(fontsize=8, frameon=False)
    error.grid(alpha=0.3)
    error.spines[["top", "right"]].set_visible(False)
    return _written(figure, words, path)


def _figure(path: Path, size: tuple[float, float]) -> Figure:
    check_format(Path(path))
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, layout="constrained")


def _draw_fall(panel, history: Any) -> None:
    panel.plot(history.passes, history.residual, color=COLOURS[0], linewidth=1.6)
    if history.residual.min() < 0.1 * history.residual.max():
        panel.set_yscale("log")
    panel.set(xlabel="passes", ylabel="relative residual")
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)


def _written(figure: Figure, words: str, path: Path) -> Path:
    figure.suptitle(words, fontsize=10)
    return save(figure, Path(path))
