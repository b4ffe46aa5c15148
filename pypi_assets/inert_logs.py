"""Makes all that a process logs inert, and the traceback that ends it: also what libraries log, and unexpected errors.

Only our own processes call it: a program that uses this package as a library keeps its logs as they are.
"""

import logging
import sys
import traceback
from types import TracebackType

from pypi_assets.inert import inert_lines


class InertRecord(logging.LogRecord):
    """A record whose message and traceback have no control characters, whichever handler shows them."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if self.exc_info and self.exc_info[0]:
            self.exc_text = inert_lines("".join(traceback.format_exception(*self.exc_info)))

    def getMessage(self) -> str:  # noqa: N802 - the name is logging's
        return inert_lines(super().getMessage())


def make_logs_inert() -> None:
    """For this process, from now on."""
    if logging.getLogRecordFactory() is logging.LogRecord:
        logging.setLogRecordFactory(InertRecord)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_inertly


def _print_inertly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(inert_lines("".join(traceback.format_exception(kind, error, trace))) + "\n")
