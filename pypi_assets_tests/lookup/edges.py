"""Build and read versions of `depgraph` without edges, as versions that older code published."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pypi_assets.leveldbs.datasets.registry import DATASETS


@contextmanager
def without_edges() -> Iterator[None]:
    """Let builds write no edges, and readers see none, until the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DATASETS, "depgraph", replace(DATASETS["depgraph"], side_files=None))
        yield
