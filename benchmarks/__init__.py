"""The asv suite, and the one thing all of it needs: machine code of the very commit that is measured.

asv swaps commits inside one environment, so each commit gets a Numba cache of its own. It is the directory that the
warm-up in asv.conf.json fills, and Numba reads its place once, at import: it is set before any benchmark imports it.
"""

import os

_environment, _commit = os.environ.get("ASV_ENV_DIR"), os.environ.get("ASV_COMMIT")
if _environment and _commit:  # neither is set in an existing environment: the package's own cache serves there
    os.environ["NUMBA_CACHE_DIR"] = os.path.join(_environment, "numba-cache", _commit)
