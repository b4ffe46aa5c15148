"""How many examples a test draws that crawls for each of them."""

import os


def drawn(usual: int) -> int:
    """That many, or DRAWN_TIMES as many: `make histories` sets it."""
    return usual * int(os.environ.get("DRAWN_TIMES", "1"))
