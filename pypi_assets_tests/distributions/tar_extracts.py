"""Helpers that extract tars which arrive in small pieces."""

import io
from collections.abc import Callable

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import MIB, Budget, ReadLimits
from pypi_assets.distributions.sources import SequentialSource
from pypi_assets.distributions.tars import extract_tar


class Dripping(io.BytesIO):
    """A source that returns a few bytes at a time, so that headers span several pieces."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(content)
        self.size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, self.size))


def extract(
    content: bytes, wanted: Callable[[str], bool] = lambda _: True, *, drip: int = MIB, **limits: int
) -> Extract:
    budget = Budget(ReadLimits(**limits))
    return extract_tar(SequentialSource(Dripping(content, drip), budget), wanted, budget)
