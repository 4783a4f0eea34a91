"""The measures: each module has a `measure` that takes the figures of one round of one subject."""
