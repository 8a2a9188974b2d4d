"""The page of a study that was really run: whole, offline, and true to its runs."""

import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from quartbench.cli import main
from quartbench.errors import ProblemError
from quartbench.study import costs, store
from quartbench.study.report import draw, write
from quartbench.study.report.claims import OPEN
from quartbench.study.report.figures import Panel, Series, figures, gap_panel
from quartbench.study.report.page import _plain
from quartbench.study.report.words import as_many, level, listed, typeset

from ..frames import frame, run, trivial

SECTIONS = [
    "verdict",
    "claims",
    "figures",
    "theorem-rates",
    "scaling",
    "comparison",
    "applications",
    "kernel-speed",
    "record",
]
FIGURES = ["figure-1b", "figure-2b", "curves-catalogue", "scaling-m", "profiles", "ratios", "kernels"]


@pytest.fixture(scope="module")
def page(report):
    return report.page.read_text(encoding="utf-8")


class Elements(HTMLParser):
    """Every element with its attributes, and whether tags close in order."""

    VOID = frozenset({"meta", "link", "input", "br", "path", "use", "line", "rect"})

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def elements(page):
    found = Elements(page)
    assert not found.open
    return found.found


def test_sections_come_in_order(page):
    places = [page.index(f'<section id="{name}">') for name in SECTIONS]
    assert places == sorted(places)


def test_a_stranger_is_told_the_problem_and_the_words_before_anything_else(page):
    header = page[page.index("<header>") : page.index("</header>")]
    assert header.count("<math") >= 3
    for word in ("pass", "gap", "κ", "metric", "γ", "peer", "noise floor"):
        assert f"<dt>{word}</dt>" in header


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_begins_with_its_question(page, section):
    start = page.index(f'<section id="{section}">')
    question = page[start:].split("</h2>")[1]
    assert re.match(r'\s*<p class="question">[^<]*\?</p>', question)


def test_no_formula_is_left_as_it_is_typed(page):
    shown = re.sub(r"<(style|script|pre|code)\b.*?</\1>", "", page, flags=re.S)
    shown = re.sub(r"<[^>]*>", "", shown)  # attributes are for machines
    assert "^{" not in shown
    assert "σ_min" not in shown


def test_formulas_are_raised_and_lowered_and_everything_else_is_escaped():
    assert typeset("δ^{−½} & σ_min <x_min>") == "δ<sup>−½</sup> &amp; σ<sub>min</sub> &lt;x_min&gt;"


def test_claims_without_runs_are_folded_away(page, report):
    listed = page[page.index('<ol class="claims">') : page.index("</ol>")]
    folded = page[page.index('<details class="unmeasured">') :].split("</details>")[0]
    for claim, found in report.claims:
        name = f'id="claim-{claim.name}"'
        assert (name in listed) == (found.verdict != OPEN or bool(found.keys))
    assert folded.count("<li>") == sum(found.verdict == OPEN and not found.keys for _, found in report.claims)


def test_page_needs_nothing_from_outside(elements):
    for tag, attributes in elements:
        assert tag not in ("iframe", "img", "object")
        if tag == "script":
            assert "src" not in attributes
        for name in ("src", "href"):
            assert not re.match(r"(https?:)?//", attributes.get(name) or ""), (tag, attributes)


def test_style_and_script_load_nothing(page):
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert "fetch(" not in page


def test_ids_are_unique_and_links_inside_the_page_lead_somewhere(elements):
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in elements:
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids, (tag, attributes)


def test_files_that_the_page_links_to_lie_beside_it(elements, report):
    for _, attributes in elements:
        link = attributes.get("href") or ""
        if link and not link.startswith(("#", "data:")):
            assert (report.page.parent / link).stat().st_size > 0


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_is_in_the_page_and_lies_beside_it_as_pdf_and_csv(name, page, report):
    assert f'<figure id="{name}">' in page
    folder = report.page.parent / "figures"
    assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert len(pd.read_csv(folder / f"{name}.csv")) > 2


def test_every_contender_can_be_toggled(runs, page):
    for name in costs.prepare(runs).contender.unique():
        assert f'data-contender="{draw.slug(name)}' in page


def test_figures_have_no_colour_of_their_own(page):
    for svg in re.findall(r"<svg role.*?</svg>", page, flags=re.S):
        assert not re.search(r"#[0-9a-f]{6}", svg, flags=re.I)
        assert "var(--" in svg


def test_every_run_has_its_row(runs, page):
    for key in runs.key:
        assert f'id="run-{key}"' in page


def test_failures_are_listed_with_their_reason_and_escaped(page, runs):
    assert (runs.status == "failed").any()
    assert "this solver &lt;breaks&gt; &amp; says so" in page
    assert "<breaks>" not in page


def test_claims_link_to_the_runs_they_rest_on(report, runs):
    table = pd.read_csv(report.page.parent / "claims.csv").set_index("claim")
    assert table.loc["gd-homgd", "verdict"] in ("holds", "does not hold")
    keys = table.loc["gd-homgd", "runs"].split()
    behind = runs.set_index("key").loc[keys]
    assert set(behind.method) == {"gd", "homgd"}
    assert set(behind.group) == {"figure-1b"}


def test_a_number_in_a_figure_is_traced_to_its_run(report, runs):
    data = pd.read_csv(report.page.parent / "figures" / "figure-1b.csv")
    here = data[(data.name == "gd · identity") & data.iterations.notna()]
    prepared = costs.prepare(runs)
    mine = prepared[(prepared.contender == "gd · identity") & (prepared.repeat == 0)]
    gap, shown = here["relative gap"].iloc[-1], here.iterations.iloc[-1]
    found = [costs.cost(one, [gap * (1 + 1e-5)], "iterations")[0] for one in costs.each(mine)]
    assert shown == pytest.approx(np.median(found), rel=0.02)


def test_summary_says_the_same(report):
    text = re.sub(r"\\(.)", r"\1", report.page.with_suffix(".md").read_text(encoding="utf-8"))
    for sentence in report.answer:
        assert sentence in text
    for claim, found in report.claims:
        assert level(claim.sentence) in text
        assert f"**{found.verdict}**" in text or (found.verdict == OPEN and not found.keys)
    tables = [line.count("|") for line in text.splitlines() if line.startswith("| ")]
    assert min(tables) >= 4


def test_record_says_how_to_make_it_again(page):
    assert "quartbench compare --study small.toml --out results" in page
    assert "seeds" in page


@pytest.fixture
def few(results, tmp_path):
    """Return a directory with three of the results, without kernels: what is drawn in a moment."""
    few = tmp_path / "few"
    (few / "runs").mkdir(parents=True)
    shutil.copy(results / "_study.json", few)
    for path in sorted((results / "runs").iterdir())[:3]:
        shutil.copy(path, few / "runs")
    return few


def test_report_command_runs_nothing_prints_the_verdict_and_leaves_the_results_readable(results, few, monkeypatch):
    from quartbench import solvers
    from quartbench.study import kernels

    def refuse(*arguments, **options):
        raise AssertionError("a report must not run anything")

    monkeypatch.setattr(solvers.prepared.Prepared, "run", refuse)
    monkeypatch.setattr(kernels, "measure", refuse)
    done = CliRunner().invoke(main, ["report", str(few)])
    assert done.exit_code == 0, done.output
    assert "verdict" in done.output
    assert not re.search(r"^ *not measured ", done.output, flags=re.M), "they are counted, not listed"
    assert "are not measured here" in " ".join(done.output.split())
    assert "report.html" in done.output.replace("\n", "")
    assert (few / "_report" / "report.md").exists()
    assert len(pd.read_parquet(few)) == 3


def test_a_report_without_kernels_says_how_to_measure_them(few, tmp_path):
    assert "quartbench kernels --out" in write(few, tmp_path / "page.html").page.read_text()


def test_bad_input_is_one_clear_line(few, tmp_path):
    with pytest.raises(ProblemError, match=r"must end in \.html"):
        write(few, tmp_path / "page.pdf")
    with pytest.raises(ProblemError, match="no study in"):
        write(tmp_path)
    (tmp_path / "figures").write_text("in the way")
    with pytest.raises(ProblemError, match="cannot write"):
        write(few, tmp_path / "page.html")


def test_broken_kernels_file_is_named(few, tmp_path):
    (few / "_kernels").mkdir()
    (few / "_kernels" / "kernels.json").write_text("{")
    with pytest.raises(ProblemError, match=r"kernels\.json"):
        write(few, tmp_path / "page.html")


def test_styles_differ_and_stay_fixed():
    names = ["gd · identity", "homgd · identity", "x", "y", "z"]
    found = draw.styles(names)
    assert len(set(found.values())) == len(names)
    assert draw.styles(["homgd · identity"])["homgd · identity"] == found["homgd · identity"]


def test_no_two_contenders_of_a_figure_look_alike_and_each_keeps_its_look():
    names = [f"{method} · {metric}" for method in "abcdefghijkl" for metric in ("identity", "uniform", "lewis")]
    found = draw.styles(names)
    assert len(set(found.values())) == len(names) == 36
    assert draw.styles(["l · lewis", "a · identity"], found) == {
        name: found[name] for name in ("l · lewis", "a · identity")
    }
    # Fixed styles that are the same give way too, the later one.
    assert draw.FIXED["homgd · identity"] == draw.FIXED["bregman · uniform"]
    met = draw.styles(["homgd · identity", "bregman · uniform"])
    assert met["homgd · identity"] == draw.FIXED["homgd · identity"] != met["bregman · uniform"]


def test_more_contenders_than_styles_share_them():
    assert len(draw.styles([str(number) for number in range(100)])) == 100


def test_legends_of_the_page_tell_their_contenders_apart(page):
    legends = re.findall(r'<div class="legend".*?</div>', page, re.S)
    assert len(legends) >= len(FIGURES)
    for legend in legends:
        looks = re.findall(r'style="(color:[^"]*)"><svg[^>]*>(.+?)</svg>', legend, re.S)
        assert len(set(looks)) == len(looks) == legend.count("<button")


def test_a_title_is_broken_where_it_would_run_over_the_edge():
    words = "planted-partition n=200 clusters=4 p_in=0.3 p_out=0.05"
    drawn = draw.svg(
        Panel(words, "seconds", "gap", [Series("auto", np.array([1.0, 2.0]), np.array([1.0, 0.5]))]),
        "x",
        draw.styles(["auto"]),
    )
    lines = re.findall(r"<text[^>]*>(.*?)</text>", drawn)
    (first,) = [line for line in lines if "planted" in line]
    assert "out" not in first
    assert 'p<tspan dy="2" font-size="75%">in</tspan><tspan dy="-2">=0.3' in first


def ticks(x, y, **axes):
    """Return the numbers on the axes of a panel, across and up, as they are written."""
    panel = Panel("", "seconds", "accuracy", [Series("auto", np.array(x), np.array(y))], **axes)
    drawn = draw.svg(panel, "x", draw.styles(["auto"]))
    return [
        re.findall(r"<text[^>]*>([^<]*)</text>", re.search(rf'id="x-matplotlib.axis_{side}".*', drawn, re.S).group())
        for side in (1, 2)
    ]


def test_a_logarithmic_axis_has_more_than_one_number():
    across, _ = ticks([0.03, 0.7], [1.0, 2.0])
    assert across[: across.index("seconds")] == ["0.05", "0.1", "0.2", "0.5"]
    across, _ = ticks([0.5, 2000.0], [1.0, 2.0])
    assert across[: across.index("seconds")] == ["1", "10", "100", "1000"]


def test_numbers_of_a_linear_axis_have_room():
    across, _ = ticks([0.0002, 0.0032], [1.0, 2.0], xlog=False)
    assert across[: across.index("seconds")] == ["0.001", "0.002", "0.003"]


def test_differences_of_a_thousandth_do_not_fill_a_linear_axis():
    _, up = ticks([1.0, 2.0], [0.994, 0.996], ylog=False)
    assert all(len(number) <= 4 for number in up[: up.index("accuracy")])


def test_a_legend_shows_lines_and_points_as_they_are_drawn(page):
    looks = {}
    for name in ("figure-1b", "scaling-m", "ratios"):
        (legend,) = re.findall(rf'<figure id="{name}">.*?<div class="legend".*?</div>', page, re.S)
        looks[name] = {(one.count("<line"), one.count("<path")) for one in re.findall(r"<svg.*?</svg>", legend)}
    assert looks == {"figure-1b": {(1, 0)}, "scaling-m": {(1, 1)}, "ratios": {(0, 1)}}


def test_a_curve_begins_at_its_start_though_a_logarithmic_axis_has_no_zero():
    quick = run((1.0, 1e-8), iterations=(0, 3), method="homcg", rel_gap=1e-8)
    slow = run((1.0, 0.5, 1e-8), iterations=(0, 900, 1000), method="homgd", rel_gap=1e-8)
    panel = gap_panel("spectrum", costs.prepare(frame(quick, slow)), "iterations")
    assert panel.xlog
    for series in panel.series:
        assert (series.x[0], series.y[0]) == (1.0, pytest.approx(1.0))
        assert series.x[1] > 1.0
        assert series.low[0] == series.high[0] == 1.0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("n^{1−1/p}", '<span class="whole">n<sup>1−1/p</sup></span>'),
        ("where |Ω|γ ≫ N", 'where <span class="whole">|Ω|γ</span> ≫ N'),
        ("gaps from 4.8e-06 to 1e-10", "gaps from 4.8·10⁻⁶ to 10⁻¹⁰"),
        ("clarabel tolerance=1e-07", "clarabel tolerance=1e-07"),
        ("σ_min=0.2 p_in=0.3 step_in", "σ<sub>min</sub>=0.2 p<sub>in</sub>=0.3 step_in"),
        ("95 % at p = 2, (p − 1)", "95\u00a0% at p\u00a0=\u00a02, (p\u00a0−\u00a01)"),
        ("<b> a/b", '&lt;b&gt; <span class="whole">a/b</span>'),
    ],
)
def test_formulas_are_typeset(text, shown):
    assert typeset(text) == shown


def test_conditions_over_many_cases_are_lists():
    assert as_many("It takes at most 1 times the passes of B") == "It takes at most as many passes as B"
    for kept in ("0.9 to 1 times the passes of B", "21 times the passes of B", "0.1 times the passes of B"):
        assert as_many(kept) == kept
    assert listed("not for a nor b nor c") == "not for a, b or c"
    assert listed("for a and b and c") == "for a, b and c"
    assert listed("not for a nor b") == "not for a or b"
    assert listed("") == ""


def test_what_raises_nothing_has_brackets():
    assert level("δ^{−1/2} + x^{2}") == "δ^(−1/2) + x^2"
    assert _plain("(p − 1)^{k+1}") == "(p − 1)^(k+1)"


def test_one_claim_is_one_claim(few, tmp_path):
    answer = write(few, tmp_path / "report.html").answer[0]
    assert not re.search(r"\b1 (claims|hold|do|are)\b|; 0 ", answer)


def test_a_trivial_problem_is_a_tie_at_no_cost_and_no_evidence(few, tmp_path):
    cells = ((trivial, "nothing", 0), (run, "some", 0), (run, "mixed", 0), (trivial, "mixed", 1))
    for kind, instance, seed in cells:
        for group in ("figure-1a", "scaling-kappa", "peers"):
            for solver in ("auto", "homgd", "homnewton"):
                key = f"{kind.__name__}-{instance}-{seed}-{group}-{solver}"
                who = {"solver": solver, "method": solver, "metric_asked": "auto", "settings": '{"step": "fixed"}'}
                row = kind(instance=instance, seed=seed, group=group, kappa_bound=2.0) | who
                store.write(few, row | {"key": key, "created": key})
    made = write(few, tmp_path / "report.html")
    (nothing,) = [one for one in made.winners if (one.instance, one.group) == ("nothing", "peers")]
    assert (nothing.seconds, nothing.passes, nothing.factor) == (0.0, 0.0, 1.0)
    for claim, found in made.claims:
        assert not any(key.startswith("trivial") for key in found.keys), claim.name
    done = CliRunner().invoke(main, ["report", str(few)], env={"COLUMNS": "200"})
    assert "tie with homgd" in done.output


def test_rates_of_one_seed_are_drawn_without_a_fit(few, tmp_path):
    gaps = tuple(0.1 / k**2 for k in range(1, 200))
    store.write(few, run(gaps=gaps, group="rates", instance="degenerate") | {"key": "one", "created": "one"})
    page = write(few, tmp_path / "report.html").page.read_text()
    assert "No exponent is fitted: that takes runs of several seeds." in page


def test_figures_of_runs_that_all_failed_are_left_out():
    assert figures(frame(run(group="figure-1a", status="failed")), None) == []


def test_settings_in_the_record_are_those_of_the_study(results, page):
    config = json.loads((results / "_study.json").read_text())["config"]
    assert config["name"] == "small"
    assert "&#34;name&#34;: &#34;small&#34;" in page


def test_names_that_users_give_are_shown_in_markdown_as_they_are():
    assert _plain("a|b <i>c</i>\n*d* [e](f) `g` _h_ i_j \\") == (r"a\|b \<i\>c\</i\> \*d\* \[e\](f) \`g\` \_h\_ i_j \\")
