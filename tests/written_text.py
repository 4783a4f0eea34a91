"""A text of an answer as its reader gets it while it is written."""

from responses_mcp.responses_api.response.sources import WrittenText


def in_pieces(text: str, size: int) -> str:
    """Return what is told of a text that comes so many characters at a time."""
    told: list[str] = []
    written = WrittenText(told.append, str)
    for at in range(0, len(text), size):
        written.take(text[at : at + size])
    return "".join(told)
