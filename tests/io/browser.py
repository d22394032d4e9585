"""A browser without a window, for tests of pages: Chromium, by playwright."""

import shutil
from contextlib import contextmanager

import numpy as np
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60_000
"""Longest wait for a page [ms]: without a GPU the browser draws on the processor."""


@contextmanager
def page(width: int = 480, height: int = 300):
    """A page of a browser and the list of errors that it reports; the test is skipped where there is no browser."""
    reason = "needs playwright and Chromium: pip install playwright; playwright install chromium"
    api = pytest.importorskip("playwright.sync_api", reason=reason)
    own = next((found for name in NAMES if (found := shutil.which(name))), None)
    with api.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
        try:
            browser = driver.chromium.launch(executable_path=own, args=arguments)
        except api.Error as error:
            pytest.skip(f"{reason}; {str(error).splitlines()[0]}")
        opened = browser.new_page(viewport={"width": width, "height": height})
        opened.set_default_timeout(PATIENCE)
        errors: list[str] = []
        opened.on("console", lambda one: errors.append(one.text) if one.type == "error" else None)
        opened.on("pageerror", lambda one: errors.append(str(one)))
        try:
            yield opened, errors
        finally:
            browser.close()


def pixels(opened) -> np.ndarray:
    """(h, w, 3) what the page shows."""
    import io

    from PIL import Image

    picture = Image.open(io.BytesIO(opened.screenshot(timeout=2 * PATIENCE)))
    return np.asarray(picture.convert("RGB")).astype(int)
