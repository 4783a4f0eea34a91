"""Checks that what was read with the official types became what its `type` says, and nothing else."""

from collections.abc import Iterator

import pydantic

# Without these names a union could quietly take one kind of object for another.
CLASSES = {
    "message": "ResponseOutputMessage",
    "reasoning": "ResponseReasoningItem",
    "web_search_call": "ResponseFunctionWebSearch",
    "output_text": "ResponseOutputText",
    "refusal": "ResponseOutputRefusal",
    "url_citation": "AnnotationURLCitation",
    "file_citation": "AnnotationFileCitation",
    "container_file_citation": "AnnotationContainerFileCitation",
    "file_path": "AnnotationFilePath",
    "search": "ActionSearch",
    "open_page": "ActionOpenPage",
    "find_in_page": "ActionFind",
    "web_search": "WebSearchTool",
}


def check_types(model: pydantic.BaseModel) -> None:
    """Fail on a part that became another class than its type says, and on a field that its class does not have."""
    for part in within(model):
        kind = getattr(part, "type", None)
        if kind in CLASSES:
            assert type(part).__name__ == CLASSES[kind]
        # The API echoes `store`, which the official type forgot.
        assert not (part.model_extra or {}).keys() - {"store"}


def within(model: pydantic.BaseModel) -> Iterator[pydantic.BaseModel]:
    """Yield the model and every model in it."""
    yield model
    for _, value in model:
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, pydantic.BaseModel):
                yield from within(part)
