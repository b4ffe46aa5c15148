"""Notices to people, by mail, chat or whatever else Apprise knows: the services are named by URLs."""

from collections.abc import Sequence

_EXTRA = "sending notices needs Apprise: install pypi-assets[notify], or unset PYPI_ASSETS_NOTIFY_URLS"


def send_notice(urls: Sequence[str], title: str, text: str) -> list[str]:
    """Sends it to each of `urls`; returns what went wrong, without the URLs, which hold secrets."""
    if not urls:
        return []
    try:
        from apprise import Apprise
    except ImportError:
        return [_EXTRA]
    problems = []
    for number, url in enumerate(urls, 1):
        service = Apprise()
        if not service.add(url):
            problems.append(f"number {number} of PYPI_ASSETS_NOTIFY_URLS is no URL of a service that Apprise knows")
        elif not service.notify(body=text, title=title):
            problems.append(f"number {number} of PYPI_ASSETS_NOTIFY_URLS did not take the notice")
    return problems
