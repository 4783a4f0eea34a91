"""From the bytes of a reply to an answer, a list of pages, or an error."""
