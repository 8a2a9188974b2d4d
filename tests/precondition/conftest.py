"""Matrices here are small: one BLAS thread each is fastest, and does not wait for cores that others use."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread():
    with threadpool_limits(1, "blas"):
        yield
