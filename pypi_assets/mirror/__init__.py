"""Follows another instance's published files: its dumps, LevelDB versions and journal, without an index or a catalog.

What is published, and where it lies, belongs to the parts that publish it; here it is fetched, checked and kept.
"""
