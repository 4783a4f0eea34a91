"""The errors of this package can go from one process to another, as a pool of workers sends them."""

import copy
import pickle

import pytest

from responses_mcp.errors import ConfigError, KeyUnusable, LimitReached, RateLimited, ResponsesMcpError
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.research.runs_file import RunsFileUnusable

ERRORS = [
    ConfigError(["One thing is wrong.", "Another, too."]),
    KeyUnusable("OPENAI_API_KEY is not set.", variable="OPENAI_API_KEY", unfilled=True),
    RateLimited("Too many requests.", status=429, retry_after=3.0, request_id="req_1"),
    LimitReached("No more today."),
    RunsFileUnusable("The file of runs cannot be used."),
    ManualsError("not_found", "There is no such manual.", manual_id="oil"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_an_error_that_was_pickled_or_copied_says_and_knows_what_it_did(error: ResponsesMcpError) -> None:
    error.add_note("while asked by a worker")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert (str(again), vars(again)) == (str(error), vars(error))
