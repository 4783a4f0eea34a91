"""What fails under Wine and not on Windows: tests that `nox -s windows` leaves out there, each with the reason."""

ARTEFACTS = {
    "tests/manuals/test_retrieval.py": "numpy, for bm25s, wants functions of the C runtime that Wine lacks",
    **dict.fromkeys(
        (
            "tests/test_layers.py::test_no_two_test_files_share_a_name",
            "tests/test_layers.py::test_the_tests_of_a_module_lie_where_the_module_lies",
            "tests/test_layers.py::test_no_file_names_a_place_on_the_machine_where_it_was_written",
        ),
        "git cannot be started from there",
    ),
    **dict.fromkeys(
        (
            "tests/hostile/test_hostile.py::test_hostile_input_gets_what_it_is_owed_and_does_no_harm",
            "tests/hostile/test_hostile_upstream.py::test_a_hostile_upstream_gets_the_end_that_it_deserves",
        ),
        "now and then Wine waits for events beyond the time it was given; in other runs they pass",
    ),
    **dict.fromkeys(
        (
            "tests/commands/test_doctor.py::test_what_of_the_folder_of_manuals_is_not_served_is_told",
            "tests/commands/test_manuals_command.py::test_a_link_is_told_with_a_command_that_shows_what_there_is",
        ),
        "a link to a folder, made there, is no link in the listing of its folder",
    ),
    "tests/testing/test_replies.py::test_a_reset_comes_at_the_named_stage": "Wine closes a socket that is to be reset "
    "as any other",
}
"""Ids of tests, or how they begin."""
