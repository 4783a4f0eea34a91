"""Retrieval over a folder of manuals: Markdown and JSON files, searched and read off the event loop."""
