"""Set the number of examples of tests that draw random inputs, and their seeds."""

import os
import random

EXAMPLES_TIMES = float(os.environ.get("EXAMPLES_TIMES", "1"))
"""`make test` sets it to less than 1, `make histories` to a high number."""


def examples(usual: int) -> int:
    """Return `usual` times EXAMPLES_TIMES, and at least 1."""
    return max(round(usual * EXAMPLES_TIMES), 1)


def first_seed() -> int:
    """Return 0 in CI, so that failures are reproducible, and a random number elsewhere."""
    return 0 if "CI" in os.environ else random.SystemRandom().randrange(2**32)
