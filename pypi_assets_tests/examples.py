"""How many examples the tests draw that draw at random."""

import os

EXAMPLES_TIMES = float(os.environ.get("EXAMPLES_TIMES", "1"))
"""`make test` sets it to less than one, `make histories` to many."""


def examples(usual: int) -> int:
    """That many, times EXAMPLES_TIMES, and at least one."""
    return max(round(usual * EXAMPLES_TIMES), 1)
