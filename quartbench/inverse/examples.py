"""Which data show what inverse problems are? Seeded signals, images, clouds of points, and a protein; all offline."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from quartbench.errors import ProblemError, whole_number
from quartbench.instances.signals import diffraction_masks

# Signals and images: (measurements, squared moduli, truth) ------------------------------------------------------------


def gaussian_phase(n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return m complex Gaussian rows with E|q|² = 1 per entry, the squared moduli, and the Gaussian signal behind."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((m, 2 * n)).view(np.complex128) * np.sqrt(0.5)
    truth = rng.standard_normal(2 * n).view(np.complex128) * np.sqrt(0.5)
    return rows, np.abs(rows.conj() @ truth) ** 2, truth


def coded_image(image: np.ndarray, patterns: int, seed: int = 0, heavy: bool = False):
    """Return octanary masks, the squared moduli of the patterns of an image behind them, and the image.

    ``heavy`` multiplies every place of the masks by a Cauchy number between 10⁻² and 10²: some are dark in all of them.
    """
    image = np.asarray(image)
    masks = diffraction_masks(image.size, patterns, seed).reshape(patterns, *image.shape)
    if heavy:
        masks = masks * np.abs(np.random.default_rng(seed).standard_cauchy(image.shape)).clip(1e-2, 1e2)
    axes = tuple(range(1, masks.ndim))
    return masks, np.abs(np.fft.fftn(masks.conj() * image, axes=axes)) ** 2, image


def portrait(size: int = 256, colour: bool = False) -> np.ndarray:
    """Return Matplotlib's sample photograph (Grace Hopper, US Navy, public domain) with entries in [0, 1]."""
    from matplotlib.cbook import get_sample_data
    from PIL import Image

    size = whole_number(size, "size", 8)
    with Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)) as picture:
        square = picture.crop((0, 0, 512, 512)).resize((size, size))
        return np.asarray(square.convert("RGB" if colour else "L"), dtype=np.float64) / 255.0


# Points ---------------------------------------------------------------------------------------------------------------


def helix(points: int) -> np.ndarray:
    """Return points evenly along six turns of a helix."""
    t = np.linspace(0.0, 4.0 * np.pi, points)
    return np.stack([4.0 * np.cos(3.0 * t), 4.0 * np.sin(3.0 * t), 2.0 * t], axis=1)


def box(points: int, sides: Any = (1.0, 1.0, 1.0), seed: int = 0) -> np.ndarray:
    """Return uniform points in a box: a cube, or a rod where one side is long."""
    return np.random.default_rng(seed).random((points, len(sides))) * np.asarray(sides, dtype=float)


def bridge(points: int, seed: int = 0) -> np.ndarray:
    """Return uniform points in two unit cubes, and four in a hundred on a thin bridge between them."""
    across = max(points // 25, 8)
    left = (points - across) // 2
    rng = np.random.default_rng(seed)
    beam = np.linspace(1.0, 3.0, across)
    thin = np.stack([beam, *(0.5 + 0.1 * rng.random((2, across)))], axis=1)
    return np.concatenate(
        [rng.random((left, 3)), rng.random((points - across - left, 3)) + np.array([3.0, 0.0, 0.0]), thin]
    )


def clouds(
    count: int, points: int, bridges: int = 1, neighbours: int | None = None, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform points in unit cubes along a line, and pairs: near ones in each cube, a few bridges to the next.

    ``neighbours`` is how many near ones each point has; all in its cube, unless given.
    """
    rng = np.random.default_rng(seed)
    places, pairs = [], []
    for cube in range(count):
        here = rng.random((points, 3))
        within = np.stack(np.triu_indices(points, 1), axis=1) if neighbours is None else near_pairs(here, neighbours)
        pairs.append(within + cube * points)
        places.append(here + np.array([3.0 * cube, 0.0, 0.0]))
    for cube in range(count - 1):
        ends = [rng.choice(points, bridges, replace=False) + side * points for side in (cube, cube + 1)]
        pairs.append(np.stack(ends, axis=1))
    pairs = np.concatenate(pairs)
    return np.concatenate(places), pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def ubiquitin() -> np.ndarray:
    """Return the 602 heavy atoms of human ubiquitin (PDB 1UBI, public domain; its file says more), in angstrom."""
    text = files("quartbench.inverse").joinpath("data/1ubi.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return np.array([row[3:] for row in rows], dtype=np.float64)


# Which distances are known? -------------------------------------------------------------------------------------------


def random_pairs(points: int, share: float, seed: int = 0) -> np.ndarray:
    """Return a random share of all pairs."""
    first, second = np.triu_indices(points, 1)
    known = np.random.default_rng(seed).random(first.size) < share
    return np.stack([first[known], second[known]], axis=1)


def close_pairs(truth: np.ndarray, radius: float, share: float = 1.0, seed: int = 0) -> np.ndarray:
    """Return a random share of the pairs of points that are nearer than a radius."""
    from scipy.spatial import cKDTree

    pairs = np.sort(cKDTree(truth).query_pairs(radius, output_type="ndarray"), axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return pairs[np.random.default_rng(seed).random(len(pairs)) < share]


def near_pairs(truth: np.ndarray, neighbours: int) -> np.ndarray:
    """Return every point with its nearest neighbours."""
    from scipy.spatial import cKDTree

    _, near = cKDTree(truth).query(truth, k=neighbours + 1)
    pairs = np.stack([np.repeat(np.arange(len(truth)), neighbours), near[:, 1:].ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def among(pairs: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return the pairs of points that are kept, numbered as they then are."""
    number = np.full(int(pairs.max()) + 1, -1)
    kept = kept[kept < number.size]
    number[kept] = np.arange(kept.size)
    pairs = number[pairs]
    return pairs[(pairs >= 0).all(axis=1)]


def lengths(truth: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the distances of pairs of points."""
    return np.linalg.norm(truth[pairs[:, 0]] - truth[pairs[:, 1]], axis=1)


# Objects --------------------------------------------------------------------------------------------------------------


def digits(classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's handwritten digits below ``classes``, as rows of 64 pixels, and their labels."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ProblemError("the digits are scikit-learn's: pip install 'quartbench[data]'") from error
    data, labels = load_digits(return_X_y=True)
    kept = labels < whole_number(classes, "classes", 2, 10)
    return data[kept], labels[kept]
