"""Real distributions to read: which ones, and how to get them."""
