"""What the README shows is what its code prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def block(language):
    return re.search(rf"```{language}\n(.*?)```", README, re.DOTALL).group(1)


def test_the_example_prints_what_the_readme_says():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block("python"), "README.md", "exec"), {})
    shown, found = block("text").splitlines(), printed.getvalue().splitlines()
    assert [NUMBER.sub("#", line) for line in found] == [NUMBER.sub("#", line) for line in shown]
    for line, other in zip(shown, found, strict=True):
        for number, measured in zip(NUMBER.findall(line), NUMBER.findall(other), strict=True):
            # Another BLAS may take an iteration more or less and stop at another gap; f and κ are the same.
            close = 0.1 if "." not in number and "e" not in number else 1e-7
            assert "e" in number or abs(float(measured) - float(number)) <= close * abs(float(number)), other


def test_every_command_of_the_readme_exists():
    from quartbench.cli import main

    named = set(re.findall(r"^    quartbench (\w+)", README, re.MULTILINE))
    assert {"solve", "precondition", "list", "kernels", "info"} <= named <= set(main.commands)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/studies.md", "docs/regression.md"])
def test_no_directory_of_a_page_is_to_hold_two_studies(page):
    text = re.sub(r"\\\n", " ", (ROOT / page).read_text(encoding="utf-8"))
    studies = {}
    for call in re.findall(r"quartbench compare [^`\n#]*--out \w+|qb\.compare\(.*out=\"\w+\"", text):
        name = re.search(r"--study (\w+)", call)
        where = re.search(r"(?:--out |out=\")(\w+)", call)[1]
        studies.setdefault(where, set()).add(name[1] if name else call)
    assert studies
    assert all(len(held) == 1 for held in studies.values()), studies
