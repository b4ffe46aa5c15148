"""The names of commands in the lines of the column `console_scripts`."""

from collections.abc import Iterable


def command_names(lines: Iterable[str]) -> list[str]:
    """The names before the `=` of `name = module:attribute`, each once, ascending.

    >>> command_names(["http = httpie.__main__:main", "https = httpie.__main__:main"])
    ['http', 'https']
    """
    names = {line.partition("=")[0].strip() for line in lines}
    return sorted(names - {""})
