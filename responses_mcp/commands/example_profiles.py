"""The example of a configuration file, with a profile for each of the three tools: shown, or written where none is."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path, PurePath
from typing import Final

from responses_mcp.commands.clients.known import Machine
from responses_mcp.commands.terminal import Stop, remark, say
from responses_mcp.settings.load import FILE, FOLDER

_EXAMPLE: Final = "config.yaml.example"


def offer_profiles(machine: Machine, config: PurePath | None, *, writing: bool) -> None:
    """Write the example to `config`, by default to the file that is read without it, and say where.

    A file that is there stays as it is, also one in the second place where Windows looks. With `writing` false it is
    only said where it would be. Raises Stop.
    """
    places: list[PurePath] = [machine.home / ".config" / FOLDER / FILE]
    if machine.system == "windows":
        places.append(machine.app_data / FOLDER / FILE)
    if config is not None:
        places = [config]
    there = next((place for place in places if Path(place).exists()), None)
    path = Path(places[0])
    if there is not None:
        remark(f"{there} exists and was not changed; compare it with the example: {_source()}")
    elif not writing:
        remark(f"{path} does not exist. With --write, this command creates it with three example profiles.")
    else:
        _write(path)


def _write(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(_source().read_text(encoding="utf-8"))
    except OSError as error:
        raise Stop(f"{path} cannot be written ({(error.strerror or type(error).__name__).lower()}).") from error
    say(f"{path} was written: an example with three profiles, for you to edit.")


def _source() -> Path:
    """Return the example: in an installed package it lies in it, in a checkout beside it."""
    package = Path(str(files("responses_mcp")))
    installed = package / "examples" / _EXAMPLE
    return installed if installed.exists() else package.parent / "config" / _EXAMPLE
