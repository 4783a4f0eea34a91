"""The tools that the server offers, grouped by what they share."""
