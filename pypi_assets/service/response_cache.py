"""A cache of immutable answers. An answer belongs to one set of datasets, or to one serial in its epoch."""

from collections import OrderedDict

from pypi_assets.service.responses import Lasting, WholeAnswer

Target = tuple[bytes, bytes, str]
"""The path and the query of a request as received, and its header Accept."""
_MOST_BYTES = 128 * 1024**2
_LONGEST_BODY = 4 * 1024**2
"""For comparison: a project with 2,000 files has a page of 1.1 MB in the Simple API."""
_OVERHEAD_BYTES = 2_000


class ResponseCache:
    """The most recently used answers, up to `most_bytes` of memory. It is used only in the event loop.

    The caller of `get` must check that the datasets are the current ones, or that the epoch is still the serial's
    epoch.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._answers: OrderedDict[Target, WholeAnswer] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, target: Target) -> WholeAnswer | None:
        """Return the cached answer for this target, or None."""
        found = self._answers.get(target)
        if found is not None:
            self._answers.move_to_end(target)
        return found

    def keep(self, target: Target, answer: WholeAnswer) -> None:
        """Cache an answer if it never changes and depends on no header except Accept."""
        lasts = answer.set_id is not None or answer.lasting is Lasting.IMMUTABLE
        if not lasts or answer.status != 200 or len(answer.body) > _LONGEST_BODY:
            return
        if not {"Accept"}.issuperset(answer.varies):
            return
        former = self._answers.pop(target, None)
        if former is not None:
            self._bytes -= _size(target, former)
        self._answers[target] = answer
        self._bytes += _size(target, answer)
        while self._bytes > self._most_bytes:
            self._bytes -= _size(*self._answers.popitem(last=False))


def _size(target: Target, answer: WholeAnswer) -> int:
    """Return roughly how many bytes of memory an answer takes, including its encodings."""
    return 2 * len(answer.body) + sum(map(len, target)) + _OVERHEAD_BYTES
