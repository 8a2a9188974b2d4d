"""How do the pieces become a page? Runs in, one HTML file out, with its Markdown summary, PDFs and CSVs beside it.

Nothing is run here: a page can be made again, and changed, from the results alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from quartbench.errors import ProblemError
from quartbench.study import costs, store, summary
from quartbench.views import counted

from . import applications, cluster, draw, rates, tables
from .claims import CLAIMS, FAILS, HOLDS, ONLY, OPEN, Claim, Finding
from .figures import CURVES, PAPER, Figure, curve_figures, figures
from .growth import SCALING
from .words import level, listed, ranges, short, slug, typeset

TEMPLATES = Path(__file__).with_name("templates")

#: Where ``quartbench kernels --out`` puts its table for a report, inside the results; readers of Parquet skip it.
KERNELS = Path("_kernels") / "kernels.json"

#: The page of ``quartbench report DIR`` where no other is named.
PAGE = Path("_report") / "report.html"

QUESTION = "How fast are convex quartic problems solved to a certified gap, and does what the paper says about it hold?"


@dataclass(frozen=True)
class Report:
    """What was written, and what it says in short; ``unreadable`` are the files that are no runs, or damaged."""

    page: Path
    answer: list[str]
    claims: list[tuple[Claim, Finding]]
    winners: list[tables.Winner]
    noise: float
    unreadable: list[str]


def write(directory: Path, out: Path | None = None) -> Report:
    """Write the report of the results in a directory.

    Parameters
    ----------
    directory : Path
        As 'quartbench compare --out' left it, with ``_kernels/kernels.json`` where the kernels were measured too.
    out : Path, optional
        The page, ending in .html. Its summary (.md), ``runs.csv``, ``claims.csv`` and ``figures/`` go beside it.
    """
    directory = Path(directory)
    out = directory / PAGE if out is None else Path(out)
    if out.suffix.lower() != ".html":
        raise ProblemError(f"a report must end in .html, found {out.name!r}")
    about, runs = store.settings(directory), store.read(directory)
    unreadable = runs.attrs["unreadable"]
    if runs.empty:
        damaged = f": {len(unreadable)} files cannot be read" if unreadable else " yet"
        raise ProblemError(f"no runs in {str(directory)!r}{damaged}")
    runs = costs.prepare(runs).sort_values("contender", kind="stable", ignore_index=True)  # as legends have them
    if about.get("weights"):
        runs.attrs["weights"] = _Record(about["weights"])
    if about.get("samples"):
        runs.attrs["samples"] = _Record(rows=about["samples"])
    content = Content(runs, about, _kernels(directory))
    try:
        content.save(out)
    except OSError as error:
        raise ProblemError(f"cannot write {error.filename or out}: {error.strerror}") from error
    return Report(out, content.answer, content.claims, content.winners, content.noise, unreadable)


def _kernels(directory: Path) -> dict | None:
    path = directory / KERNELS
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{str(path)!r} is not the table of 'quartbench kernels': {error}") from None
    if not isinstance(found, dict):
        raise ProblemError(f"{str(path)!r} is not the table of 'quartbench kernels': found {found!r:.80}")
    return found


class Content:
    """Everything that the page and its summary show."""

    def __init__(self, runs: pd.DataFrame, about: dict[str, Any], kernels: dict | None) -> None:
        self.every, self.runs, self.about, self.kernels = runs, costs.convex(runs), about, kernels
        self.regressions = costs.regressions(runs)
        # A study that was stopped has not written its own yet.
        self.noise = costs.noise(self.runs) or float(about.get("noise", {}).get("floor") or 0.0)
        self.claims = [(claim, claim.decide(runs)) for claim in CLAIMS]
        self.winners = tables.winners(self.runs)
        self.parts = applications.parts(runs)
        self.samples = cluster.sampled(runs.attrs.get("samples"))
        self.spread = cluster.figures(self.runs, runs.attrs.get("samples"), int(about["system"].get("cores") or 1))
        self.figures = [
            *figures(self.runs, kernels),
            *curve_figures(self.regressions),
            *(figure for part in self.parts for figure in part.figures),
            *self.spread,
        ]
        self.styles = _styles(self.figures)
        self.run_table = tables.run_table(runs)
        self.places = {row[0].text: place for place, row in enumerate(self.run_table.rows)}
        self.answer = self._answer()

    def _answer(self) -> list[str]:
        """Return the answer in numbers, a sentence each."""
        count = Counter(found.verdict for _, found in self.claims)
        decided = len(self.claims) - count[OPEN]
        found = [
            f"Of {counted(decided, 'claim', 'claims')} that this study can decide, "
            f"{counted(count[HOLDS], 'holds', 'hold')}, {counted(count[ONLY], 'holds', 'hold')} only under a condition "
            f"and {counted(count[FAILS], 'does', 'do')} not hold"
            + (f"; {counted(count[OPEN], 'is', 'are')} not measured here." if count[OPEN] else ".")
            if decided
            else f"None of the {count[OPEN]} claims is measured by this study."
        ]
        lead, total = tables.leaders(self.winners, self.noise)
        if lead:
            name, times = lead.most_common(1)[0]
            found.append(f"{name} is fastest most often, ties included: on {times} of {total} instances.")
        # One floor of noise for all that is said of auto, here and in the claims.
        found += _against_peers(self.runs[self.runs.group == "peers"], "auto", costs.noise(self.runs))
        found += _against_peers(self.regressions, summary.REGRESSION, costs.noise(self.regressions))
        broken = int(self.every.status.isin(costs.BROKEN).sum())
        judged = pd.concat([self.runs, self.regressions])
        short_of = int((~judged.success & ~judged.status.isin(costs.BROKEN)).sum())
        told = f"{len(self.every)} runs, of which {broken} failed"
        found.append(
            f"{told} and {short_of} stopped before the gap they were asked for." if len(judged) else told + "."
        )
        recoveries = costs.recoveries(self.every)
        if len(recoveries):
            found.append(
                f"{len(recoveries)} of the runs recover signals, points or clusters from data: see Applications."
            )
        return found

    # The page ---------------------------------------------------------------------------------------------------------

    def save(self, out: Path) -> None:
        """Write the page, its summary, and the files beside them."""
        folder = out.parent / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        for figure in self.figures:
            draw.pdf(figure, folder / f"{figure.name}.pdf", self.styles[figure.name])
            _csv(figure.frame(), folder / f"{figure.name}.csv", digits=6)
        traces = [name for name in self.every.columns if name.startswith("trace_")]
        _csv(self.every.drop(columns=traces).sort_values("key"), out.parent / "runs.csv")
        _csv(tables.claim_frame(self.claims), out.parent / "claims.csv")
        environment = self._environment()
        context = self._context(out)
        for path, template in ((out, "page.html"), (out.with_suffix(".md"), "page.md")):
            path.write_text(environment.get_template(template).render(context), encoding="utf-8")

    def _environment(self) -> Any:
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=lambda name: bool(name) and name.endswith(".html"),
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        environment.filters |= {
            "slug": slug,
            "short": short,
            "rows_of": self._rows_of,
            "plain": _plain,
            "typeset": typeset,
            "listed": listed,
        }
        return environment

    def _rows_of(self, keys: list[str]) -> str:
        """Return the rows of the table of runs that hold these keys."""
        return ranges([self.places[key] for key in keys])

    def _context(self, out: Path) -> dict[str, Any]:
        by_name = {figure.name: self._shown(figure) for figure in self.figures}
        system = _Facts(self.about["system"])
        return {
            "question": QUESTION,
            "answer": self.answer,
            "about": self.about,
            "system": system,
            "config": json.dumps(self.about["config"], indent=2, ensure_ascii=False),
            "claims": [pair for pair in self.claims if pair[1].verdict != OPEN or pair[1].keys],
            "unmeasured": [claim for claim, found in self.claims if found.verdict == OPEN and not found.keys],
            "verdicts": [(word, slug(word)) for word in (HOLDS, ONLY, FAILS, OPEN)],
            "winner_table": tables.winner_table(self.winners, self.noise),
            "paper_figures": [by_name[name] for name in PAPER if name in by_name],
            "missing_figures": [name for name in PAPER if name not in by_name],
            "rate_figure": by_name.get(rates.GROUP),
            "weight_figure": by_name.get("weights"),
            "rate_table": tables.rate_table(self.runs),
            "kappa_table": tables.kappa_table(self.runs),
            "scaling_figures": [by_name[name] for name in SCALING if name in by_name],
            "growth_table": tables.growth_table(self.runs),
            "curves": [shown for name, shown in by_name.items() if name.startswith(CURVES)],
            "profiles": [by_name[name] for name in ("profiles", "ratios") if name in by_name],
            "comparison_tables": _present(
                tables.peer_table(self.runs),
                tables.regression_table(self.regressions),
                tables.pair_table(self.runs),
                tables.cost_table(self.runs),
                tables.break_even_table(self.runs),
            ),
            "applications": [
                {"part": part, "figures": [by_name[figure.name] for figure in part.figures]} for part in self.parts
            ],
            "cluster_figures": [by_name[figure.name] for figure in self.spread],
            "cluster_tables": _present(tables.traffic_table(self.runs), tables.sample_table(self.samples)),
            "kernel_figure": by_name.get("kernels"),
            "kernel_table": tables.kernel_table(self.kernels),
            "failure_table": tables.failure_table(self.every),
            "run_table": self.run_table,
            "all_figures": self.figures,
            "noise": self.noise,
            "noise_cells": self.about.get("noise", {}).get("cells", 0),
            "notes": self.about.get("notes", []),
            "seeds": [part.replace("-", " to ") for part in ranges([int(seed) for seed in self.every.seed]).split()],
            "threads": sorted({int(count) for count in self.every.threads}),
            "commits": sorted(set(self.every.commit)),
            "page_name": out.name,
            "style": (TEMPLATES / "page.css").read_text(encoding="utf-8"),
            "script": (TEMPLATES / "page.js").read_text(encoding="utf-8"),
        }

    def _shown(self, figure: Figure) -> dict[str, Any]:
        """Return a figure as the template takes it: its words, its legend, its panels as SVG."""
        styles = self.styles[figure.name]
        legend = []
        for name in figure.names():
            style, (line, points) = styles[name], draw.look(figure, name)
            dash, mark = draw.dash_array(style), draw.MARKERS[draw.marker(style)] if points else ""
            one = {"name": name, "slug": slug(name), "colour": style[0], "dash": dash, "line": line, "mark": mark}
            legend.append(one)
        panels = [draw.svg(panel, f"{figure.name}-{i}", styles) for i, panel in enumerate(figure.panels)]
        return {"figure": figure, "legend": legend, "panels": panels}


def _styles(figures: list[Figure]) -> dict[str, dict[str, draw.Style]]:
    """Return the styles of every figure by its name: no two alike in it, and the same in the next where they can be."""
    known: dict[str, draw.Style] = {}
    found = {}
    for figure in figures:
        found[figure.name] = draw.styles(figure.names(), known)
        known = found[figure.name] | known
    return found


def _against_peers(runs: pd.DataFrame, own: str, noise: float) -> list[str]:
    """Return how one of ours, certificate included, does against the best bare peer; nothing where it cannot tell."""
    if not (runs.method == own).any() or not runs.peer.any():
        return []
    ratios = summary.peers(runs, own).wall_ratio.dropna()
    if not len(ratios):
        return []
    tally, mean = summary.tally(ratios, noise), short(summary.geometric_mean(ratios))
    return [
        f"Against the best bare peer of {runs[runs.peer].method.nunique()}, {own} with its certificate has {tally} on "
        f"{len(ratios)} instances and gaps: {mean} times as fast in the geometric mean."
    ]


class _Record(dict):
    """What is not copied with every selection of runs, as pandas does with all attributes of a frame."""

    def __deepcopy__(self, memo: dict) -> _Record:
        return self


class _Facts(dict):
    """Facts by name, with a dash for those that are not known."""

    def __missing__(self, name: str) -> str:
        return "–"


def _present(*found: tables.Table | None) -> list[tables.Table]:
    return [table for table in found if table is not None]


def _csv(frame: pd.DataFrame, path: Path, digits: int | None = None) -> None:
    frame.to_csv(path, index=False, float_format=None if digits is None else f"%.{digits}g")


def _plain(text: object) -> str:
    """Return a text that Markdown shows as it is, in a table too: names are those that users give."""
    text = re.sub(r"[\\`*\[\]<>|]|\b_|_\b", r"\\\g<0>", level(str(text)))
    return " ".join(text.split())
