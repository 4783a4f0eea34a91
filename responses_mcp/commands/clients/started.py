"""Which program a command line starts, by way of others: whether it is this one, and which of the words are for it.

Only what is known is recognised. Servers of others are told of folders, projects and addresses of this name, and one
that were taken for ours would be started, and written over. What is not recognised is not ours.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from responses_mcp.errors import PROGRAM

MODULE: Final = "responses_mcp"
CONTAINERS: Final = ("docker", "podman", "nerdctl")
_DEEPEST: Final = 8  # programs that start one another
# What is behind the name: .git, an extra, a version, a fragment of the address.
_PACKAGE: Final = re.compile(
    r"(?:^|[/\\:])openai[-_]responses[-_]mcp(?:\.git)?(?:\[[^]/\\]{0,99}\])?"
    r"(?: @ .{1,999}|(?!#subdirectory)[@=<>!~#;][^/\\]{0,99})?[/\\]?$"
)
_IMAGE: Final = re.compile(rf"(?:^|/){PROGRAM}(?:[:@][^/]*)?$")
# Of the older program: what is built, within its folder; where npm puts it. Others have theirs in a scope.
_BUILT: Final = re.compile(r"[/\\]dist[/\\]index\.js$")
_BY_NPM: Final = re.compile(r"[/\\](?:node_modules|npm)[/\\]")
_SCOPED: Final = re.compile(r"(?:^|[/\\:])@[^/\\:]+[/\\][^/\\]*$")
_WHOLE_LINE: Final = re.compile(r"^[^/\\~.$:\s]+\s|\s[-/\\~.$]")  # in one word, which no client splits
_PYTHON: Final = re.compile(r"(?:python|pythonw|pypy)[\d.]*|pyw?")
_NODE: Final = re.compile(r"node(?:js|[\d.]+)?|tsx|deno|bun")
_NPM: Final = ("npx", "npm", "pnpm", "yarn", "bunx")
_STARTING: Final = ("exec", "dlx", "x", "run", "node", "tsx")  # what these are told before what they start
_PROJECTS: Final = ("uv", "poetry", "hatch", "pdm", "rye", "pixi", "volta")  # their `run` starts any command
_BEFORE_DASHES: Final = ("op", "doppler", "mise", "infisical", "dotenvx", "aws-vault")  # then comes a command
_SHELLS: Final = ("sh", "bash", "zsh", "dash", "fish")
_OF_MODULE: Final = re.compile(r"-[A-Za-z]*m|--module")
_OF_LINE: Final = re.compile(r"-[A-Zabd-z]*c[A-Za-z]*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
# Separators that are quoted, or within a command of its own.
_UNCLEAR: Final = re.compile(r"""(['"])[;&|]{1,2}\1|\\[;&|]|`|\([^)]{0,999}[;&|]""")
_BETWEEN: Final = frozenset({"&&", "||", "|", "|&", ";", "&"})  # of the commands in a line

_TakesNext = Callable[[str], bool]  # whether an option takes the next word as its value


class Started(NamedTuple):
    """How a command starts this program: how many words stand before those for it, and whether it is the older one.

    Where a line for a shell starts it, all words stand before.
    """

    before: int
    predecessor: bool = False


def started(words: Sequence[str]) -> Started | None:
    """Return how a command starts this program; None if it starts another, or if that is not known."""
    rest, before = words, 0
    for _ in range(_DEEPEST):
        found = _first_of(rest) if rest else None
        if found is None and "--" in rest:
            found = rest.index("--") + 1
            behind = rest[found:]
            is_started = program_in(rest[0]) in _BEFORE_DASHES or "--stdio" in behind
            if behind and _ours(behind[0]) and not is_started:  # a folder or a project that a server is told of
                return None
        if isinstance(found, Started):
            return found._replace(before=min(before + found.before, len(words)))
        if found is None:
            return None
        rest, before = (rest[found:], before + found) if isinstance(found, int) else (found, len(words))
    return None


def program_in(word: str) -> str:
    """Return the program that a word names, without its folder and its ending on Windows."""
    return re.sub(r"\.(?:exe|cmd)$", "", re.split(r"[/\\]", word)[-1], flags=re.IGNORECASE)


def _first_of(words: Sequence[str]) -> Started | int | list[str] | None:
    """Return what the first program starts: this one, the command behind some words, or one in a line for a shell."""
    name = program_in(words[0]).lower()
    if (ours := _ours(words[0])) is not None:
        return ours
    if name in _SHELLS:
        at = _behind(words, 1, _among(_OF_SHELLS))
        return _last_command(words[at]) if any(map(_OF_LINE.fullmatch, words[1:at])) and at < len(words) else None
    if name == "cmd":
        return _by_cmd(words)
    if name in _WRAPPERS:
        return _by_wrapper(words, _among(_WRAPPERS[name]))
    if _PYTHON.fullmatch(name):
        return _command(words, _behind(words, 1, _among(_OF_PYTHON)))
    if name in _NPM or _NODE.fullmatch(name):
        return _by_node(words, _all_but("ydsqfg", _SWITCHES_OF_NPM) if name in _NPM else _among(_OF_NODE))
    if name in CONTAINERS:
        return _by_container(words)
    return _by_installer(words, name)


def _ours(word: str) -> Started | None:
    if "://" in word or _WHOLE_LINE.search(word):
        return None
    if _BUILT.search(word):
        return _older(word, 1)
    is_ours = program_in(word) == PROGRAM
    return Started(1, predecessor=_BY_NPM.search(word) is not None) if is_ours else None


def _older(word: str, before: int) -> Started | None:
    ours = _PACKAGE.search(package := _BUILT.sub("", word)) and not _SCOPED.search(package)
    return Started(before, predecessor=True) if ours else None


def _command(words: Sequence[str], at: int) -> Started | int:
    """Return what stands there: this program's module, or a command of its own."""
    is_module = words[at : at + 1] == [MODULE] and _OF_MODULE.fullmatch(words[at - 1])
    return Started(at + 1) if is_module else at


def _by_wrapper(words: Sequence[str], takes_next: _TakesNext) -> int | list[str] | None:
    at = _behind(words, 1, takes_next)
    if words[at - 1] in {"-S", "--split-string"} and " " in "".join(words[at : at + 1]):  # of env
        return None if (line := _split(words[at])) is None else ["env", *line, *words[at + 1 :]]
    return next((at for at in range(at, len(words)) if not _ASSIGNMENT.match(words[at])), None)


def _by_cmd(words: Sequence[str]) -> int | list[str] | None:
    at = next((at for at, word in enumerate(words) if at and not word.startswith("/")), len(words))
    if words[at - 1].lower() != "/c":
        return None
    is_line = len(words) == at + 1 and " " in words[at]
    return _last_command(words[at].replace("\\", "/")) if is_line else at


def _by_node(words: Sequence[str], takes_next: _TakesNext) -> Started | None:
    at = _behind(words, 1, takes_next)
    while at < len(words) and words[at] in _STARTING:
        at = _behind(words, at + 1, takes_next)
    return _older(words[at], at + 1) if at < len(words) else None


def _by_container(words: Sequence[str]) -> Started | None:
    at = _behind(words, 1, _among(_OF_CONTAINERS))
    at += words[at : at + 1] == ["container"]
    if words[at : at + 1] != ["run"]:
        return None
    at = _behind(words, at + 1, _all_but("ditPq", _SWITCHES_OF_RUN))
    return Started(at + 1) if at < len(words) and _IMAGE.search(words[at]) else None


def _by_installer(words: Sequence[str], name: str) -> Started | int | None:
    """Return what a program starts that fetches packages for Python, or has environments with them."""
    takes_next = _among(_OF_INSTALLERS)
    at, fetches = 0, name in {"uvx", "pipx", "nix"}
    if name != "uvx":
        at = _behind(words, 1, takes_next)
        if name == "uv" and words[at : at + 1] == ["tool"]:
            at, fetches = _behind(words, at + 1, takes_next), True
        if not (fetches or name in _PROJECTS) or words[at : at + 1] != ["run"]:
            return None
    at = _behind(words, at + 1, takes_next)
    return Started(at + 1) if fetches and any(map(_PACKAGE.search, words[at : at + 1])) else _command(words, at)


def _last_command(line: str) -> list[str] | None:
    """Return the words of the last command in a line for a shell; None for a line that is not understood."""
    words = _split(line)
    if words is None or _UNCLEAR.search(line):
        return None
    begin = max((at for at, word in enumerate(words, 1) if word in _BETWEEN), default=0)
    begin = next((at for at in range(begin, len(words)) if not _ASSIGNMENT.match(words[at])), len(words))
    return words[begin:]


def _split(line: str) -> list[str] | None:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quotation mark is open
        return None


def _behind(words: Sequence[str], at: int, takes_next: _TakesNext) -> int:
    """Return where the first word stands that is no option, from some place on, nor the value of one."""
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            return at + 1
        at += 2 if takes_next(words[at]) else 1
    return min(at, len(words))


def _among(options: str) -> _TakesNext:
    """Return what tells whether an option takes the next word as its value: these do, and no others."""
    return frozenset(options.split()).__contains__


def _all_but(letters: str, switches: str) -> _TakesNext:
    """Return what tells the same where all options do but some, of which those of one letter stand in one word."""

    def takes_next(word: str) -> bool:
        if word.startswith("--"):
            return "=" not in word and not word.startswith("--no-") and word not in switches.split()
        return len(word[1:].lstrip(letters)) == 1  # behind more than one, the value is in the word

    return takes_next


# Options that take the next word as their value.
_WRAPPERS: Final = {
    "env": "-u --unset -C --chdir -a --argv0",
    "sudo": "-u --user -g --group -C -D --chdir -h --host -p --prompt -R --chroot -r --role -t --type -T -U",
    "doas": "-u -C",
    "wsl": "-d --distribution --distribution-id -u --user --cd --shell-type",
    "nice": "-n --adjustment",
    "stdbuf": "-i --input -o --output -e --error",
    "time": "-f --format -o --output",
    "exec": "-a",
    **dict.fromkeys(("nohup", "command", "setsid"), ""),
}
_OF_SHELLS: Final = "-o -O --rcfile --init-file -C --init-command -d --debug"
_OF_PYTHON: Final = "-X -W --check-hash-based-pycs"
_OF_INSTALLERS: Final = """
    --from -w --with --with-editable --with-requirements -c --constraints -b --build-constraints --overrides
    --env-file --python-platform --torch-backend --index --default-index -i --index-url --extra-index-url
    -f --find-links --index-strategy --keyring-provider -P --upgrade-package --upgrade-group --resolution --prerelease
    --prerelease-package --fork-strategy --exclude-newer --exclude-newer-package --no-sources-package
    --reinstall-package --link-mode -C --config-setting --config-settings-package --no-build-isolation-package
    --no-build-package --no-binary-package --cache-dir --refresh-package -p --python --color --allow-insecure-host
    --trusted-host --preview-features --python-preference --directory --project --config-file --extra --no-extra
    --group --no-group --only-group --no-editable-package --package --spec --pip-args --python-args --fetch-python
    --cooldown --backend -e --env --environment --manifest-path --data-dir --config --node --npm --pnpm --yarn
    --experimental-features --extra-experimental-features --override-flake --inputs-from --profile
"""
_OF_NODE: Final = """
    -r --require --import --loader --experimental-loader --preload --env-file --env-file-if-exists -C --conditions
    --title --watch-path --input-type --inspect-port --debug-port --icu-data-dir --openssl-config --tls-cipher-list
    --dns-result-order --unhandled-rejections --disable-warning --diagnostic-dir --redirect-warnings --tsconfig --cwd
    -p --package --config --import-map --lock --cert --location --seed --define -d --port
"""
_OF_CONTAINERS: Final = """
    --context -c --config -H --host -l --log-level --tlscacert --tlscert --tlskey --connection --url --identity
    -n --namespace --address --root --runroot --storage-driver --storage-opt
"""
# Options that take no value; those of npx are as its source has them.
_SWITCHES_OF_NPM: Final = """
    --yes --quiet --silent --verbose --offline --prefer-offline --prefer-online --ignore-existing --ignore-scripts --no
    --force --global --audit --fund --progress --color --strict-ssl --legacy-peer-deps --workspaces
    --include-workspace-root --dry-run --package-lock --bun --shell-auto-fallback --always-spawn --recursive
"""
_SWITCHES_OF_RUN: Final = """
    --rm --init --interactive --tty --detach --privileged --read-only --publish-all --quiet --sig-proxy
    --disable-content-trust --oom-kill-disable --use-api-socket --env-host --http-proxy --passwd --replace --rmi
    --rootfs --tls-verify --unsetenv-all
"""
