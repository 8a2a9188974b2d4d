"""Do the tests run where one core is allowed, as in a small container?"""

import os

import pytest

SCRIPT = """
import os, sys
os.environ.pop("NUMBA_NUM_THREADS", None)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "tests/kernels/test_edges.py", "-k", "agree_with_serial"]))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not say which cores are allowed")
def test_kernels_have_two_threads_on_one_core(run_python):
    # A filter of warnings that named a class of Numba imported it before the tests had set its threads.
    assert "passed" in run_python(SCRIPT)
