"""The page in a browser: no error, its figures show, its tables sort and filter, its legends toggle, it prints."""

import base64
import re

import pytest

from tests.browser import opened


@pytest.fixture(scope="module")
def page(report):
    """Return a browser with the page open, one for all tests; each leaves the page as it found it."""
    with opened(report.page) as driver:
        yield driver


def texts(page, table, column):
    script = """return [...document.querySelectorAll(`[data-table="${arguments[0]}"] tbody tr`)]
        .filter(row => row.checkVisibility()).map(row => row.cells[arguments[1]].textContent)"""
    return page.execute_script(script, table, column)


def values(page, table, column):
    script = """return [...document.querySelectorAll(`[data-table="${arguments[0]}"] tbody tr`)]
        .map(row => row.cells[arguments[1]].dataset.v)"""
    return [float(value) for value in page.execute_script(script, table, column)]


def click(page, selector):
    page.execute_script("document.querySelector(arguments[0]).click()", selector)


def write_into(page, selector, text):
    script = """const field = document.querySelector(arguments[0]);
        field.value = arguments[1]; field.dispatchEvent(new Event('input'))"""
    page.execute_script(script, selector, text)


def test_no_error_in_the_console(page):
    assert [entry for entry in page.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def test_every_figure_is_visible(page):
    sizes = page.execute_script(
        "return [...document.querySelectorAll('figure svg[role=img]')].map(s => { const b = s.getBoundingClientRect();"
        " return [b.width, b.height, s.querySelectorAll('[data-contender] path, [data-contender] use').length] })"
    )
    assert len(sizes) >= 15
    assert all(width > 200 and height > 150 and drawn > 0 for width, height, drawn in sizes)


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(page):
    heading = '[data-table="costs"] th:nth-child(6) button'
    click(page, heading)
    ascending = values(page, "costs", 5)
    assert ascending == sorted(ascending)
    assert len(set(ascending)) > 3
    click(page, heading)
    assert values(page, "costs", 5) == ascending[::-1] or values(page, "costs", 5) == sorted(ascending, reverse=True)
    click(page, '[data-table="costs"] th:nth-child(3) button')
    names = texts(page, "costs", 2)
    assert names == sorted(names)


def test_words_filter_a_table(page):
    field = '[data-table="costs"] input'
    every = texts(page, "costs", 2)
    write_into(page, field, "figure-1b GD")
    kept = texts(page, "costs", 2)
    assert 0 < len(kept) < len(every)
    assert all("gd" in name for name in kept)
    write_into(page, field, "no such words")
    assert texts(page, "costs", 2) == []
    write_into(page, field, "")
    assert texts(page, "costs", 2) == every


def shown(page, name):
    script = """return [...document.querySelectorAll(`[data-contender~="${arguments[0]}"]`)]
        .filter(element => !element.closest('#every-run')) // the record always has all runs
        .filter(element => getComputedStyle(element).display !== 'none').length"""
    return page.execute_script(script, name)


def test_a_legend_toggles_a_contender_everywhere(page):
    name = "homgd-uniform"
    before, others = shown(page, name), shown(page, "homgd-lewis")
    assert before > 5
    click(page, f'#figure-2b [data-toggle="{name}"]')
    assert shown(page, name) == 0
    assert shown(page, "homgd-lewis") == others
    pressed = page.execute_script(
        f"return [...document.querySelectorAll('[data-toggle={name}]')].map(b => b.ariaPressed)"
    )
    assert len(pressed) > 1
    assert set(pressed) == {"false"}
    click(page, "#hidden-note button")
    assert shown(page, name) == before


def test_the_runs_of_a_claim_open_in_the_record(page, report):
    claim, found = next((c, f) for c, f in report.claims if f.keys)
    click(page, f"#claim-{claim.name} button.runs")
    assert sorted(texts(page, "runs", 0)) == sorted(found.keys)
    write_into(page, '[data-table="runs"] input', "")


def test_a_number_of_runs_opens_as_many_rows_whatever_the_legend_hides(page, report):
    claim, found = next((c, f) for c, f in report.claims if c.name == "preconditioning" and f.keys)
    click(page, '#figure-2b [data-toggle="homgd-uniform"]')
    click(page, f"#claim-{claim.name} button.runs")
    assert sorted(texts(page, "runs", 0)) == sorted(found.keys)
    click(page, "#hidden-note button")
    write_into(page, '[data-table="runs"] input', "")


def test_evidence_and_words_are_open_on_paper_and_closed_again(page):
    script = """const count = () => document.querySelectorAll('#claims details[open], header details[open]').length;
        const all = document.querySelectorAll('#claims details, header details').length;
        const before = count(); dispatchEvent(new Event('beforeprint'));
        const during = count(); dispatchEvent(new Event('afterprint'));
        return [all, before, during, count()]"""
    every, before, during, after = page.execute_script(script)
    assert during == every > before == after


def test_claims_are_shown_by_verdict(page):
    click(page, '.verdict-filter [data-verdict="holds"]')
    visible = (
        "return [...document.querySelectorAll('.claim')].filter(c => c.checkVisibility()).map(c => c.dataset.verdict)"
    )
    assert "holds" not in page.execute_script(visible)
    click(page, '.verdict-filter [data-verdict="holds"]')
    assert "holds" in page.execute_script(visible)


def background(page):
    return page.execute_script("return getComputedStyle(document.body).backgroundColor")


def brightness(page):
    return sum(map(int, re.findall(r"\d+", background(page))[:3]))


def test_dark_follows_the_system_and_the_button(page):
    for wish, dark in (("light", False), ("dark", True)):
        media = {"features": [{"name": "prefers-color-scheme", "value": wish}]}
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        assert (brightness(page) < 200) is dark
    click(page, "#theme")
    assert brightness(page) > 500
    ink = page.execute_script("return getComputedStyle(document.querySelector('figure svg text')).fill")
    assert sum(map(int, re.findall(r"\d+", ink)[:3])) < 350
    click(page, "#theme")
    assert brightness(page) < 200
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    page.execute_script("delete document.documentElement.dataset.theme")


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_the_page_fits_the_screen(page, width):
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        panels = page.execute_script(
            "return [...document.querySelectorAll('.panel')].map(p => p.getBoundingClientRect().width)"
        )
        assert min(panels) >= 230
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_page_prints(page):
    printed = base64.b64decode(page.print_page())
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 3


def test_paper_repeats_heads_shows_numbers_and_hides_nothing(page):
    # A head with a button as a box in it is not repeated by Chromium; a number that opens runs is still a number.
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        script = """const all = selector => [...document.querySelectorAll(selector)].map(e => getComputedStyle(e));
            return [all('th button').map(s => s.display), all('td .runs').map(s => s.display),
                    all('.evidence .runs').map(s => s.display), all('.scroll').map(s => s.maxHeight + s.overflowY),
                    all('thead').map(s => s.display)]"""
        heads, numbers, links, boxes, groups = map(set, page.execute_script(script))
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert (heads, links) == ({"contents"}, {"none"})
    assert numbers
    assert "none" not in numbers
    assert (boxes, groups) == ({"nonevisible"}, {"table-header-group"})
