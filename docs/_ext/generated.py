"""Tables that are made when the pages are: from measurements, from the registers, from the command line itself."""

import csv
import re
import statistics
import tomllib
from pathlib import Path

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent

#: The runs of docs/methods.toml.
MEASURED = DOCS / "methods.csv"
#: The number of a statement in the name of a test.
NUMBERED = re.compile(r"\b((?:proposition|theorem|lemma|corollary) \d) (\d+)")
#: As many signs of code as a page is wide.
WIDTH = 88


def measured(path=MEASURED):
    """Return {instance: {method: (seconds, passes)}} of the runs that reached their gap; (None, None) of the others.

    Seconds are those of the whole call, certificate included: the median of its repeats.
    """
    with path.open(encoding="utf-8", newline="") as file:
        runs = list(csv.DictReader(file))
    study = tomllib.loads((DOCS / "methods.toml").read_text(encoding="utf-8"))
    kinds = [one["generator"] for group in study["group"] for one in group["instances"]]
    runs.sort(key=lambda run: (kinds.index(run["generator"]), int(run["m"]), int(run["n"]), run["instance"]))
    found = {}
    for run in runs:
        found.setdefault(run["instance"], {}).setdefault(run["method"], []).append(run)
    return {
        instance: {method: _cost(repeats) for method, repeats in methods.items()} for instance, methods in found.items()
    }


def _cost(repeats):
    if any(run["success"] != "True" for run in repeats):
        return None, None
    seconds = statistics.median(float(run["wall_seconds"]) for run in repeats)
    return seconds, statistics.median_low(int(run["passes"]) for run in repeats)


class Methods(SphinxDirective):
    """What each method costs on each kind of problem: times over passes, the fastest of each row in bold."""

    def run(self):
        """Return the table."""
        from quartbench.study.kernels import duration

        costs = measured()
        order = ["auto", "homcg", "homnewton", "homnewton-cg", "accel-homgd", "homgd", "gd"]
        rows = []
        for instance, methods in costs.items():
            best = min(seconds for seconds, _ in methods.values() if seconds is not None)
            row = [typeset(instance)]
            for method in order:
                seconds, passes = methods.get(method, (None, None))
                if seconds is None:
                    row.append(nodes.paragraph("", "–"))
                    continue
                kind = nodes.strong if seconds <= 1.05 * best else nodes.inline
                shown = kind("", duration(seconds)), nodes.inline("", str(passes), classes=["passes"])
                row.append(nodes.paragraph("", "", *shown))
            rows.append(row)
        return [table(["problem", *order], rows, "measured")]


class Statements(SphinxDirective):
    """What the paper proves, with its files, tests and claims; a name that is not there fails the build."""

    def run(self):
        """Return the table."""
        verdicts = claim_verdicts()
        rows = []
        for one in statements():
            missing = absent(one)
            if missing:
                raise self.error(f"{one['name']} names {', '.join(missing)}, and there is no such thing")
            said = typeset(one["says"])
            if one.get("errata"):
                said += nodes.Text(" (")
                for place, number in enumerate(one["errata"]):
                    said += nodes.Text(", " if place else "errata ")
                    said += nodes.reference("", str(number), refuri=f"errata.html#errata-{number}", internal=True)
                said += nodes.Text(")")
            where = [nodes.paragraph("", "", *_joined(nodes.literal("", name) for name in one["files"]))]
            for test in one["tests"]:
                file, name = test.split("::")
                words = NUMBERED.sub(r"\1.\2", name.removeprefix("test_").replace("_", " "))
                where.append(nodes.paragraph("", f"{words} (tests/{file})"))
            for name in one.get("claims", []):
                verdict = nodes.strong("", verdicts.get(name, "not measured"))
                where.append(nodes.paragraph("", "", nodes.Text(f"claim {name}: "), verdict))
            rows.append([nodes.paragraph("", "", nodes.strong("", one["name"])), said, where])
        return [table(["in the paper", "says", "files, tests, claims"], rows, "words", "stacked")]


def statements():
    """Return the entries of docs/theorems.toml."""
    return tomllib.loads((DOCS / "theorems.toml").read_text(encoding="utf-8"))["statement"]


def claim_verdicts():
    """Return {claim: verdict} of the committed report of the study paper."""
    with (ROOT / "reports" / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["claim"]: _condition(row["condition"]) or row["verdict"].removesuffix(" in this study") for row in rows}


def _condition(words):
    """Return when a claim holds, as a list; nothing of one that holds always, or never."""
    from quartbench.study.report.words import listed

    return f"holds{', but' if words.startswith('not ') else ''} {listed(words)}" if words else ""


def typeset(text):
    """Return a paragraph in which a^{b} is raised and σ_min lowered."""
    kinds = {"^": nodes.superscript, "_": nodes.subscript}
    shown = nodes.paragraph()
    for part in re.split(r"(\^\{[^{}]*\}|(?<=[σλ])_(?:min|max)|(?<=[‖²])_(?:B|F)(?![a-z]))", text):
        if part[:1] in kinds:
            shown += kinds[part[0]]("", part[1:].strip("{}"))
        elif part:
            shown += nodes.Text(part)
    return shown


def absent(statement):
    """Return the files, tests and claims that an entry names and that are not there."""
    from quartbench.study.report.claims import CLAIMS

    found = [name for name in statement["files"] if not (ROOT / "quartbench" / name).is_file()]
    for test in statement["tests"]:
        file, name = test.split("::")
        path = ROOT / "tests" / file
        if not path.is_file() or f"def {name}(" not in path.read_text(encoding="utf-8"):
            found.append(test)
    known = {claim.name for claim in CLAIMS}
    return found + [name for name in statement.get("claims", []) if name not in known]


def _joined(parts):
    for place, part in enumerate(parts):
        yield from [nodes.Text(", "), part] if place else [part]


class Registered(SphinxDirective):
    """The names of a register with the first sentence of each: solvers, instances or inverse methods."""

    required_arguments = 1

    def run(self):
        """Return the table."""
        found = {"solvers": _solvers, "inverse": _inverse}[self.arguments[0]]()
        rows = [[nodes.paragraph("", "", nodes.literal("", name)), nodes.paragraph("", text)] for name, text in found]
        return [table(["name", "what it is"], rows, "words")]


def _first(thing):
    return thing.__doc__.strip().splitlines()[0].replace("''", "″")


def _solvers():
    from quartbench.solvers import solvers

    return [(name, _first(cls)) for name, cls in solvers().items()]


def _inverse():
    from quartbench.inverse import methods

    return [(name, _first(cls)) for name, cls in methods().items()]


class Commands(SphinxDirective):
    """What every command says with --help."""

    def run(self):
        """Return a section for each command."""
        from quartbench.cli import main

        shown = []
        context = click.Context(main, info_name="quartbench", max_content_width=90, terminal_width=90)
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            text = command.get_help(click.Context(command, context, name, max_content_width=90, terminal_width=90))
            section = nodes.section("", nodes.title("", f"quartbench {name}"), ids=[f"quartbench-{name}"])
            text = "\n".join(part for line in text.splitlines() for part in folded(line))
            section += nodes.literal_block(text, text, language="none")
            shown.append(section)
        return shown


def folded(line):
    """Return a line in lines that a page is wide enough for: commands are broken before options, as shells allow."""
    if len(line) <= WIDTH or not line.lstrip().startswith("quartbench "):
        return [line]
    start = line[: len(line) - len(line.lstrip())] + "    "
    head, *options = line.split(" --")
    lines = [head]
    for option in options:
        if len(f"{lines[-1]} --{option} \\") > WIDTH:
            lines[-1] += " \\"
            lines.append(f"{start}--{option}")
        else:
            lines[-1] += f" --{option}"
    return lines


def table(headings, rows, *kinds):
    """Return a table of paragraphs, some to a cell, in a box that scrolls where it is wider than the screen."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in headings), cols=len(headings))
    cells = [[nodes.paragraph("", heading) for heading in headings]], rows
    for part, content in zip((nodes.thead(), nodes.tbody()), cells, strict=True):
        for row in content:
            part += nodes.row("", *(nodes.entry("", *(cell if isinstance(cell, list) else [cell])) for cell in row))
        group += part
    return nodes.container("", nodes.table("", group), classes=["wide", *kinds])


def setup(app):
    """Register the directives."""
    app.add_directive("methods", Methods)
    app.add_directive("statements", Statements)
    app.add_directive("registered", Registered)
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
