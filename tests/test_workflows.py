"""Do the workflows read as YAML, call targets and commands that there are, and use actions that still run?"""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
#: The first major version of each action that runs on Node 24; runners have no Node 20 any more.
FIRST = {"actions/checkout": 5, "actions/setup-python": 6, "actions/upload-artifact": 6}


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def workflow(request):
    return yaml.safe_load(request.param.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_actions_run_on_the_runners_of_today(workflow):
    for step in steps(workflow):
        if "uses" in step:
            name, _, version = step["uses"].partition("@v")
            assert int(version) >= FIRST[name], step["uses"]


def test_targets_and_scripts_are_there(workflow):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for step in steps(workflow):
        assert set(re.findall(r"\bmake ([a-z]+)", step.get("run", ""))) <= targets
        for script in re.findall(r"(?<!\S)\.ci/\w+", step.get("run", "")):
            assert (ROOT / script).is_file()


def test_jobs_end_and_say_what_they_may(workflow):
    assert workflow["permissions"]
    assert all(job["timeout-minutes"] <= 180 for job in workflow["jobs"].values())


def test_code_of_a_pull_request_runs_without_the_right_to_write():
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        if "pull_request" in workflow[True]:  # YAML takes "on" for true
            assert set(workflow["permissions"].values()) == {"read"}
        assert "pull_request_target" not in workflow[True]


def test_the_comment_waits_for_the_gate():
    found = yaml.safe_load((ROOT / ".github" / "workflows" / "comment.yml").read_text(encoding="utf-8"))
    gate = yaml.safe_load((ROOT / ".github" / "workflows" / "gate.yml").read_text(encoding="utf-8"))
    assert found[True]["workflow_run"]["workflows"] == [gate["name"]]
    assert not any("uses" in step for step in steps(found)), "nothing of the pull request is checked out"
