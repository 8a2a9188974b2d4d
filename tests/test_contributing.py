"""The recipes of CONTRIBUTING.md work as they are written."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
SOLVER, FORM, CONE, CLAIM = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)


def _command(check):
    """Return what ``python -c`` is given for a battery, with the folder of the recipes on the path."""
    (command,) = re.findall(rf'python -c "(from quartbench.testing import {check};.*?)"', TEXT, flags=re.S)
    joined = re.sub(r"\\\n\s*", "", command)
    return f"import sys; sys.path.insert(0, sys.argv[1])\n{joined}"


def test_the_solver_of_the_recipe_passes_the_battery(run_python, tmp_path):
    (tmp_path / "steepest.py").write_text(SOLVER, encoding="utf-8")
    report = run_python(_command("check_solver"), tmp_path)
    assert "dense, free, uniform  " in report
    assert "steepest needs the whole space" in report


def test_the_form_and_the_cone_of_the_recipes_pass_the_batteries(run_python, tmp_path):
    (tmp_path / "smooth.py").write_text(FORM, encoding="utf-8")
    (tmp_path / "rising.py").write_text(CONE, encoding="utf-8")
    assert "  file         arrays and back" in run_python(_command("check_form"), tmp_path).splitlines()
    assert "  projections  in metrics: identity" in run_python(_command("check_cone"), tmp_path)


def test_the_claim_of_the_recipe_decides(run_python):
    script = """
import sys
from quartbench.study.report import claims
exec(sys.argv[1], vars(claims))
from tests.study.frames import frame, run
cells = lambda passes, **columns: run(gaps=(1.0, 0.1, 0.01), passes=(1, 2, passes), **columns)
for fewer, more in ((10, 30), (30, 10)):
    print(claims.CLAIMS[-1].decide(frame(cells(fewer, method="homcg"), cells(more, method="accel-homgd"))).verdict)
print(claims.CLAIMS[-1].decide(frame(run())).verdict)
"""
    assert run_python(script, CLAIM).splitlines() == ["holds", "does not hold", "not measured in this study"]


def test_every_file_that_it_names_exists():
    root = Path(__file__).parents[1]
    for name in re.findall(r"`((?:quartbench|tests)/[\w/.]+)`", TEXT):
        assert (root / name).exists(), name
