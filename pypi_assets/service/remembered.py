"""Answers of the present set of datasets that were made before: as long as the set is the present one, they hold."""

from collections import OrderedDict
from dataclasses import dataclass, field

from pypi_assets.service.answers import Answer

Target = tuple[bytes, bytes, str]
"""The path and the query of a request as they came, and its header Accept."""
_MOST_BYTES = 64 * 1024**2
_LONGEST_BODY = 256 * 1024
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


def _size(target: Target, answer: Answer) -> int:
    """About how many bytes of memory it takes: also in other encodings."""
    return 2 * len(answer.body) + sum(map(len, target)) + _OVERHEAD_BYTES
