"""The error of texts that name nothing."""


class LookupNameError(ValueError):
    """A text that is not a name of what is looked up; the message describes what it must be."""
