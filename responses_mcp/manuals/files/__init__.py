"""The files: which may be opened, their text and sections, and the tools that show them."""
