"""How is a figure drawn? One SVG per panel for the page, one PDF for papers, in the same colours everywhere.

In the SVG every colour is a CSS variable, so that the page decides what is dark, and every contender's artists carry
its name, so that a legend can toggle it.
"""

from __future__ import annotations

import io
import re
import textwrap
from pathlib import Path

import numpy as np

from quartbench.study.figures import COLOURS

from .figures import Figure, Panel, Series
from .words import LOWERED, power_of_ten, short, slug

#: Line styles, as (offset, on-off pattern in line widths).
DASHES = ((0, ()), (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (9, 2)), (0, (5, 1.5, 1, 1.5, 1, 1.5)))

#: Styles that stay the same from report to report: index of the colour (6 is ink) and of the dashes. Some share one, as
#: they seldom meet: a study asks for metrics by name, or leaves them all to the solvers. Where two meet, one gives way.
FIXED = {
    "gd · identity": (6, 0),
    "homgd · identity": (0, 0),
    "homgd · uniform": (4, 0),
    "homgd · lewis": (2, 1),
    "homgd step=fixed · identity": (0, 2),
    "homgd step=fixed · uniform": (4, 2),
    "homgd step=fixed · lewis": (2, 3),
    "accel-homgd · identity": (5, 0),
    "accel-homgd restart=scheduled · identity": (1, 0),
    "accel-homgd restart=none · identity": (3, 1),
    "accel-homgd step=fixed · identity": (5, 1),
    "accel-homgd restart=scheduled step=fixed · identity": (1, 1),
    "accel-homgd restart=none step=fixed · identity": (3, 2),
    "accel-homgd · uniform": (1, 1),
    "accel-homgd · lewis": (3, 0),
    "gd step=fixed · identity": (6, 3),
    "bregman · identity": (2, 0),
    "bregman step=fixed · identity": (2, 2),
    "bregman kernel=quartic+quadratic · identity": (4, 1),
    "bregman kernel=quartic+quadratic step=fixed · identity": (4, 2),
    "abpg · identity": (1, 2),
    "bregman · uniform": (0, 0),
    "bregman · lewis": (0, 1),
    "bregman step=fixed · uniform": (0, 2),
    "bregman step=fixed · lewis": (0, 3),
    "bregman kernel=quartic+quadratic · uniform": (3, 0),
    "bregman kernel=quartic+quadratic · lewis": (3, 1),
    "bregman kernel=quartic+quadratic step=fixed · uniform": (3, 2),
    "bregman kernel=quartic+quadratic step=fixed · lewis": (3, 3),
    "abpg · uniform": (5, 0),
    "abpg · lewis": (5, 1),
    "auto": (1, 0),
    "accel-homgd": (0, 0),
    "homcg": (2, 0),
    "homnewton": (3, 0),
    "homnewton-cg": (4, 0),
    "homgd": (5, 0),
    "gd": (6, 0),
    "scipy-lbfgs": (0, 1),
    "scipy-newton-cg": (1, 1),
    "scipy-trust-krylov": (2, 1),
    "scipy-trust-exact": (3, 1),
    "scipy-slsqp": (4, 1),
    "clarabel": (6, 1),
    "auto restarts=10": (2, 0),
    "auto restarts=20": (2, 0),
    "newton": (4, 0),
    "lbfgs": (0, 0),
    "dc": (6, 0),
    "dc-inexact": (6, 1),
    "dc-accelerated": (3, 0),
    "nolips": (5, 0),
    "scipy-lbfgs-kernels": (0, 2),
    "wirtinger": (4, 1),
    "reshaped-wirtinger": (5, 1),
    "projected-bb": (4, 2),
    "symhals": (3, 1),
    "symnmf-cd": (2, 2),
    "dc accuracy=1.0": (4, 0),
    "dc accuracy=0.1": (1, 0),
    "dc accuracy=0.01": (0, 0),
    "dc accuracy=0.001": (2, 1),
    "clarabel tolerance=1e-11": (6, 1),
    "clarabel tolerance=1e-07": (6, 2),
    "coherent 500×20 γ=0.9": (0, 0),
    "blocks 200×20 r=3": (1, 0),
    "heavy-tailed 500×20 df=1": (2, 0),
    "rate as printed": (6, 1),
    "rate as corrected": (6, 0),
    "homnewton-cg · identity": (0, 1),
    "homnewton-cg · uniform": (4, 0),
    "homnewton-cg · sampled": (4, 1),
    "spag share=0.02": (2, 0),
    "spag share=0.05": (2, 2),
    "spag share=0.02 sampling=lewis": (0, 0),
    "spag share=0.05 sampling=lewis": (0, 2),
    "μₘ, uniform sampling": (2, 0),
    "Lₘ, uniform sampling": (2, 1),
    "μₘ, lewis sampling": (0, 0),
    "Lₘ, lewis sampling": (0, 1),
    "accel-homgd, B = I": (5, 0),
    "homnewton-cg, B = I": (0, 1),
    "homnewton-cg, B⁽⁰⁾": (4, 0),
    "homnewton-cg, sampled": (4, 1),
    "spag": (6, 0),
    "as measured": (6, 2),
    "quartbench kernels": (0, 0),
    "the same as one writes it first": (1, 0),
    "the same, tuned": (4, 0),
    "measured bandwidth": (6, 1),
}

#: Colours of a figure on paper, which the page replaces by its own.
PAPER_INK, PAPER_GRID, PAPER_SOFT = "#1c1f23", "#dde1e6", "#5b6470"

#: Inches of a panel: three fit a wide page, one fits a phone.
WIDTH, HEIGHT = 3.5, 2.75

#: Characters of a line in the name of a row, and in the title of a panel.
LABEL, TITLE = 30, 44

#: The marks of points, and each as a path of a legend, 26 by 10 pixels.
MARKERS = {
    "o": "M10 5a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "s": "M10.3 2.3h5.4v5.4h-5.4z",
    "^": "M13 1.5l3.5 6.5h-7z",
    "D": "M13 1l4 4l-4 4l-4-4z",
    "v": "M13 8.5l3.5-6.5h-7z",
    "<": "M9.5 5l6.5-3.5v7z",
    ">": "M16.5 5l-6.5-3.5v7z",
    "P": "M11.9 1.5h2.2v2.4h2.4v2.2h-2.4v2.4h-2.2v-2.4h-2.4v-2.2h2.4z",
}

#: Parts that the ticks of a linear axis may cut it into: more of them touch in a small panel.
PARTS = 6

#: The least share of its values that a linear vertical axis spans: below, it would make much of nothing.
SPAN = 0.05

Style = tuple[int, int]


def styles(names: list[str], before: dict[str, Style] | None = None) -> dict[str, Style]:
    """Return the style of every contender of one figure, no two alike while there are enough.

    It is the fixed one, else that of figures ``before``, else the next that nobody in this figure has.
    """
    found: dict[str, Style] = {}
    for wanted in (FIXED, before or {}):
        for name in names:
            if name not in found and name in wanted and wanted[name] not in found.values():
                found[name] = wanted[name]
    every = [(colour, dash) for dash in range(len(DASHES)) for colour in range(len(COLOURS) + 1)]
    free = [style for style in every if style not in found.values()] or every
    for place, name in enumerate([name for name in names if name not in found]):
        found[name] = free[place % len(free)]
    return found


def colour(style: Style) -> str:
    """Return the colour of a style on paper."""
    return (*COLOURS, PAPER_INK)[style[0]]


def marker(style: Style) -> str:
    """Return the mark of the points of a style."""
    return list(MARKERS)[(style[0] + style[1]) % len(MARKERS)]


def look(figure: Figure, name: str) -> tuple[bool, bool]:
    """Return whether a contender of a figure has lines, and whether it has points of its own mark."""
    kinds = {series.kind for panel in figure.panels for series in panel.series if series.name == name}
    return bool(kinds - {"points", "median"}), "points" in kinds


def dash_array(style: Style, width: float = 2.0) -> str:
    """Return the dashes of a style as SVG writes them."""
    return " ".join(f"{width * length:g}" for length in DASHES[style[1]][1])


def svg(panel: Panel, prefix: str, known: dict[str, Style]) -> str:
    """Return a panel as an SVG element for a page; ``prefix`` keeps its ids apart from those of other panels."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(_settings() | {"svg.hashsalt": prefix, "svg.fonttype": "none"}):
        canvas = Canvas(figsize=(WIDTH, _height(panel)))
        _draw(canvas.add_axes(_place(panel)), panel, known)
        text = io.StringIO()
        canvas.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    label = ": ".join(part for part in (panel.title, f"{panel.ylabel or 'contender'} against {panel.xlabel}") if part)
    return _for_page(text.getvalue(), prefix, label)


def pdf(figure: Figure, path: Path, known: dict[str, Style]) -> None:
    """Write all panels of a figure as one PDF, with a legend."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    columns = min(3, len(figure.panels))
    rows = [figure.panels[i : i + columns] for i in range(0, len(figure.panels), columns)]
    names = figure.names()
    below = 0.15 + 0.18 * -(-len(names) // columns)
    width, height = WIDTH * columns, below + sum(max(map(_height, row)) for row in rows)
    with matplotlib.rc_context(_settings()):
        canvas = Canvas(figsize=(width, height))
        top = height
        for row in rows:
            top -= max(map(_height, row))
            for column, panel in enumerate(row):
                x, y, w, h = _place(panel)
                size = _height(panel)
                box = ((column + x) * WIDTH / width, (top + y * size) / height, w * WIDTH / width, h * size / height)
                _draw(canvas.add_axes(box), panel, known)
        lines = []
        for name in names:
            line, points = look(figure, name)
            dashes = DASHES[known[name][1]] if line else "none"
            mark = marker(known[name]) if points else "none"
            paint = colour(known[name])
            lines.append(
                Line2D([], [], color=paint, linestyle=dashes, marker=mark, markersize=4, markeredgewidth=0, label=name)
            )
        canvas.legend(handles=lines, loc="lower center", ncols=columns, frameon=False, fontsize=8)
        canvas.savefig(path, metadata={"Title": figure.title, "CreationDate": None})


def _settings() -> dict:
    return {
        "font.family": "sans-serif",
        "font.size": 8.5,
        "axes.titlesize": 8.5,
        "axes.labelsize": 8.5,
        "xtick.labelsize": 7.5,
        "ytick.labelsize": 7.5,
        "text.color": PAPER_INK,
        "axes.labelcolor": PAPER_INK,
        "axes.edgecolor": PAPER_SOFT,
        "xtick.color": PAPER_SOFT,
        "ytick.color": PAPER_SOFT,
        "grid.color": PAPER_GRID,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.7,
        "xtick.major.width": 0.7,
        "ytick.major.width": 0.7,
        "path.simplify_threshold": 0.5,
    }


def _labels(panel: Panel) -> list[str]:
    """Return the names of the rows of a panel, broken where they would leave no room for what is drawn."""
    return [textwrap.fill(name, LABEL) for name in panel.rows or ()]


def _title(panel: Panel) -> str:
    """Return the title of a panel, broken where it would run over its edge."""
    return textwrap.fill(panel.title, TITLE, break_long_words=False, break_on_hyphens=False)


def _height(panel: Panel) -> float:
    lines = sum(1 + label.count("\n") for label in _labels(panel))
    return max(HEIGHT, 0.9 + 0.2 * lines)


def _widest(labels: list[str]) -> int:
    return max((len(line) for label in labels for line in label.split("\n")), default=0)


def _place(panel: Panel) -> tuple[float, float, float, float]:
    """Return where the axes lie in a panel of its own: left, bottom, width, height as fractions."""
    left = 0.58 if panel.rows is None else 0.2 + 0.062 * _widest(_labels(panel))
    below, above, right = 0.45, 0.28 + 0.14 * _title(panel).count("\n") if panel.title else 0.12, 0.12
    height = _height(panel)
    return left / WIDTH, below / height, 1.0 - (left + right) / WIDTH, 1.0 - (below + above) / height


def _draw(axis, panel: Panel, known: dict[str, Style]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axis.grid(linewidth=0.6, zorder=0)
    for log, scale, its in ((panel.xlog, axis.set_xscale, axis.xaxis), (panel.ylog, axis.set_yscale, axis.yaxis)):
        if log:
            scale("log")
            its.set_major_locator(LogLocator(10.0, numticks=7))
            its.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
            its.set_minor_locator(NullLocator())
        else:
            its.set_major_locator(MaxNLocator(PARTS, steps=[1, 2, 4, 5, 10]))
    for number, series in enumerate(panel.series):
        for artist in _artists(axis, series, known[series.name]):
            artist.set_gid(f"contender/{slug(series.name)}/{number}")
    if panel.rows is not None:
        axis.set_yticks(range(len(panel.rows)), _labels(panel))
        axis.set_ylim(len(panel.rows) - 0.5, -0.5)
        axis.axvline(0.0, color=PAPER_SOFT, linewidth=0.8, zorder=1)
    elif not panel.ylog:
        low, high = axis.get_ylim()
        lacking = SPAN * max(abs(low), abs(high)) - (high - low)
        if lacking > 0.0:
            axis.set_ylim(low - lacking / 2, high + lacking / 2)
    for log, its in ((panel.xlog, axis.xaxis), (panel.ylog, axis.yaxis)):
        if log:
            _label_narrow_range(its)
    axis.set_xlabel(panel.xlabel)
    axis.set_ylabel(panel.ylabel)
    axis.set_title(_title(panel), loc="left")


def _label_narrow_range(axis) -> None:
    """Put numbers on 2 and 5 too where an axis spans so little that powers of ten leave it bare."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    low, high = sorted(axis.get_view_interval())
    if low <= 0:
        return
    powers = np.floor(np.log10(high)) - np.ceil(np.log10(low)) + 1
    if high / low < 30 or powers < 2:
        steps = [
            d * 10.0**e
            for e in range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
            for d in (1, 2, 5)
        ]
        axis.set_major_locator(FixedLocator([step for step in steps if low <= step <= high]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _artists(axis, series: Series, style: Style) -> list:
    paint, dashes = colour(style), DASHES[style[1]]
    above = 3.0 + 0.1 * style[1]  # dashes lie over what they may coincide with
    x, y = series.x, series.y
    if series.kind == "points":
        return axis.plot(x, y, marker(style), color=paint, markersize=3.6, alpha=0.85, markeredgewidth=0, zorder=4)
    if series.kind == "steps":
        return axis.step(x, y, where="post", color=paint, linestyle=dashes, linewidth=1.5, zorder=above)
    if series.kind == "curve":
        drawn = axis.plot(x, y, color=paint, linestyle=dashes, linewidth=1.6, marker="o", markersize=3.2, zorder=above)
        if series.low is not None and len(x):
            drawn.append(axis.fill_between(x, series.low, series.high, color=paint, alpha=0.1, linewidth=0, zorder=2))
        return drawn
    if series.kind == "median":
        return axis.plot(x, y, color=paint, linewidth=2.0, zorder=3)
    if series.kind == "theory":
        # Sparse dots: those of a contender are close.
        return axis.plot(x, y, color=paint, linestyle=(0, (1, 4)), linewidth=1.2, zorder=2)
    drawn = axis.plot(x, y, color=paint, linestyle=dashes, linewidth=1.6, zorder=above)
    if series.low is not None and len(x):
        drawn.append(axis.fill_betweenx(y, series.low, series.high, color=paint, alpha=0.16, linewidth=0, zorder=2))
    return drawn


def _for_page(text: str, prefix: str, label: str) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'id="contender/([a-z0-9-]+)/\d+"', r'data-contender="\1"', text)
    text = re.sub(r'id="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = text.replace("url(#", f"url(#{prefix}-")
    text = re.sub(r'xlink:href="#', f'href="#{prefix}-', text)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    text = re.sub(r"font: ([0-9.]+px)[^;\"]*", r"font-size: \1", text)
    text = re.sub(r"font-family: [^;\"]*;?", "", text)
    for number, paint in enumerate(COLOURS):
        text = re.sub(paint, f"var(--c{number})", text, flags=re.I)
    for paint, name in ((PAPER_INK, "ink"), (PAPER_GRID, "grid"), (PAPER_SOFT, "soft")):
        text = re.sub(paint, f"var(--{name})", text, flags=re.I)
    text = re.sub(r"<[^>]+>", lambda tag: re.sub(r"-?\d+\.\d{2,}", _rounded, tag.group()), text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"(?<=>)[^<>]*_[^<>]*(?=<)", lambda words: _lowered(words.group()), text)
    text = text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return re.sub(r"\n\s*", "\n", text).strip()


def _lowered(text: str) -> str:
    """Return a text with indices as SVG lowers them; what follows one rises again."""
    first, *rest = LOWERED.split(text)
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return first + "".join(
        f'<tspan dy="2" font-size="75%">{index}</tspan><tspan dy="-2">{after}</tspan>' for index, after in pairs
    )


def _rounded(number: re.Match) -> str:
    return f"{float(number.group()):.2f}".rstrip("0").rstrip(".")
