"""A reader process that ends at any system call that is not allowed, and when it opens any file or module.

The real reader continues with an error, so its records do not show a module that was loaded too late.
"""

import os
import sys
from functools import partial

from pypi_assets.distributions import reader_process
from pypi_assets.distributions.containment import layers
from pypi_assets.distributions.containment.layers import MissingLayer, contain

_OPENING = {"open", "import", "os.listdir", "os.scandir", "socket.__new__", "subprocess.Popen"}


def contain_and_watch(memory_bytes: int, file_bytes: int) -> list[MissingLayer]:
    missing = contain(memory_bytes, file_bytes)
    sys.addaudithook(end_where_something_is_opened)
    return missing


def end_where_something_is_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and arguments[0] == "<unknown>":
        # Python shows the line of a syntax error only if it can open the file
        raise PermissionError("of this file Python would show the line of a syntax error")
    if event in _OPENING:
        os.write(2, f"{event}: {arguments}\n".encode())
        os._exit(9)


if __name__ == "__main__":
    layers.restrict = partial(layers.restrict, otherwise=layers.KILL_PROCESS)
    reader_process.contain = contain_and_watch
    reader_process.main()
