"""The page of the history in a browser: no error, nothing loaded, it finds, filters, links, fits and prints."""

import base64
import re

import pytest

from quartbench.gate import history, page
from tests.browser import opened

from .test_history import COUNT, results  # noqa: F401 - a fixture


@pytest.fixture(scope="module")
def shown(results, tmp_path_factory):  # noqa: F811
    """Return a browser with the page open, one for all tests; each leaves the page as it found it."""
    with opened(page.write(history.read(results), tmp_path_factory.mktemp("page") / "history.html")) as driver:
        yield driver


def visible(shown):
    script = (
        "return [...document.querySelectorAll('.series')].filter(s => s.checkVisibility()).map(s => s.dataset.name)"
    )
    return [name.strip() for name in shown.execute_script(script)]


def find(shown, words, changed=False):
    script = """const field = document.getElementById('find'), box = document.getElementById('changed');
        field.value = arguments[0]; box.checked = arguments[1]; field.dispatchEvent(new Event('input'))"""
    shown.execute_script(script, words, changed)


def test_no_error_and_no_load(shown):
    assert [entry for entry in shown.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert shown.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_every_series_is_drawn_with_its_points_and_changes(shown):
    drawn = shown.execute_script(
        "return [...document.querySelectorAll('.series')].map(s => [s.querySelector('polyline').points.length,"
        " s.querySelectorAll('path.worse, path.better').length, s.querySelector('svg').getBoundingClientRect().width])"
    )
    assert len(drawn) == 7
    assert all(points >= COUNT - 1 and width > 200 for points, _, width in drawn)
    assert sum(marks for _, marks, _ in drawn) == 3


def test_pointing_at_a_drawing_says_the_value_and_the_commit(shown):
    script = """const drawing = document.querySelector(arguments[0] + ' svg'), box = drawing.getBoundingClientRect();
        const at = {clientX: box.left + arguments[1] * box.width, clientY: box.top + 9, bubbles: true};
        drawing.dispatchEvent(new PointerEvent('pointermove', at));
        const said = document.querySelector(arguments[0] + ' header span').textContent;
        drawing.dispatchEvent(new PointerEvent('pointerout', {bubbles: true, relatedTarget: document.body}));
        return [said, document.querySelector(arguments[0] + ' header span').textContent]"""
    panel = "[data-name^=\"gate.SolverCounts.track_passes('rows', 'homgd')\"]"
    assert shown.execute_script(script, panel, 0.02) == ["40 passes · 00000000", "64 passes"]
    assert shown.execute_script(script, panel, 0.99) == ["64 passes · 00000017", "64 passes"]


def test_words_and_the_box_find_series(shown):
    everything = visible(shown)
    find(shown, "homgd PASSES")
    assert visible(shown) == [f"gate.SolverCounts.track_passes('{rows}', 'homgd')" for rows in ("rows", "graph")]
    assert shown.execute_script("return document.getElementById('module-kernels').checkVisibility()") is False
    find(shown, "", changed=True)
    assert len(visible(shown)) == 3
    find(shown, "")
    assert visible(shown) == everything


def test_the_table_of_changes_is_the_largest_first_and_sorts(shown):
    script = (
        "return [...document.querySelectorAll('[data-table=changes] tbody tr')].map(r => Number(r.cells[4].dataset.v))"
    )
    ratios = shown.execute_script(script)
    sizes = [max(ratio, 1 / ratio) for ratio in ratios]
    assert sizes == sorted(sizes, reverse=True)
    shown.execute_script("document.querySelector('[data-table=changes] th:nth-child(5) button').click()")
    assert shown.execute_script(script) == sorted(ratios)
    assert shown.execute_script("return document.querySelectorAll('[data-table=changes] .spark polyline').length") == 3


def test_a_time_leads_to_its_counts_even_where_they_are_filtered_away(shown):
    find(shown, "time_to_gap")
    link = "[data-name^=\"gate.SolverTimes.time_to_gap('homgd')\"] .links a"
    target = shown.execute_script("const a = document.querySelector(arguments[0]); a.click(); return a.hash", link)
    shown.execute_async_script("setTimeout(arguments[0], 100)")
    name = shown.execute_script("return document.querySelector(arguments[0]).dataset.name", target)
    assert "track_passes" in name
    assert name.strip() in visible(shown)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_the_screen(shown, width):
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    shown.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert shown.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        shown.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_is_dark_where_the_system_is_and_prints(shown):
    for wish, dark in (("light", False), ("dark", True)):
        shown.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": wish}]}
        )
        colour = shown.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", colour)[:3])) < 200) is dark
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert base64.b64decode(shown.print_page()).startswith(b"%PDF")
