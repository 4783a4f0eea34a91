"""Meaning: texts as vectors of a provider, so that a search knows other words for the same."""
