"""Follows another instance's published files: dumps, LevelDB versions and the journal, without an index or a catalog.

The content and paths of published files are defined in the packages that publish them. This package fetches, checks and
stores them.
"""
