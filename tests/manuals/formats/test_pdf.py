"""PDF as a client sees it: pages are found and read, and what is hostile or needs the extra is named.

The promise: no PDF keeps other files from being searched, and none is passed over in silence.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.errors import installing
from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.files.documents import Documents
from responses_mcp.manuals.formats import pdf, pdf_child
from responses_mcp.manuals.requests import FindRequest
from responses_mcp.manuals.service import Manuals
from tests.toolsets.manuals_harness import desk, settings_for

pytest.importorskip("pypdfium2")


def pdf_of(*pages: str, marks: tuple[tuple[str, int], ...] = (), trailer: str = "") -> bytes:
    """Return a PDF of pages with a line of text each, and bookmarks of (title, page)."""
    objects = ["", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids: list[str] = []
    for text in pages:
        drawn = f"BT /F 12 Tf 50 700 Td ({text}) Tj ET" if text else ""
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
        content = f"/Contents {len(objects)} 0 R/Resources<</Font<</F 3 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]{content}>>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(kids)}]>>"
    first = len(objects) + 2
    for number, (title, page) in enumerate(marks):
        further = f"/Next {first + number + 1} 0 R" if number + 1 < len(marks) else ""
        objects.append("" if number else f"<</First {first} 0 R/Last {first + len(marks) - 1} 0 R>>")
        if number:
            objects.pop()
        objects.append(f"<</Title({title})/Parent {first - 1} 0 R/Dest[{kids[page]}/Fit]{further}>>")
    objects[0] = f"<</Type/Catalog/Pages 2 0 R{f'/Outlines {first - 1} 0 R' if marks else ''}>>"
    written = b"%PDF-1.4\n"
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R{trailer}>>\n"
    return written + f"{end}startxref\n{len(written)}\n%%EOF".encode()


ENCRYPTED = f"/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<{'11' * 32}>/U<{'22' * 32}>>>"


LOOP = (
    b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
    b"2 0 obj\n<</Type/Pages/Count 1000000/Kids[2 0 R 2 0 R]>>\nendobj\ntrailer<</Size 3/Root 1 0 R>>\n%%EOF"
)


def put(root: Path, path: str, content: bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


async def test_a_page_is_found_and_read_and_named(tmp_path: Path) -> None:
    put(tmp_path, "m/a.pdf", pdf_of("Intro.", "The gasket lasts ten years."))
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="how long does a gasket last")
        row = found["results"][0]
        assert (row["title"], row["snippet"], found["complete"]) == ("Page 2", "The gasket lasts ten years.", True)
        read = await here.call("manual_read", ref=row["ref"])
        assert read["text"] == "Page 2\nThe gasket lasts ten years."
        [item] = (await here.call("manual_ls", id="m"))["items"]
        assert item["file_type"] == "pdf"
        toc = await here.call("manual_toc", manual_id="m", depth="deep", path_prefix="a.pdf")
        assert [each["title"] for each in toc["items"][0]["headings"]] == ["Page 1", "Page 2"]


async def test_bookmarks_name_the_pages_that_they_lead_to_and_stand_above_the_next(tmp_path: Path) -> None:
    pages = ("Contents.", "The gasket lasts ten years.", "The impeller lasts two years.", "More.")
    put(tmp_path, "m/a.pdf", pdf_of(*pages, marks=(("Seals", 1), ("Wheels", 3))))
    async with desk(settings_for(tmp_path)) as here:
        rows = [(await here.call("manual_search", query=word))["results"][0] for word in ("gasket", "impeller")]
        assert [(row["title"], row["above"]) for row in rows] == [("Seals", "Page 2"), ("Page 3", "Seals")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"%PDF-1.7 cut off", "not_a_pdf"),
        (b"", "not_a_pdf"),
        (pdf_of("Secret.", trailer=ENCRYPTED), "needs_a_password"),
        (pdf_of("", ""), "no_text"),
        (LOOP, "too_many_pages"),
        (pdf_of(*[""] * 5001), "too_many_pages"),
    ],
)
async def test_a_pdf_without_a_text_to_serve_is_named_and_other_files_are_found(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    put(tmp_path, "m/a.pdf", content)
    put(tmp_path, "m/b.md", b"# Seals\n\nTwo seconds.\n")
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
        assert [row["ref"]["path"] for row in found["results"]] == ["b.md"]
        assert (found["complete"], found["reason"]) == (False, f"m: 1 file not searched ({reason})")
        failed = await here.fail("manual_scan", manual_id="m", path="a.pdf")
        assert failed["message"] == f"No text can be read from 'a.pdf' ({reason})."


async def test_a_pdf_that_takes_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "SECONDS", 0.0)
    put(tmp_path, "m/a.pdf", pdf_of("Seals."))
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
    assert found["reason"] == "m: 1 file not searched (takes_too_long)"


async def test_a_pdf_that_breaks_the_process_is_named(tmp_path: Path, slow: Path) -> None:
    slow.write_text("import os\nos.abort()\n", encoding="utf-8")  # noqa: ASYNC240
    put(tmp_path, "m/a.pdf", pdf_of("Seals."))
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
    assert found["reason"] == "m: 1 file not searched (damaged_or_too_complex)"


async def test_without_the_extra_a_pdf_is_named_with_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "folder_of_library", lambda: None)
    put(tmp_path, "m/a.pdf", pdf_of("Seals."))
    put(tmp_path, "m/b.md", b"# Seals\n\nTwo seconds.\n")
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
        assert (found["complete"], found["reason"]) == (False, "m: 1 file not searched (needs_extra_documents)")
        found = await here.call("manual_search", query="gaskets")
        cure = f"1 file of another format is not served (1 .pdf); for .pdf, {installing('documents')}"
        assert found["reason"] == f"m: 1 file not searched (needs_extra_documents); {cure}"
        await here.call("manual_ls")
        found = await here.call("manual_find", query="gaskets", manual_id="m", required_terms=["gaskets"])
        assert found["note"] == f"{cure}."
        assert (await here.fail("manual_scan", manual_id="m", path="a.pdf"))["code"] == "forbidden"


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a script read PDFs that never ends, and return it."""
    script = tmp_path / "slow.py"
    script.write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    monkeypatch.setattr(pdf_child, "__file__", str(script))
    return script


async def test_a_slow_pdf_keeps_no_other_file_from_being_found(tmp_path: Path, slow: Path) -> None:
    put(tmp_path, "m/a.pdf", pdf_of("Seals."))
    put(tmp_path, "m/b.md", b"# Seals\n\nTwo seconds.\n")
    manuals = Manuals(settings_for(tmp_path).manuals)
    with trio.fail_after(20):
        found = await manuals.find(FindRequest("seals", "m", ["seals"], time_ms=100))
        assert found["summary"]["candidates"] == 1
        assert found["applied"]["required_failure_reason"].startswith("incomplete:1_")
        await manuals.aclose()


async def test_a_cancel_ends_the_process(tmp_path: Path, slow: Path) -> None:
    begun = tmp_path / "begun"
    slow.write_text(f"import time\nopen({str(begun)!r}, 'w').write('x')\ntime.sleep(600)\n", encoding="utf-8")  # noqa: ASYNC240
    put(tmp_path, "m/a.pdf", pdf_of("Seals."))
    manuals = Manuals(settings_for(tmp_path).manuals)
    children: list[subprocess.Popen[bytes]] = []

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        children.append(subprocess.Popen(*arguments, **options))
        return children[-1]

    with pytest.MonkeyPatch.context() as patched, trio.fail_after(20):
        patched.setattr(pdf, "Popen", noted)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(manuals.index, "m")
            while not begun.exists():  # noqa: ASYNC110  # of a process
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        while not all(child.returncode for child in children):  # noqa: ASYNC110  # in a thread
            await trio.sleep(0.01)
        await manuals.aclose()
    assert children


async def test_a_process_that_does_not_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    put(tmp_path, "m/a.pdf", pdf_of("Seals."))
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
        assert found["reason"] == "m: 1 file not searched (reader_does_not_start)"
        assert (await here.fail("manual_scan", manual_id="m", path="a.pdf"))["code"] == "conflict"


def test_the_process_gets_no_key(slow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    slow.write_text(
        "import json, os\nprint(json.dumps({'pages': [str(dict(os.environ))], 'marks': []}))\n", encoding="utf-8"
    )
    told = Documents().of("a.pdf", b"x", unchecked).text
    assert "PATH" in told
    assert "canary" not in told
