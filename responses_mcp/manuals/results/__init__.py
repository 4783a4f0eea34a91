"""What a search says of itself, and results that are kept."""
