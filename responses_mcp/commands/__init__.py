"""The commands for people: each module has `run(argv) -> exit code`, and they alone may print."""
