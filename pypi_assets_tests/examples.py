"""Set the number of examples of tests that draw random inputs."""

import os

EXAMPLES_TIMES = float(os.environ.get("EXAMPLES_TIMES", "1"))
"""`make test` sets it to less than 1, `make histories` to a high number."""


def examples(usual: int) -> int:
    """Return `usual` times EXAMPLES_TIMES, and at least 1."""
    return max(round(usual * EXAMPLES_TIMES), 1)
