"""Answers that were made before: of the present set of datasets, and of a serial with its epoch, which never change."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from pypi_assets.service.answers import Answer

Target = tuple[bytes, bytes, str]
"""The path and the query of a request as they came, and its header Accept."""
_MOST_BYTES = 64 * 1024**2
_LONGEST_BODY = 2 * 1024**2
"""The page of a project of 2,000 files has 1.1 MB in the Simple API."""
_LONGEST_PINNED_BODY = 4 * 1024**2
"""An answer at a serial is read from the catalog, so it costs much more."""
_OVERHEAD_BYTES = 2_000


@dataclass
class Remembered:
    """The answers that were used last, up to `most_bytes` of memory. It is used by the event loop alone."""

    most_bytes: int = _MOST_BYTES
    _set_id: str | None = None
    _answers: OrderedDict[Target, tuple[Answer, str]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def get(self, set_id: str | None, target: Target) -> tuple[Answer, str] | None:
        """The answer to this target, and its route; None where there is none of the set `set_id`."""
        if set_id != self._set_id:
            return None
        found = self._answers.get(target)
        if found is not None:
            self._answers.move_to_end(target)
        return found

    def keep(self, present_id: str | None, target: Target, answer: Answer, route: str) -> None:
        """Remembers an answer, if it is one of the present set."""
        if answer.set_id is None or answer.set_id != present_id or answer.status != 200:
            return
        if len(answer.body) > _LONGEST_BODY:
            return
        if self._set_id != present_id:
            self._answers.clear()
            self._set_id, self._bytes = present_id, 0
        if target not in self._answers:
            self._bytes += _size(target, answer)
        self._answers[target] = (answer, route)
        while self._bytes > self.most_bytes:
            oldest, (former, _) = self._answers.popitem(last=False)
            self._bytes -= _size(oldest, former)


@dataclass
class PinnedAnswers:
    """The answers at a serial that were used last, up to `most_bytes` of memory. Who takes one has looked whether the
    epoch that its path names is still the one of the serial.
    """

    most_bytes: int = _MOST_BYTES
    _answers: OrderedDict[Target, Answer] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _using: threading.Lock = field(default_factory=threading.Lock)

    def get(self, target: Target) -> Answer | None:
        """The answer to this target, if it is remembered."""
        with self._using:
            found = self._answers.get(target)
            if found is not None:
                self._answers.move_to_end(target)
            return found

    def keep(self, target: Target, answer: Answer) -> None:
        """Remembers an answer that never changes, if it depends on no other header than Accept."""
        if len(answer.body) > _LONGEST_PINNED_BODY or not {"Accept"}.issuperset(answer.varies):
            return
        with self._using:
            if target not in self._answers:
                self._bytes += _size(target, answer)
                self._answers[target] = answer
            while self._bytes > self.most_bytes:
                oldest, former = self._answers.popitem(last=False)
                self._bytes -= _size(oldest, former)


def _size(target: Target, answer: Answer) -> int:
    """About how many bytes of memory it takes: also in other encodings."""
    return 2 * len(answer.body) + sum(map(len, target)) + _OVERHEAD_BYTES
