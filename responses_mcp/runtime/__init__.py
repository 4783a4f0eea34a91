"""The Trio shell: tasks, scopes and streams around the sans-I/O session."""
