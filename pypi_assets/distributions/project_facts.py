"""Licence, links and import names of core metadata, brought into the form and within the limits of a record.

Values come in as single lines without control characters. Nothing is parsed here: a licence expression or a URL can be
wrong, and stays as the project wrote it.
"""

import string
from collections.abc import Iterable

from pypi_assets.characters import lower

MAX_LICENSE_BYTES = 1024
"""Of the License field in UTF-8: many projects put the whole text of their licence there."""
MAX_VALUES = 1000
MAX_VALUE_CHARACTERS = 2000
"""A field keeps the first MAX_VALUES of its values that are no longer than this."""
LICENSE_CLASSIFIER = "License ::"
_NOT_IN_LABELS = str.maketrans("", "", string.punctuation + string.whitespace)
_UNKNOWN = "UNKNOWN"
"""What distutils and old setuptools write into a field that the project leaves empty."""


def cut_license(text: str | None) -> str | None:
    """The start of `text`: at most MAX_LICENSE_BYTES, and no part of a character."""
    if text is None or len(text) * 4 <= MAX_LICENSE_BYTES:
        return text
    return text.encode()[:MAX_LICENSE_BYTES].decode(errors="ignore").rstrip()


def bounded(values: Iterable[str], field: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The distinct `values` in their order, within the limits, and a note where some of them are left out."""
    distinct = dict.fromkeys(values)
    kept = tuple([value for value in distinct if len(value) <= MAX_VALUE_CHARACTERS][:MAX_VALUES])
    if len(kept) == len(distinct):
        return kept, ()
    limits = f"a record keeps {MAX_VALUES} of at most {MAX_VALUE_CHARACTERS} characters each"
    return kept, (f"{field}: {len(distinct) - len(kept)} values are left out: {limits}",)


def license_classifiers(classifiers: Iterable[str]) -> list[str]:
    """Those of `classifiers` that name a licence."""
    return [classifier for classifier in classifiers if classifier.startswith(LICENSE_CLASSIFIER)]


def join_urls(project_urls: Iterable[str], home_page: str | None, download_url: str | None) -> list[str]:
    """`label, URL` of each link of a project, in the order of the index's own JSON.

    Home-page and Download-URL come first, as `Homepage` and `Download`. Each is left out if it is UNKNOWN, or if one of
    `project_urls` has the same URL under such a label, by the rule of PEP 753 for equal labels.

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
