"""
Phase retrieval
===============

A photograph from the intensities of eight coded diffraction patterns: all phases are lost, and found again.
"""

import numpy as np
from matplotlib import pyplot as plt

import quartbench as qb

image = qb.inverse.examples.portrait(64)
masks, d, truth = qb.inverse.examples.coded_image(image, patterns=8, seed=0)
found = qb.inverse.phase(masks, d)
error = qb.inverse.phase_error(found.x, truth)
print(f"{found.status} after {found.passes} passes, error {error:.0e}")

figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
pattern = np.fft.fftshift(np.log10(d[0] + 1e-6 * d[0].max()))
pictures = {
    "the image": truth,
    "one of its patterns": pattern,
    "recovered": np.abs(found.x),
}
for panel, (title, picture) in zip(panels, pictures.items(), strict=True):
    panel.imshow(picture, cmap="gray")
    panel.set_title(title)
    panel.axis("off")
plt.show()
