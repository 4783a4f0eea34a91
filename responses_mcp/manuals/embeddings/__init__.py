"""Meaning: texts as vectors, from a provider of choice, so that a search knows other words for the same."""
