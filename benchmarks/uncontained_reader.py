"""A reader process without containment, with which `python -m benchmarks.reader_pool` compares.

It loads modules when they are first used, has no timer, and has no restrictions except its limits on resources.
"""

from pypi_assets.distributions import reader_process
from pypi_assets.distributions.containment import layers
from pypi_assets.distributions.containment.layers import MissingLayer


def limit_alone(memory_bytes: int, file_bytes: int) -> list[MissingLayer]:
    layers._limit_resources(memory_bytes, file_bytes)
    return []


if __name__ == "__main__":
    reader_process.contain = limit_alone
    reader_process._load_all = lambda: None
    reader_process._limit_processor_time = lambda _: None
    reader_process.main()
