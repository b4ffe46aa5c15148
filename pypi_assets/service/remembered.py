"""Answers that were made before: of the present set of datasets, and of a serial with its epoch, which never change."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pypi_assets.service.answers import Answer

Kept = TypeVar("Kept")
Target = tuple[bytes, bytes, str]
"""The path and the query of a request as they came, and its header Accept."""
_MOST_BYTES = 64 * 1024**2
_LONGEST_BODY = 2 * 1024**2
"""The page of a project of 2,000 files has 1.1 MB in the Simple API."""
_LONGEST_PINNED_BODY = 4 * 1024**2
"""An answer at a serial is read from the catalog, so it costs much more."""
_OVERHEAD_BYTES = 2_000


@dataclass
class _LastUsed(Generic[Kept]):
    """What was used last of what is kept by target, up to `most_bytes` of memory."""

    most_bytes: int
    _kept: OrderedDict[Target, tuple[Kept, int]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def get(self, target: Target) -> Kept | None:
        found = self._kept.get(target)
        if found is None:
            return None
        self._kept.move_to_end(target)
        return found[0]

    def keep(self, target: Target, kept: Kept, size: int) -> None:
        """Keeps it in the place of what was kept by this target; `size` is in bytes."""
        _, former_size = self._kept.pop(target, (None, 0))
        self._kept[target] = kept, size
        self._bytes += size - former_size
        while self._bytes > self.most_bytes:
            _, (_, oldest_size) = self._kept.popitem(last=False)
            self._bytes -= oldest_size


class Remembered:
    """The answers that were used last, up to `most_bytes` of memory. It is used by the event loop alone."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._set_id: str | None = None
        self._answers = _LastUsed[tuple[Answer, str]](most_bytes)

    def get(self, set_id: str | None, target: Target) -> tuple[Answer, str] | None:
        """The answer to this target, and its route; None where there is none of the set `set_id`."""
        return self._answers.get(target) if set_id == self._set_id else None

    def keep(self, present_id: str | None, target: Target, answer: Answer, route: str) -> None:
        """Remembers an answer, if it is one of the present set."""
        if answer.set_id is None or answer.set_id != present_id or answer.status != 200:
            return
        if len(answer.body) > _LONGEST_BODY:
            return
        if self._set_id != present_id:
            self._set_id, self._answers = present_id, _LastUsed(self.most_bytes)
        self._answers.keep(target, (answer, route), _size(target, answer))


class PinnedAnswers:
    """The answers at a serial that were used last, up to `most_bytes` of memory. Who takes one has looked whether the
    epoch that its path names is still the one of the serial.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._answers = _LastUsed[Answer](most_bytes)
        self._using = threading.Lock()

    def get(self, target: Target) -> Answer | None:
        """The answer to this target, if it is remembered."""
        with self._using:
            return self._answers.get(target)

    def keep(self, target: Target, answer: Answer) -> None:
        """Remembers an answer that never changes, if it depends on no other header than Accept."""
        if len(answer.body) > _LONGEST_PINNED_BODY or not {"Accept"}.issuperset(answer.varies):
            return
        with self._using:
            self._answers.keep(target, answer, _size(target, answer))


def _size(target: Target, answer: Answer) -> int:
    """About how many bytes of memory it takes: also in other encodings."""
    return 2 * len(answer.body) + sum(map(len, target)) + _OVERHEAD_BYTES
