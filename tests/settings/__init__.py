"""Tests of the settings: what may be written, what it becomes, and what is said when it is wrong."""
