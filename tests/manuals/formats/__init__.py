"""The formats of manuals."""
