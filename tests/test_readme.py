"""What the README shows is what its code prints."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
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
