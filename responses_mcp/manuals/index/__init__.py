"""The index: the database, its rows, and how it follows the files."""
