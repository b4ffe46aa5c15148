"""Bring licences, links and import names of core metadata into the form of records, within their limits.

Values are single lines without control characters. Nothing is parsed: an invalid licence expression or URL stays as the
project wrote it.
"""

import string
from collections.abc import Iterable

from pypi_assets.characters import lower

MAX_LICENSE_BYTES = 1024
"""The maximum length of the License field in UTF-8. Many projects put the whole text of their licence there."""
MAX_VALUES = 1000
MAX_VALUE_CHARACTERS = 2000
"""Longer values are skipped, and of the others a field keeps the first MAX_VALUES."""
LICENSE_CLASSIFIER = "License ::"
_NOT_IN_LABELS = str.maketrans("", "", string.punctuation + string.whitespace)
_UNKNOWN = "UNKNOWN"
"""The value that distutils and old setuptools write into a field that the project leaves empty."""


def cut_license(text: str | None) -> str | None:
    """Return at most MAX_LICENSE_BYTES from the start of `text`, without cutting a character."""
    if text is None or len(text) * 4 <= MAX_LICENSE_BYTES:
        return text
    return text.encode()[:MAX_LICENSE_BYTES].decode(errors="ignore").rstrip()


def bounded(values: Iterable[str], field: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the distinct `values` in their order, within the limits, and a note if some are skipped."""
    distinct = dict.fromkeys(values)
    kept = tuple([value for value in distinct if len(value) <= MAX_VALUE_CHARACTERS][:MAX_VALUES])
    if len(kept) == len(distinct):
        return kept, ()
    limits = f"a record keeps {MAX_VALUES} of at most {MAX_VALUE_CHARACTERS} characters each"
    return kept, (f"{field}: {len(distinct) - len(kept)} values are left out: {limits}",)


def license_classifiers(classifiers: Iterable[str]) -> list[str]:
    """Return the classifiers that name a licence."""
    return [classifier for classifier in classifiers if classifier.startswith(LICENSE_CLASSIFIER)]


def join_urls(project_urls: Iterable[str], home_page: str | None, download_url: str | None) -> list[str]:
    """Return `label, URL` for each link of a project, in the order of the index's JSON.

    Home-page and Download-URL come first, as `Homepage` and `Download`. A link is skipped if its value is UNKNOWN, or
    if `project_urls` has the same URL under an equal label by the rule of PEP 753.

    >>> join_urls(["Home Page, https://example.org"], "https://example.org", "https://example.org/files")
    ['Download, https://example.org/files', 'Home Page, https://example.org']
    """
    written = list(project_urls)
    labelled = set()
    if home_page or download_url:
        for value in written:
            label, _, url = value.partition(",")
            labelled.add((lower(label.translate(_NOT_IN_LABELS)), url.strip()))
    links = [
        f"{label}, {url}"
        for label, url in (("Homepage", home_page), ("Download", download_url))
        if url and url != _UNKNOWN and (lower(label), url) not in labelled
    ]
    return links + written
