"""The LevelDB datasets: their records, how versions are built from dumps, published, verified and deleted."""
