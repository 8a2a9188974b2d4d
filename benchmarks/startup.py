"""What a new process pays before it is of use: imports, the command line, the first solve, the first compilation."""

from . import common

PROBLEM = """
import quartbench
problem = quartbench.instances.spectrum(m=500, n=20, sigma_min=0.1)
"""


class _NewProcess:
    version = common.PROBLEM_SET
    rounds, repeat, warmup_time, number = 1, (6, 6, 20.0), 0.0, 1
    timeout = 300


class Import(_NewProcess):
    """Imports in a new process, kernels compiled before; numba's own is what nothing of ours can undercut."""

    def timeraw_numba(self):
        return "import numba"

    def timeraw_quartbench(self):
        return "import quartbench"


class CommandLine(_NewProcess):
    """From the start of a new process to the version, and to the list of everything there is."""

    params = (["--version", "list"],)
    param_names = ("arguments",)

    def timeraw_command(self, arguments):
        return f"""
        import contextlib, io
        from quartbench.cli import main
        with contextlib.redirect_stdout(io.StringIO()):
            main({arguments.split()!r}, standalone_mode=False)
        """


class FirstSolve(_NewProcess):
    """The first solve of a process after its imports: machine code comes from disk, nothing is compiled."""

    def timeraw_solve(self):
        return "quartbench.solve(problem)", PROBLEM


class ColdCompile(_NewProcess):
    """The first solve of all, with an empty cache: what its kernels take to compile."""

    repeat = 1

    def timeraw_solve(self):
        # Numba reads its place once, at import, so it is set before; the directory goes with the process.
        empty = "import os, tempfile\nplace = tempfile.TemporaryDirectory()\n"
        return "quartbench.solve(problem)", f'{empty}os.environ["NUMBA_CACHE_DIR"] = place.name\n{PROBLEM}'
