"""Tests of exports for other tools."""
