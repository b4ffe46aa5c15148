"""What a reader took out of one distribution: all that its record is made of, so that it need not be fetched again."""

from dataclasses import dataclass, field

from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.models import ErrorKind, ReadError


@dataclass(slots=True)
class Extract:
    """What was read from one archive. `members` are its files (no folders) without a leading `./`."""

    members: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    error: ReadError | None = None

    def fail(self, kind: ErrorKind, text: str) -> None:
        """Keeps the first error: later ones mostly follow from it."""
        self.error = self.error or ReadError(kind, text)

    def fail_with(self, error: Exception) -> None:
        if isinstance(error, LimitExceededError):
            self.fail(ErrorKind.LIMIT_EXCEEDED, printable(str(error)))
        else:
            self.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"{type(error).__name__}: {error}"))


def printable(text: str, limit: int = 300) -> str:
    """`text` fit for one line of a log or a database: cut, and without control characters."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:limit])
