"""Find the versions that an installer would choose, as of any moment and without a network: see docs/resolving.md."""
