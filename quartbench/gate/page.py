"""How does a history become a page? Every series as a small drawing, one HTML file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from quartbench.errors import ProblemError
from quartbench.gate.history import Change, Commit, History, Series
from quartbench.study.report.page import TEMPLATES as SHARED
from quartbench.study.report.words import short
from quartbench.views import counted, duration

Scale = Callable[[float], float]

TEMPLATES = Path(__file__).with_name("templates")

#: Rows of the table of changes: the largest ones.
MOST = 300

#: Characters of a unit that is written behind each value.
LONGEST_UNIT = 12

#: A drawing in units of its own: width, height, and the room around the line.
WIDTH, HEIGHT, ROOM = 320.0, 90.0, 8.0
SPARK_WIDTH, SPARK_HEIGHT = 120.0, 24.0

#: Values over so many times the least are drawn by their logarithms.
LOGARITHMIC = 20.0


def write(history: History, out: Path) -> Path:
    """Write the page of a history and return its path."""
    import jinja2

    if out.suffix.lower() != ".html":
        raise ProblemError(f"a page must end in .html, found {out.name!r}")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    text = environment.get_template("history.html").render(_context(history))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"cannot write {error.filename or out}: {error.strerror}") from error
    return out


def answer(history: History) -> list[str]:
    """Return what the history says, a sentence each."""
    changes = history.changes()
    first, last = history.commits[0], history.commits[-1]
    among = f"{len(history.series)} series over {counted(len(history.commits), 'commit')}"
    if len(history.commits) == 1:
        return [f"{among}: {first.short}. A second one has something to be compared with."]
    worse = [pair for pair in changes if pair[1].worse]
    last_place = len(history.commits) - 1
    here = [pair for pair in changes if pair[1].place == last_place]
    found = [
        f"{among}, {first.short} to {last.short}: {counted(len(changes), 'change')}, {len(worse)} for the worse and "
        f"{len(changes) - len(worse)} for the better."
    ]
    if here:
        slower = sum(change.worse for _, change in here)
        found.append(
            f"The last commit changed {len(here)}: {slower} for the worse, {len(here) - slower} for the better."
        )
    exact = sum(series.counts for series, _ in changes)
    if changes:
        found.append(f"{exact} of the changes {'is' if exact == 1 else 'are'} of counts, which no machine moves.")
    return found


def value_words(series: Series, value: float) -> str:
    """Return a value of a series with its unit, where that is a word and not a sentence."""
    if series.times:
        return duration(value) if value > 0 else "0 s"
    if series.unit == "bytes":
        return f"{value / 1e6:.4g} MB"
    unit = series.unit if len(series.unit) <= LONGEST_UNIT else ""
    return f"{short(value, 4)} {unit}".strip()


def ratio_words(change: Change) -> str:
    """Return how many times as much it is after a change."""
    return f"{short(change.ratio, 3)}×"


def drawing(series: Series) -> str:
    """Return a series as SVG: values, asv's levels, and a mark at every change; the script says a value in words."""
    across, up = _scales(series, len(series.values), WIDTH, HEIGHT, ROOM)
    levels = "".join(f"M{across(a) - 3:.1f} {up(v):.1f}H{across(b) + 3:.1f}" for a, b, v in series.levels)
    line = _line(series, across, up)
    marks = "".join(
        f'<path class="{_side(change)}" d="M{across(change.place):.1f} 0V{HEIGHT:g}"/>' for change in series.changes
    )
    words = f"{series.name}, {counted(len(series.changes), 'change')}"
    said = "|".join("" if value is None else value_words(series, value) for value in series.values)
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(words)}" data-said="{escape(said)}">'
        f'{marks}<path class="level" d="{levels}"/><polyline points="{line}"/></svg>'
    )


def sparkline(series: Series, change: Change) -> str:
    """Return a series as a line the size of a word, with a dot at the change."""
    across, up = _scales(series, len(series.values), SPARK_WIDTH, SPARK_HEIGHT, 3.0)
    line = _line(series, across, up)
    x, y = across(change.place), up(series.values[change.place])
    return (
        f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH:g} {SPARK_HEIGHT:g}" aria-hidden="true">'
        f'<polyline points="{line}"/><circle class="{_side(change)}" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/></svg>'
    )


def _scales(series: Series, count: int, width: float, height: float, room: float) -> tuple[Scale, Scale]:
    """Return where a commit is from the left, and a value from the top."""
    values = [value for value in series.values if value is not None]
    low, high = min(values), max(values)
    bend = math.log if low > 0.0 and high > LOGARITHMIC * low else float
    # What moves by less than a tenth is drawn as little.
    middle, half = (bend(high) + bend(low)) / 2, max((bend(high) - bend(low)) / 2, 0.05 * abs(bend(high)), 1e-300)
    step = (width - 2 * room) / max(count - 1, 1)
    return (
        lambda place: room + step * place if count > 1 else width / 2,
        lambda value: height / 2 - (height / 2 - room) * (bend(value) - middle) / half,
    )


def _line(series: Series, across: Scale, up: Scale) -> str:
    known = [(place, value) for place, value in enumerate(series.values) if value is not None]
    return " ".join(f"{across(place):.0f},{up(value):.1f}" for place, value in known)


def _side(change: Change) -> str:
    return "worse" if change.worse else "better"


def _day(commit: Commit) -> str:
    return datetime.fromtimestamp(commit.date / 1000, UTC).date().isoformat()


def _context(history: History) -> dict[str, Any]:
    related = history.related()
    place_of = {id(series): place for place, series in enumerate(history.series)}
    several = len({series.machine for series in history.series}) > 1
    shown = [
        {
            "place": place,
            "series": series,
            "label": series.parameters.replace("'", "") or series.benchmark.rpartition(".")[2],
            "machine": series.machine if several else "",
            "latest": value_words(series, series.latest),
            "drawing": drawing(series),
            "changes": [_changed(history, series, change) for change in series.changes],
            "related": [(other, _link_words(series, history.series[other])) for other in related.get(place, [])],
        }
        for place, series in enumerate(history.series)
    ]
    modules = []
    for module, members in groupby(shown, key=lambda one: one["series"].module):
        benchmarks = [
            {"name": name.partition(".")[2], "panels": list(panels)}
            for name, panels in groupby(members, key=lambda one: one["series"].benchmark)
        ]
        changed = sum(len(panel["changes"]) > 0 for one in benchmarks for panel in one["panels"])
        total = sum(len(one["panels"]) for one in benchmarks)
        modules.append({"name": module, "benchmarks": benchmarks, "changed": changed, "total": total})
    changes = history.changes()
    return {
        "history": history,
        "answer": answer(history),
        "modules": modules,
        "changes": [
            _changed(history, series, change)
            | {
                "place": place_of[id(series)],
                "series": series,
                "spark": sparkline(series, change),
            }
            for series, change in changes[:MOST]
        ],
        "room": ROOM / WIDTH,
        "names": [f"{commit.short} {commit.subject}".strip() for commit in history.commits],
        "left_out": max(len(changes) - MOST, 0),
        "days": (_day(history.commits[0]), _day(history.commits[-1])),
        "commits": [
            {"commit": commit, "day": _day(commit), "changes": [pair for pair in changes if pair[1].place == place]}
            for place, commit in reversed(list(enumerate(history.commits)))
        ],
        "style": (SHARED / "page.css").read_text(encoding="utf-8")
        + (TEMPLATES / "history.css").read_text(encoding="utf-8"),
        "script": (SHARED / "page.js").read_text(encoding="utf-8")
        + (TEMPLATES / "history.js").read_text(encoding="utf-8"),
    }


def _link_words(series: Series, other: Series) -> str:
    """Return how a series of the other kind is called beside this one: its method, and what else tells it apart."""
    rest = [word.strip("'") for word in other.choices if word not in series.choices]
    return " ".join([other.benchmark.rpartition(".")[2].partition("_")[2].replace("_", " "), *rest])


def _changed(history: History, series: Series, change: Change) -> dict[str, Any]:
    return {
        "change": change,
        "commit": history.commits[change.place],
        "side": _side(change),
        "before": value_words(series, change.before),
        "after": value_words(series, change.after),
        "ratio": ratio_words(change),
    }
