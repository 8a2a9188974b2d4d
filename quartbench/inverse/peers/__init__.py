"""Other people's methods for inverse problems, beside ours under the same driver.

Where the package that a peer needs is not installed, the peer is not registered: ``pip install 'quartbench[peers]'``.
"""

from importlib.util import find_spec

from . import clusters as clusters
from . import wirtinger as wirtinger

if find_spec("greenlet") is not None:
    from . import minimisers as minimisers
