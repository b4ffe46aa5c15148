"""Kept for tools that look for a setup.py; all metadata is in pyproject.toml."""

from setuptools import setup

setup()
