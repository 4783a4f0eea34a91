"""The report of a search on itself, and cached results."""
