"""`python -m tests.bundle FOLDER`: pack the bundle (.mcpb) of this checkout. The same files give the same bytes."""

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from responses_mcp import __version__

ROOT = Path(__file__).parent.parent
NAME = f"openai-responses-mcp-{__version__}.mcpb"
# Clients look for the manifest at the root. The rest is what uv needs to install the package as the lock file says.
FILES = {
    "manifest.json": "config/manifest.json",
    **{name: name for name in ("LICENSE", "README.md", "pyproject.toml", "uv.lock")},
    **{name: name for name in ("config/config.yaml.example", "config/policy.md.example")},
}


def contents() -> Iterator[tuple[str, Path]]:
    """Yield names in the bundle and the files that they stand for, always in the same order."""
    package = (file for file in (ROOT / "responses_mcp").rglob("*") if file.is_file())
    sources = {file.relative_to(ROOT).as_posix(): file for file in package if "__pycache__" not in file.parts}
    yield from sorted({**sources, **{name: ROOT / source for name, source in FILES.items()}}.items())


def pack(folder: Path) -> Path:
    """Write the bundle into `folder` and return its path."""
    bundle = folder / NAME
    folder.mkdir(parents=True, exist_ok=True)
    # Stored, because what compression makes of a file depends on the version of zlib.
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_STORED) as archive:
        for name, file in contents():
            entry = zipfile.ZipInfo(name, date_time=(2020, 2, 2, 0, 0, 0))
            entry.create_system = 3  # Unix, wherever it is packed
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, file.read_bytes())
    return bundle


if __name__ == "__main__":
    print(pack(Path(sys.argv[1])))
