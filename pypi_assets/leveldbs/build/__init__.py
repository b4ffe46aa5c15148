"""Build a version: apply changed rows to a copy of the previous version, or load a full dump."""
