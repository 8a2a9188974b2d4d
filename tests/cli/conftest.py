"""A small problem in every kind of file that a command reads."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from quartbench import instances


@pytest.fixture
def files(tmp_path):
    problem = instances.spectrum(m=60, n=8, sigma_min=0.2, seed=0)
    np.save(tmp_path / "A.npy", problem.form.rows)
    np.save(tmp_path / "c.npy", problem.c)
    scipy.io.mmwrite(tmp_path / "A.mtx", sp.coo_matrix(problem.form.rows))
    problem.save(tmp_path / "problem.npz")
    return tmp_path
