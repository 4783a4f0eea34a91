"""Messages as bytes: what is not JSON is refused before it is sent, so that no reader has to."""

import json

import pytest

from responses_mcp.protocol.jsonrpc import encode, result_message, result_message_bytes


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("text", ["plain", "日本", "\ud800"])
def test_a_number_that_json_cannot_say_is_refused(value: float, text: str) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encode({"number": value, "text": text})


@pytest.mark.parametrize("text", ["plain", "日本\u2028\u2029\u0085", "\ud800 日本\u2028"])
def test_a_message_is_one_compact_line_that_reads_back(text: str) -> None:
    line = encode({"text": text, "more": [1, 2]})
    assert json.loads(line) == {"text": text, "more": [1, 2]}
    assert line.decode().splitlines() == [line.decode()]
    assert b", " not in line
    assert b": " not in line
    assert ("日" in line.decode()) == ("日" in text and "\ud800" not in text)


@pytest.mark.parametrize("name", [1, "一", "\ud800"])
def test_a_result_that_was_serialised_before_gives_the_same_bytes(name: int | str) -> None:
    result = {"text": "日本"}
    if name != "\ud800":  # which makes the whole message ASCII where it is serialised together
        assert result_message_bytes(name, encode(result)) == encode(result_message(name, result))
    assert json.loads(result_message_bytes(name, encode(result))) == result_message(name, result)
