"""What fails under Wine and not on Windows: tests that `nox -s windows` leaves out there, each with the reason."""

ARTEFACTS = {
    "tests/manuals/test_retrieval.py": "numpy, for bm25s, wants functions of the C runtime that Wine lacks",
    "tests/testing/test_replies.py::test_a_reset_comes_at_the_named_stage": "Wine closes a socket that is to be reset "
    "as any other",
}
"""Ids of tests, or how they begin."""
