"""A browser for the tests of pages; they are skipped without one, and fail where CI is set."""

import os
import shutil
from contextlib import contextmanager

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
DRIVER = shutil.which("chromedriver")


@contextmanager
def opened(page):
    """Open a page of a file in a headless browser."""
    if BROWSER is None or DRIVER is None:
        missing = "chromium" if BROWSER is None else "chromedriver"
        reason = f"no {missing} here (Debian: apt-get install chromium chromium-driver)"
        if os.environ.get("CI"):
            pytest.fail(f"CI is set, so the page must be tested: {reason}")
        pytest.skip(reason)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,1000",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        driver.get(page.as_uri())
        yield driver
    finally:
        driver.quit()
