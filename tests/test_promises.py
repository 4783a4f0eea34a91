"""What protects what: each promise of docs/verification.md and each section of docs/spec.md names tests that exist."""

import re

import pytest

from tests.promises import Promise, missing, of_the_specification, of_the_table, page

pytestmark = pytest.mark.once

TABLE = of_the_table()
SPECIFICATION = of_the_specification()


@pytest.mark.parametrize("promise", TABLE + SPECIFICATION, ids=lambda promise: promise.words[:60])
def test_a_promise_is_held_by_tests_and_sessions_that_exist(promise: Promise) -> None:
    assert promise.tests
    assert missing(promise) == []


def test_the_table_of_promises_is_read() -> None:
    assert len(TABLE) > 15


def test_every_section_of_the_specification_has_its_line() -> None:
    numbers = re.findall(r"^#{2,3} (\d+(?:\.\d+)?)", page("docs/spec.md"), re.MULTILINE)
    told = {row.words.split()[0].rstrip(".") for row in SPECIFICATION}
    assert {number for number in numbers if number not in told} <= {"2", "3", "5"}
    assert len(told) > 25
