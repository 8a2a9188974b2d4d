"""The gate on real commits: regressions planted in a clone are caught by asv's real measurements, noise is not.

Slow: asv makes an environment, and each commit compiles the kernels that the chosen benchmarks call.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).parent / "quartbench"

KERNEL = "gate.Kernels.time_400_evaluations('dense 1000×250')"
#: Its kernel, of sparse rows, calls one on images, which is in another file.
CALLER = "gate.Kernels.time_400_evaluations('sparse 10000×500')"
TIME = "gate.SolverTimes.time_to_gap('homgd')"
ITERATIONS = "gate.SolverCounts.track_iterations('spectrum 500×20', 'homgd')"

pytestmark = pytest.mark.slow


class Clone:
    """A clone of the working tree, with commits of our own on top of it."""

    def __init__(self, path):
        self.path = path
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(path)], check=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        for name in listed.stdout.decode().split("\0")[:-1]:
            source, target = ROOT / name, path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.exists():
                target.write_bytes(source.read_bytes())
            else:
                target.unlink(missing_ok=True)
        # Without the warm-up of all kernels each commit compiles only what it is measured with.
        self.change("asv.conf.json", "python -m quartbench warmup", "python -c pass")
        self.base = self.commit("base")

    def git(self, *arguments):
        command = ["git", "-c", "user.name=Test", "-c", "user.email=test@localhost", *arguments]
        return subprocess.run(command, cwd=self.path, check=True, capture_output=True, text=True).stdout.strip()

    def change(self, name, old, new):
        path = self.path / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} no longer has the place to plant a regression in"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def commit(self, message):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def gate(self, *benchmarks, base=None):
        """Run the command for the last commit; return its exit code, and every verdict by name."""
        chosen = [word for name in benchmarks for word in ("--bench", f"^{name.translate(ESCAPED)}$")]
        arguments = [base or self.base, "HEAD", *chosen, "--json", str(self.path / ".asv" / "gate.json")]
        (self.path / ".asv").mkdir(exist_ok=True)
        done = subprocess.run([COMMAND, "gate", *arguments], cwd=self.path, capture_output=True, text=True)
        print(done.stdout, done.stderr)
        verdicts = json.loads((self.path / ".asv" / "gate.json").read_text(encoding="utf-8"))["verdicts"]
        return done.returncode, {verdict["record"]["name"]: verdict for verdict in verdicts}


ESCAPED = {ord(character): f"\\{character}" for character in ".()"}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Return one clone for all tests of this file, so that asv makes one environment."""
    return Clone(tmp_path_factory.mktemp("planted") / "clone")


@pytest.fixture(autouse=True)
def _base_again(clone):
    """Start every test from the same tree."""
    clone.git("checkout", "--quiet", "--detach", clone.base)


def test_a_kernel_slowed_by_half_is_caught(clone):
    whole = "    total = _evaluate_range(rows, rank, x, 0, rows.shape[0] // rank, s, gradient)\n"
    # Rows that are still in cache are read again in half the time: three quarters of them make the kernel 1.5 × slower.
    again = "    _evaluate_range(rows, rank, x, 0, rows.shape[0] // rank * 3 // 4, s, gradient.copy())\n"
    clone.change("quartbench/kernels/rows.py", whole, again + whole)
    clone.commit("three quarters of the work again")
    code, verdicts = clone.gate(KERNEL)
    assert verdicts[KERNEL]["outcome"] == "regression"
    assert code == 1


def test_a_changed_callee_in_another_file_is_seen(clone):
    before = clone.git("hash-object", "quartbench/kernels/sparse.py")
    loop = "        for k in range(i * rank, (i + 1) * rank):\n"
    old = f"        total += q * q\n{loop}            weights[k] = 4.0 * q * image[k]\n"
    slow = "        slow = q\n        for _ in range(12):\n            slow = np.sqrt(1.0 + slow * slow)\n"
    clone.change("quartbench/kernels/images.py", old, slow + old.replace("q * q", "q * q + 1e-300 * slow"))
    clone.commit("a slow callee of the kernels on sparse rows")
    assert clone.git("hash-object", "quartbench/kernels/sparse.py") == before, "the caller's file is as it was"
    code, verdicts = clone.gate(CALLER)
    assert verdicts[CALLER]["outcome"] == "regression", "stale machine code would be as fast as before"
    assert code == 1


def test_ten_percent_more_iterations_are_caught_by_their_count_alone(clone):
    old = "            yield Iterate(y.point, homogenised(y.rho), search.used, evaluated=y[1:])\n"
    extra = "            taken += 1\n            if taken % 10 == 0:\n    " + old
    clone.change("quartbench/solvers/homgd.py", old, old + extra)
    clone.change(
        "quartbench/solvers/homgd.py",
        "        search = LineSearch(form, step, y, self.growth)\n",
        "        search = LineSearch(form, step, y, self.growth)\n        taken = 0\n",
    )
    clone.commit("every tenth iteration counts twice")
    code, verdicts = clone.gate(ITERATIONS, TIME)
    assert verdicts[ITERATIONS]["outcome"] == "regression"
    assert 1.05 < verdicts[ITERATIONS]["ratio"] < 1.15
    assert verdicts[TIME]["outcome"] in ("fine", "worse", "improvement")
    assert code == 1


def test_a_benchmark_that_raises_is_exit_code_2_and_says_why(clone):
    old = "        form, step = problem.form, RootStep(problem, metric)\n        y = evaluate(form, start)\n"
    clone.change("quartbench/solvers/homgd.py", old, "        raise RuntimeError('planted')\n" + old)
    clone.commit("a solver that raises")
    code, verdicts = clone.gate(ITERATIONS, TIME)
    for name in (ITERATIONS, TIME):
        assert verdicts[name]["outcome"] == "unmeasured"
        assert "RuntimeError" in verdicts[name]["why"]
        assert "planted" in verdicts[name]["why"]
    assert code == 2


@pytest.fixture(params=["a quiet machine", "one core taken"])
def _load(request):
    """Let another process take one core, or not."""
    if request.param == "a quiet machine":
        yield
        return
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        other.kill()
        other.wait()


@pytest.mark.usefixtures("_load")
def test_a_commit_against_itself_passes_five_times_in_a_row(clone):
    for _ in range(5):
        code, verdicts = clone.gate(KERNEL, ITERATIONS, TIME, base="HEAD")
        assert verdicts[ITERATIONS]["ratio"] == 1
        assert code == 0
