"""Read lock files: the version of each project that they pin, its files and hashes, and the environments they support.

What an index knows about the pinned versions belongs to `lookup/`.
"""
