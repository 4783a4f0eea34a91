"""The files: what may be opened, their text and sections, and the tools that show them."""
