"""Send notices to people, by mail, chat or any other service of Apprise. URLs name the services.

The content of notices does not belong here: see `defs/run_notices.py`.
"""

from collections.abc import Sequence

from pypi_assets.extras import install_command
from pypi_assets.sanitize import inert_line, inert_notice

_EXTRA = f"sending notices needs Apprise: `{install_command('notify')}`, or unset PYPI_ASSETS_NOTIFY_URLS"


def send_notice(urls: Sequence[str], title: str, text: str) -> list[str]:
    """Send a notice to each of `urls`. Return the errors, without the URLs, which contain secrets.

    `title` and `text` can contain text from an index, so they are sent as plain text without active parts.
    """
    if not urls:
        return []
    try:
        from apprise import Apprise, NotifyFormat
    except ImportError:
        return [_EXTRA]
    title, text = inert_line(inert_notice(title)), inert_notice(text)
    problems = []
    for number, url in enumerate(urls, 1):
        service = Apprise()
        if not service.add(url):
            problems.append(
                f"number {number} of PYPI_ASSETS_NOTIFY_URLS is not the URL of a service that Apprise knows"
            )
        elif not service.notify(body=text, title=title, body_format=NotifyFormat.TEXT):
            problems.append(f"number {number} of PYPI_ASSETS_NOTIFY_URLS did not accept the notice")
    return problems
