"""Brings the catalog up to a serial: lists projects, visits their pages, reads what is missing."""
