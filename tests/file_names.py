"""Names of files that a test gives: those that this system can hold."""

import os

_NEVER_ON_WINDOWS = frozenset('<>:"|?*\\')


def possible(*names: str) -> list[str]:
    """Return the names that a file can have here."""
    return [name for name in names if os.name != "nt" or not _NEVER_ON_WINDOWS.intersection(name)]
