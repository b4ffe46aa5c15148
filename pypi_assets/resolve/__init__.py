"""Which versions an installer would choose, as of any moment, without a network: docs/resolving.md."""
