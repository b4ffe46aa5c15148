"""Keeps the bytes of files in the storage by their SHA-256: writes, verifies, reads and deletes them."""
