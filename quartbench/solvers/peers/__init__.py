"""Other people's methods beside ours, in the same registry and under the same driver: SciPy's and Clarabel's.

Where the package that a peer needs is not installed, the peer is not registered: ``pip install 'quartbench[peers]'``.
"""

from importlib.util import find_spec

if find_spec("greenlet") is not None:
    from . import minimisers as minimisers
if find_spec("clarabel") is not None:
    from . import conic as conic
