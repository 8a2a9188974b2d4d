"""One graph of every kind, and weights on its edges."""

import numpy as np
import pytest

from .graphs import GRAPHS


@pytest.fixture(params=GRAPHS, ids=GRAPHS.keys())
def kind(request):
    return request.param


@pytest.fixture
def edges(kind):
    return GRAPHS[kind]


@pytest.fixture
def points(edges):
    return int(edges.max()) + 1


@pytest.fixture
def weights(edges):
    return np.exp(np.random.default_rng(0).standard_normal(len(edges)))
