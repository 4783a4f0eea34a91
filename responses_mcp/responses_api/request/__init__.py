"""What a request is made of: body, search instructions, credentials."""
