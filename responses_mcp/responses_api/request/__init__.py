"""The parts of a request: arguments, body, credentials."""
