"""Is what the pages are made from there, and do broken links and loads from a network not go unseen?"""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import quartbench
import quartbench.testing
from quartbench.solvers import solvers

ROOT = Path(__file__).parents[2]


@pytest.fixture
def extension(monkeypatch):
    """Return a function that imports an extension of the documentation."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    yield importlib.import_module
    for name in ("docstrings", "generated", "links", "mathml", "thumbnails"):
        sys.modules.pop(name, None)


def test_every_statement_of_the_paper_has_its_files_tests_and_claims(extension):
    generated = extension("generated")
    found = generated.statements()
    assert len(found) > 20
    assert not [missing for one in found for missing in generated.absent(one)]
    gone = {"files": ["no/such.py"], "tests": ["model/test_problem.py::test_nothing"], "claims": ["none"]}
    assert generated.absent(gone) == ["no/such.py", "model/test_problem.py::test_nothing", "none"]


def test_every_erratum_that_is_cited_has_its_place():
    errata = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    assert [f"(errata-{n})=" in errata for n in range(1, 17)] == [True] * 16


def test_the_table_of_methods_is_that_of_the_measurements(extension):
    table = extension("generated").measured()
    assert len(table) == 13
    assert {"auto", "homcg", "homnewton-cg"} <= set.intersection(*map(set, table.values())) <= set(solvers())
    seconds, passes = table["geometric N=2000 d=3"]["homnewton"]
    assert seconds is passes is None, "a dense Hessian of so many points was refused"
    assert all(seconds > 0 and passes > 0 for row in table.values() for seconds, passes in [row["auto"]])


def test_docstrings_keep_bars_and_lead_to_errata(extension):
    lines = ["ρ(x) = Σ |⟨q,x⟩|⁴ (ERRATA 5, 13), ``a | b``", ">>> a | b", "1 | 2", "", "see ERRATA 8 and 9"]
    extension("docstrings").readable(None, None, None, None, None, lines)
    assert lines == [
        "ρ(x) = Σ \\|⟨q,x⟩\\|⁴ (ERRATA :ref:`5 <errata-5>`, :ref:`13 <errata-13>`), ``a | b``",
        ">>> a | b",
        "1 | 2",
        "",
        "see ERRATA :ref:`8 <errata-8>` and :ref:`9 <errata-9>`",
    ]


def test_docstrings_move_powers_and_indices_and_attributes_have_no_type_of_words(extension):
    lines = ["−3/4^{4/3} ρ^{−1/3}, ``a^{b}``, x_{k+1}", ">>> a^{b}"]
    extension("docstrings").readable(None, None, None, None, None, lines)
    assert lines == ["−3/4\\ :sup:`4/3`\\  ρ\\ :sup:`−1/3`\\ , ``a^{b}``, x\\ :sub:`k+1`\\ ", ">>> a^{b}"]
    lines = ["P_K(x_k) θ_k²L_k in ‖·‖_B or ‖·‖²_F of time_limit, x_in, coef_ and ``x_k``"]
    extension("docstrings").readable(None, None, None, None, None, lines)
    moved = "P_{K}(x_{k}) θ_{k}²L_{k} in ‖·‖_{B} or ‖·‖²_{F}"
    for sign in "KkBF":
        moved = moved.replace(f"_{{{sign}}}", f"\\ :sub:`{sign}`\\ ")
    assert lines == [f"{moved} of time_limit, x_in, coef_ and ``x_k``"]
    lines = ["‖τ‖_q, ‖v‖_* and −λ_max, ∇F_before, D_ρ̃ of p_out; ⟨Bx,x⟩^½, ρ''(x)"]
    extension("docstrings").readable(None, None, None, None, None, lines)
    assert lines == [
        "‖τ‖\\ :sub:`q`\\ , ‖v‖\\ :sub:`*`\\  and −λ\\ :sub:`max`\\ , ∇F\\ :sub:`before`\\ , D\\ :sub:`ρ̃`\\  of p_out; "
        "⟨Bx,x⟩\\ :sup:`½`\\ , ρ″(x)"
    ]
    for what, shown in (("attribute", "c as given; see: it"), ("method", "c as given: see: it")):
        lines = ["c as given: see: it"]
        extension("docstrings").described(None, what, None, None, None, lines)
        assert lines == [shown]


def test_parameters_of_one_description_stand_together(extension):
    lines = [":param m: Terms and", "          variables.", ":type m: int"]
    lines += [line.replace(" m:", " n:") for line in lines]
    lines += [":param seed: Of both.", ":type seed: int", ":param a: One.", ":param b: Two.", "", "x"]
    extension("docstrings").joined(None, None, None, None, None, lines)
    assert lines == [
        ":param m,n: Terms and",
        "          variables.",
        ":type m,n: int",
        ":param seed: Of both.",
        ":type seed: int",
        ":param a: One.",
        ":param b: Two.",
        "",
        "x",
    ]


def test_statements_are_typeset_and_conditions_read(extension):
    generated = extension("generated")
    shown = generated.typeset("λ_min ≤ δ^{−1/2}‖x‖²_F a_b")
    assert [(node.tagname, node.astext()) for node in shown.children] == [
        ("#text", "λ"),
        ("subscript", "min"),
        ("#text", " ≤ δ"),
        ("superscript", "−1/2"),
        ("#text", "‖x‖²"),
        ("subscript", "F"),
        ("#text", " a_b"),
    ]
    verdicts = set(generated.claim_verdicts().values())
    assert "holds" in verdicts
    assert not any(words.startswith("holds not") for words in verdicts)


def test_fences_of_formulas_are_no_higher_than_their_partners(extension):
    shown = extension("mathml").drawn(r"\left(\sum_i \langle a, x \rangle^2\right) \|x\|", as_block=True)
    fences = {sign: f'<mo stretchy="false">{sign}</mo>' in shown for sign in "⟨⟩‖()"}
    assert fences == {"⟨": True, "⟩": True, "‖": True, "(": False, ")": False}


def test_code_is_no_wider_than_a_page(extension):
    generated = extension("generated")
    found = []
    for path in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]:
        fenced = False
        for line in path.read_text(encoding="utf-8").splitlines():
            fenced ^= line.startswith("```")
            code = line if fenced and not line.startswith(":") else line[4:] if line.startswith("    ") else ""
            found += [(path.name, line)] if len(code) > generated.WIDTH else []
    for module in (quartbench, quartbench.instances, quartbench.inverse, quartbench.testing):
        for name in module.__all__:
            lines = inspect.cleandoc(getattr(module, name).__doc__ or "").splitlines()
            # Examples stand a step further in than the text of a page.
            code = (line.partition("  # doctest:")[0] for line in lines if line.startswith((">>> ", "... ")))
            found += [(name, line) for line in code if len(line) > generated.WIDTH - 2]
    assert not found
    command = "    quartbench compare --instance spectrum:m=2000,n=1000,sigma_min=0.02 --solver homcg --out results"
    assert generated.folded(command) == [
        "    quartbench compare --instance spectrum:m=2000,n=1000,sigma_min=0.02 --solver homcg \\",
        "        --out results",
    ]
    for line in (command[:80], "  --option TEXT  " + "words " * 20):
        assert generated.folded(line) == [line]


def test_thumbnails_are_named_after_their_pages(extension):
    thumbnails = extension("thumbnails")
    nodes = thumbnails.nodes
    page = nodes.section()
    for title in ("One &amp; two", "Three"):
        page += nodes.image(uri=f"/gallery/images/thumb/sphx_glr_{len(page)}_thumb.png", alt="")
        page += nodes.paragraph("", "a link")
        page += nodes.raw("", f'<div class="sphx-glr-thumbnail-title">{title}</div></div>', format="html")
    thumbnails.named(None, page)
    assert [image["alt"] for image in page.findall(nodes.image)] == ["Picture of “One & two”", "Picture of “Three”"]


def test_broken_links_and_loads_are_found(extension, tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here">x</a><a href="#gone">x</a><a href="b.html#there">x</a><a href="c.html">x</a>'
        '<a href="https://example.org/">x</a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="there"><img src="a.html"><img src="none.png">')
    assert extension("links").problems(tmp_path) == [
        "a.html loads https://example.org/x.js from a network",
        "a.html links to #gone, and that page has no such place",
        "a.html links to c.html, which is not there",
        "b.html links to none.png, which is not there",
    ]


@pytest.mark.slow
def test_the_pages_build_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "index.html").exists()
