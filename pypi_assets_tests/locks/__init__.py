"""Tests of reading lock files."""
