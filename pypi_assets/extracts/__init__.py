"""Packs of extracts: the parts of distributions that records are made from, and the reprocess that makes them again."""
