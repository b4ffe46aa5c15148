"""Extracts the names of commands from the column `console_scripts`."""

from collections.abc import Iterable


def command_names(lines: Iterable[str]) -> list[str]:
    """Return the names before the `=` of `name = module:attribute`, sorted and without duplicates.

    >>> command_names(["http = httpie.__main__:main", "https = httpie.__main__:main"])
    ['http', 'https']
    """
    names = {line.partition("=")[0].strip() for line in lines}
    return sorted(names - {""})
