"""Take the screenshots of the service's pages in docs/screens/, with the demo's data.

Run `make demo` first, then:

    .venv/bin/pip install selenium
    .venv/bin/python demo/page_screens.py [FOLDER]

Needs chromium and chromedriver. The screenshots show the dates of the demo's last run.
"""

import base64
import sys
from pathlib import Path
from typing import Any, NamedTuple

from pages import start
from screens import FOLDER, chromium

MOST_BYTES = 150_000


class Picture(NamedTuple):
    """A screenshot of the first `height` pixels of the page at `path`, which must contain the text `shows`."""

    name: str
    path: str
    shows: str
    width: int
    height: int
    scheme: str = "light"


PICTURES = (
    Picture("pages-home", "", "Recent events", 1000, 860),
    Picture("pages-import", "import/slugify/", "2 candidates", 1000, 620),
    Picture("pages-project", "project/requests/", "yanked", 1000, 830),
    Picture("pages-past", "at/{before}/project/requests/", "as it was at serial", 1000, 830, "dark"),
    Picture("pages-phone", "project/freezegun/", "python-dateutil", 360, 740),
)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    url = start()
    with chromium() as browser:
        before = serial_before_yank(browser, url)
        for picture in PICTURES:
            path = folder / f"{picture.name}.png"
            path.write_bytes(taken(browser, url + picture.path.format(before=before), picture))
            print(f"{path}, {path.stat().st_size} bytes")
            if path.stat().st_size > MOST_BYTES:
                raise SystemExit(f"{path} has more than {MOST_BYTES} bytes")


def serial_before_yank(browser: Any, url: str) -> int:
    """Return the last serial before the yank, from the first page's link *before*."""
    browser.get(url)
    link = browser.find_element("xpath", "//li[contains(., 'yanked')]//a[contains(., 'before')]")
    return int(link.get_attribute("href").split("/at/")[1].partition("/")[0])


def taken(browser: Any, url: str, picture: Picture) -> bytes:
    is_phone = picture.width < 500
    screen = {"width": picture.width, "height": picture.height, "deviceScaleFactor": 1, "mobile": is_phone}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme = {"features": [{"name": "prefers-color-scheme", "value": picture.scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    browser.get(url)
    if picture.shows not in browser.execute_script("return document.body.innerText"):
        raise SystemExit(f"{url} does not show {picture.shows!r}")
    clip = {"x": 0, "y": 0, "width": picture.width, "height": picture.height, "scale": 1}
    found = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return base64.b64decode(found["data"])


if __name__ == "__main__":
    main()
