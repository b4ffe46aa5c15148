"""A small package index over a folder of real files, for development, the demo and tests."""
