"""What the index says: changelog events, project pages and files. It knows nothing of who asks."""
