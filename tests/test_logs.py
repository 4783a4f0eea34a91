"""Where log lines go, and that nothing which does not take them can stop the process (spec 8.1)."""

import logging
import os
import re
import select
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from responses_mcp.logs import FLUSH_SECONDS, MAX_WAITING
from responses_mcp.secrets import Redactor
from tests.debug_lines import configured, stderr_as

pytestmark = pytest.mark.rule("P13", "spec 8.1")

log = logging.getLogger("responses_mcp.somewhere")
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Give a pipe of which the test owns both ends."""
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        os.close(descriptor)


def read_all(reader: int, until: bytes) -> bytes:
    data = b""
    while until not in data:
        assert select.select((reader,), (), (), 5)[0], f"nothing came for a while; so far {len(data)} bytes"
        piece = os.read(reader, 65536)
        assert piece
        data += piece
    return data


def raised(*args: object) -> ValueError:
    """Return an error that has a traceback."""
    with pytest.raises(ValueError) as caught:
        raise ValueError(*args)
    return caught.value


@pytest.mark.parametrize(
    ("debug", "told"),
    [
        (True, rf"{TIME} DEBUG details n=5\n{TIME} WARNING careful\n"),
        (False, "openai-responses-mcp: careful\n"),
    ],
)
def test_all_is_told_with_time_and_level_or_only_warnings_in_plain_words(
    debug: bool, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with configured(debug=debug):
        log.debug("details n=%d", 5)
        log.warning("careful")
    out, err = capfd.readouterr()
    assert re.fullmatch(told, err)
    assert out == ""


def test_the_handler_hands_nothing_on_to_the_hosts_own_logging(caplog: pytest.LogCaptureFixture) -> None:
    with configured():
        log.warning("ours alone")
    assert caplog.records == []


def test_a_record_is_one_line_without_control_characters(capfd: pytest.CaptureFixture[str]) -> None:
    with configured(debug=False):
        log.warning("a\nb\r\nc\x1b[31md\x00e\u2028f\x85g\th 日本語🐍 \udcff")
    shown = "a\\nb\\r\\nc\\x1b[31md\\x00e\\u2028f\\x85g\th 日本語🐍 \\udcff"
    assert capfd.readouterr().err == f"openai-responses-mcp: {shown}\n"


def test_secrets_are_masked_in_messages_and_tracebacks_on_stderr_and_in_the_file(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    secret = "canary's-secret"
    file = tmp_path / "debug.log"
    with configured(debug_file=file, redact=Redactor([secret])):
        log.debug("key=%s repr=%r", secret, {"key": secret})
        log.debug("crash", exc_info=raised(secret, {"k": secret}))
    err = capfd.readouterr().err
    assert err == file.read_text(encoding="utf-8")
    assert "canary" not in err
    assert err.count("[redacted]") >= 4


def test_a_line_that_cannot_be_put_together_is_dropped_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    with configured(debug=False):
        log.warning("%d", "no number")
        log.warning("next")
    assert capfd.readouterr().err == "openai-responses-mcp: next\n"


# The file


def test_the_file_gets_what_stderr_gets_and_belongs_to_its_owner_alone(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "not" / "yet" / "there" / "debug.log"
    old = os.umask(0)
    try:
        with configured(debug_file=file):
            log.debug("日本語 \udcff")
    finally:
        os.umask(old)
    assert file.read_bytes().decode() == capfd.readouterr().err
    assert "日本語 \\udcff\n" in file.read_text(encoding="utf-8")
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_file_is_appended_to_and_two_processes_may_write_it(tmp_path: Path) -> None:
    file = tmp_path / "debug.log"
    file.write_text("from last time\n", encoding="utf-8")
    for number in (1, 2):
        with configured(debug_file=file), file.open("a") as other:
            log.debug("run %d", number)
            other.write("from another\n")
            other.flush()
            log.debug("again")
    lines = [line.rpartition(" DEBUG ")[2] for line in file.read_text(encoding="utf-8").splitlines()]
    assert lines[0] == "from last time"
    assert sorted(lines[1:]) == ["again", "again", "from another", "from another", "run 1", "run 2"]


@pytest.mark.parametrize("where", ["", "file/below", "nul\0name", "x" * 5000])
def test_a_file_that_cannot_be_opened_is_a_warning_with_the_cure(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, where: str
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with configured(debug_file=f"{tmp_path}/{where}"):
        log.debug("still here")
    warning, line = capfd.readouterr().err.splitlines()
    assert " WARNING the debug file " in warning
    assert "logging to stderr only" in warning
    assert "--debug" in warning
    assert line.endswith("still here")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_that_nobody_reads_is_no_file_and_does_not_hold_up_the_start(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")

    def start() -> None:
        with configured(debug_file=tmp_path / "fifo"):
            log.debug("still here")

    starting = threading.Thread(target=start, daemon=True)
    starting.start()
    starting.join(5)
    assert not starting.is_alive()
    assert " WARNING the debug file " in capfd.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="needs a device that is always full")
def test_a_full_disk_stops_the_file_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    with configured(debug_file="/dev/full"):
        log.debug("one")
        log.debug("two")
    assert len(capfd.readouterr().err.splitlines()) == 2


# A stderr that does not take lines


@pytest.mark.skipif(sys.platform == "win32", reason="no pipe can be looked at there")
def test_a_stderr_that_nobody_reads_stops_nobody_and_lines_that_wait_are_bounded(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    with stderr_as(writer), configured(debug=False):
        for number in range(2 * MAX_WAITING // 20_000):
            log.warning("%d %s", number, "x" * 20_000)
        data = read_all(reader, b": %d x" % (MAX_WAITING // 20_100))
        log.warning("the next one")
        data += read_all(reader, b"the next one\n")
    numbers = [int(number) for number in re.findall(rb": (\d+) x", data)]
    assert numbers == [*range(len(numbers))]
    assert len(data) < 1.1 * MAX_WAITING, "the rest is dropped"


def test_closing_does_not_wait_long_for_a_stderr_that_nobody_reads(pipe: tuple[int, int]) -> None:
    with stderr_as(pipe[1]), configured(flush=0) as closing:
        log.debug("x" * 1_000_000)
        closer = threading.Thread(target=closing.close)
        closer.start()
        closer.join(FLUSH_SECONDS + 5)
        assert not closer.is_alive()
        log.debug("after the end")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such mode")
def test_a_stderr_that_somebody_made_non_blocking_gets_every_line_whole(pipe: tuple[int, int]) -> None:
    # Trio does that to a terminal, which stdin, stdout and stderr share.
    reader, writer = pipe
    os.set_blocking(writer, False)
    with stderr_as(writer), configured(debug=False):
        for number in range(50):
            log.warning("%d %s.", number, "x" * 10_000)
        log.warning("end")
        data = read_all(reader, b"end\n")
    assert [len(line) for line in data.splitlines()[:-1]] == [
        len(f"openai-responses-mcp: {number} ") + 10_001 for number in range(50)
    ]


def test_a_stderr_whose_reader_is_gone_is_given_up_and_the_file_goes_on(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    file = tmp_path / "debug.log"
    with stderr_as(writer):
        os.close(writer)
        os.close(reader)
        with configured(debug_file=file):
            log.debug("one")
            log.debug("two")
    assert len(file.read_text(encoding="utf-8").splitlines()) == 2


def test_a_process_without_stderr_logs_to_the_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Descriptor 2 may belong to any file by now.
    monkeypatch.setattr(sys, "__stderr__", None)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with stderr_as(writer), configured(debug_file=tmp_path / "debug.log"):
        log.debug("one")
    os.close(writer)
    assert os.read(reader, 100) == b""
    os.close(reader)
    assert len((tmp_path / "debug.log").read_text(encoding="utf-8").splitlines()) == 1


def test_lines_written_by_many_threads_stay_whole(tmp_path: Path) -> None:
    with configured(debug_file=tmp_path / "debug.log"):

        def log_lines() -> None:
            for _ in range(50):
                log.debug("x" * 300)

        threads = [threading.Thread(target=log_lines) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = (tmp_path / "debug.log").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 400
    assert {line.rpartition(" ")[2] for line in lines} == {"x" * 300}
