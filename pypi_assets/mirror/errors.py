"""What can go wrong between a mirror and its source; each text names the source's file and what is wrong with it."""

from pypi_assets.errors import ExpectedError


class MirrorError(ExpectedError):
    """A mirror cannot follow its source now. What is held stays as it is."""


class SourceError(MirrorError):
    """The source did not answer, or not in time. That can be transient."""


class VanishedError(SourceError):
    """The source has no such file: it was deleted meanwhile, or nothing is published there."""


class RefusedSourceError(MirrorError):
    """What the source has is not what it may be: it is not taken over."""


class WrongContentError(RefusedSourceError):
    """A file of the source is not what its manifest names."""


class ForkError(RefusedSourceError):
    """The source's history is another one than what is held."""


class OtherHomeError(MirrorError):
    """The storage belongs to a mirror with another home."""


class BehindError(MirrorError):
    """The source lags: it has less than what is held, of the same history."""
