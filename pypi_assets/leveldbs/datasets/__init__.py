"""One folder for each dataset, with its records and its `change` function, and the registry of all."""
