"""The bytes inside a tar as one stream."""

from collections.abc import Iterator

BLOCK = 512


class BadTarError(Exception):
    """What is no tar, or is broken in the middle, or ends too early; the text has the place."""


def padded(size: int) -> int:
    """`size` in whole blocks."""
    return size + -size % BLOCK


class TarStream:
    """Pieces of any size as one stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = b""
        self._before = 0
        self._at = 0

    @property
    def position(self) -> int:
        return self._before + self._at

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer only at the end."""
        start = self._at
        content = self._piece[start : start + size]
        self._at = start + len(content)
        if len(content) == size:
            return content
        collected = bytearray(content)
        while len(collected) < size and self._next():
            self._at = min(size - len(collected), len(self._piece))
            collected += self._piece[: self._at]
        return bytes(collected)

    def read_padded(self, size: int) -> bytes:
        """`size` bytes and what pads them to whole blocks. Raises BadTarError where there are fewer."""
        whole = padded(size)
        content = self.read(whole)
        if len(content) < whole:
            raise self.ended()
        return content

    def read_whole(self, size: int) -> bytes:
        """`size` bytes and not what pads them to whole blocks. Raises BadTarError where there are fewer."""
        return self.read_padded(size)[:size]

    def skip(self, size: int) -> None:
        """Raises BadTarError where there are fewer bytes."""
        self._at += size
        while self._at > len(self._piece):
            beyond = self._at - len(self._piece)
            self._at = len(self._piece)
            if not self._next():
                raise self.ended()
            self._at = beyond

    def skip_rest(self) -> None:
        while self._next():
            pass

    def ended(self) -> BadTarError:
        return BadTarError(f"the tar ends at {self.position}, in the middle of a member")

    def _next(self) -> bool:
        self._before += len(self._piece)
        self._at = 0
        self._piece = next(self._pieces, b"")
        return bool(self._piece)
