"""The checks that every kind of index must pass, and how to run them."""

from collections.abc import Iterable

from pypi_assets.index.conformance.content_checks import ContentChecks
from pypi_assets.index.conformance.fault_checks import FaultChecks


class IndexConformance(ContentChecks, FaultChecks):
    """Checks a kind of index. Subclass it in a test module, under a name that begins with `Test`:

        class TestShelf(IndexConformance):
            kind = KIND
            index_path = "/shelf/"

            def answer(self, world, request):
                ...  # the answer of the server if `world` is its content, or None for a 404

    Each check begins with an empty world and a new server on loopback. No check waits: the clock is simulated.
    """


def failures(suite: type[IndexConformance], names: Iterable[str] | None = None) -> dict[str, Exception]:
    """Run the checks of `suite` without pytest, or only those in `names`. Return the errors by the check's name.

    for name, error in failures(ShelfConformance).items():
        print(name, error)
    """
    found: dict[str, Exception] = {}
    for name in checks(suite) if names is None else names:
        try:
            getattr(suite(), name)()
        except Exception as error:  # noqa: BLE001 - an adapter can raise anything
            found[name] = error
    return found


def checks(suite: type[IndexConformance]) -> list[str]:
    """Return the names of all checks of `suite`, in order."""
    return [name for name in dir(suite) if name.startswith("test_")]
