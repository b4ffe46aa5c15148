"""Set up the logs of a process by PYPI_ASSETS_LOG_FORMAT and PYPI_ASSETS_LOG_LEVEL: lines of text or of JSON.

A line of JSON has `time`, `level`, `logger`, `message`, and the fields that a call passes as `extra`. Only this
project's own processes call it: a program that uses this package as a library keeps its own logs.
"""

import io
import json
import logging
import re
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

from pypi_assets.errors import SettingsError
from pypi_assets.sanitize import make_logs_inert
from pypi_assets.setting_sources import read_variables

JSON = "json"
OURS = "pypi_assets"
_OF_DAGSTER = ("dagster", "dagster-webserver")
"""Loggers to which Dagster's commands add handlers when the process starts."""
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"asctime", "message", "taskName"}
"""The attributes of each log record. All other attributes are fields."""
_LONGEST_PRINTED = 64 * 1024
"""After this many characters a line is considered complete, since a progress bar never ends its line."""
_ERRORS = ("Error", "Usage:", "Traceback")
_OF_A_RUN = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} - (?P<logger>[a-z]{1,20})"
    r" - (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) - (?P<message>.*)",
    re.DOTALL,
)
"""A line of Dagster about a run. No setting replaces its handler."""


class JsonFormatter(logging.Formatter):
    """Formats a record as a line of JSON in ASCII, so that terminals interpret no part of it."""

    def format(self, record: logging.LogRecord) -> str:
        line = _line(record.created, record.levelname, record.name, record.getMessage())
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD | line.keys()}
        if record.exc_info and record.exc_info[0]:
            line["exception"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Started(threading.local):
    """The current incomplete line of a thread. It needs no lock, which another thread could hold during a fork."""

    text = ""


class JsonLines(io.TextIOBase):
    """A standard error stream that writes each line as JSON: messages for people, and the output of libraries."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, stream: TextIO, logger: str) -> None:
        self._stream, self._logger = stream, logger
        self._started = _Started()

    def write(self, text: str) -> int:
        """Write the text when its line ends. A text of several lines, such as a traceback, becomes one line of JSON."""
        started = self._started.text + text
        if not started.endswith("\n") and len(started) <= _LONGEST_PRINTED:
            self._started.text = started
            return len(text)
        self._started.text = ""
        if message := started.rstrip("\n"):
            self._stream.write(f"{json.dumps(self._printed_line(message))}\n")
            self._stream.flush()
        return len(text)

    def _printed_line(self, message: str) -> dict[str, object]:
        if found := _OF_A_RUN.fullmatch(message):
            return _line(time.time(), found["level"], found["logger"], found["message"])
        return _line(time.time(), "ERROR" if message.startswith(_ERRORS) else "INFO", self._logger, message)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()


def _line(seconds: float, level: str, logger: str, message: str) -> dict[str, object]:
    at = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return {"time": f"{at}Z", "level": level, "logger": logger, "message": message}


def are_json() -> bool:
    """Check whether `set_up_logs` has made this process log JSON."""
    return isinstance(sys.stderr, JsonLines)


def set_up_logs(*, is_guest: bool = False) -> None:
    """Set up the logs of this process to standard error. Libraries only log warnings and errors.

    A guest is loaded by another program, such as Dagster, which has its own handlers. If the format is JSON, their
    lines become JSON, too. If it is text, these handlers are kept, and control characters are removed from all lines.
    Wrong settings are ignored here, since `load_settings` reports them.
    """
    make_logs_inert()
    texts: dict[str, str] = {}
    with suppress(SettingsError):
        texts = dict(read_variables().texts)
    levels = logging.getLevelNamesMapping()
    logging.getLogger(OURS).setLevel(levels.get(texts.get("log_level", "").upper(), logging.INFO))
    if texts.get("log_format", "").lower() == JSON:
        _log_json(sys.stderr, "stderr" if is_guest else OURS)
    elif not is_guest and not logging.root.handlers:
        formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        formatter.converter = time.gmtime
        _add_handler(sys.stderr, formatter)


def _add_handler(stream: TextIO, formatter: logging.Formatter) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logging.root.addHandler(handler)


def _log_json(stream: TextIO, logger: str) -> None:
    if isinstance(stream, JsonLines):
        return
    formatter = JsonFormatter()
    for one in (logging.root, *map(logging.getLogger, _OF_DAGSTER)):
        handlers = [handler for handler in one.handlers if isinstance(handler, logging.StreamHandler)]
        for handler in handlers:
            handler.setFormatter(formatter)
        one.propagate = not handlers  # otherwise the handler of the root logger would log the line again
    if not logging.root.handlers:
        _add_handler(stream, formatter)
    sys.stderr = JsonLines(stream, logger)
    sys.excepthook = _log_exception
    threading.excepthook = _log_exception_of_thread
    logging.captureWarnings(True)


def _log_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger(OURS).critical("the process ends with an unexpected error", exc_info=(kind, error, trace))


def _log_exception_of_thread(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_value is not None:
        logging.getLogger(OURS).critical("a thread ends with an unexpected error", exc_info=arguments.exc_value)
