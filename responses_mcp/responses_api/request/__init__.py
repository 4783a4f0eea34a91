"""What a request is made of: arguments, body, credentials."""
