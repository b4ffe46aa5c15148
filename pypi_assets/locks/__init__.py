"""Reads lock files: which version of each project they pin, with files and hashes, and for which environment.

What an index knows of the pinned versions belongs to `lookup/`.
"""
