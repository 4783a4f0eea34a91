"""What a command line starts: this program, the older one of its name, or something else.

It promises: a server of others that is told of a folder, a project, an address or a package of this name is never taken
for ours, whatever the spelling; ours is found in the usual ones, with the words that are for it.
"""

import shlex

import pytest

from responses_mcp.commands.clients.started import Started, started

HERE = "/home/me/src/openai-responses-mcp"
URL = "git+https://github.com/uchimanajet7/openai-responses-mcp"
NAME = "openai-responses-mcp"

# Up to the `|`, the words are for others.
OURS = f"""
    {NAME} | --stdio
    {NAME}
    /opt/x/bin/{NAME} | --stdio
    ./{NAME} | --stdio
    {HERE}/.venv/bin/{NAME} | --stdio --config /c.yaml
    'C:\\x\\Scripts\\{NAME}.exe' | --stdio
    'C:\\x\\Scripts\\{NAME}.EXE' | --stdio
    '/home/a b/{NAME}' | --stdio
    'C:\\Program Files\\x\\{NAME}.exe' | --stdio
    '~/my files/{NAME}' | --stdio
    python -m responses_mcp | --stdio
    python3 -m responses_mcp
    python3.12 -m responses_mcp
    /usr/bin/python3 -m responses_mcp | --stdio
    {HERE}/.venv/bin/python -m responses_mcp | --stdio
    'C:\\Python\\python.exe' -m responses_mcp | --stdio
    Python.EXE -m responses_mcp | --stdio
    pythonw -m responses_mcp
    py -3.12 -m responses_mcp | --stdio
    py -3 -m responses_mcp
    python -I -m responses_mcp | --stdio
    python -u -B -m responses_mcp
    python -Im responses_mcp
    python -X utf8 -m responses_mcp
    python -W ignore -X dev -u -m responses_mcp | --stdio
    python -Xutf8 -m responses_mcp
    python3 /usr/local/bin/{NAME} | --stdio
    python3 -m pipx run {NAME} | --stdio
    python -m uv tool run {NAME} | --stdio
    uvx {NAME} | --stdio
    uvx {NAME}@latest | --stdio
    uvx {NAME}@0.9.0
    uvx {NAME}==0.9.0
    uvx '{NAME}>=0.9,<2' | --stdio
    uvx '{NAME}[semantic]' | --stdio
    uvx '{NAME}[semantic]==0.9.0' | --stdio
    uvx openai_responses_mcp | --stdio
    uvx {URL} | --stdio
    uvx {URL}.git | --stdio
    uvx {URL}.git@v1.0 | --stdio
    uvx {URL}@main | --stdio
    uvx '{NAME} @ {URL}' | --stdio
    uvx git+ssh://git@github.com/uchimanajet7/{NAME}.git | --stdio
    uvx {HERE} | --stdio
    uvx {HERE}/ | --stdio
    uvx ./{NAME} | --stdio
    uvx '~/src/{NAME}'
    uvx -q {HERE} | --stdio
    uvx --no-cache {HERE} | --stdio
    uvx --reinstall {HERE} | --stdio
    uvx --upgrade {HERE} | --stdio
    uvx -U {HERE} | --stdio
    uvx --verbose {HERE} | --stdio
    uvx -v --no-config --no-progress {HERE} | --stdio
    uvx --python 3.12 {HERE} | --stdio
    uvx --python=3.12 {HERE} | --stdio
    uvx -p 3.12 {NAME} | --stdio
    uvx --offline --index-url https://mirror.example/simple {NAME} | --stdio
    uvx --from {HERE} {NAME} | --stdio
    uvx --from . {NAME} | --stdio
    uvx --from {URL} {NAME} | --stdio
    uvx --from {URL} --python 3.12 {NAME}
    uvx --from {URL} --with wordllama {NAME} | --stdio
    uvx --from={HERE} {NAME} | --stdio
    uvx --from {NAME} python -m responses_mcp | --stdio
    uvx --isolated --refresh-package {NAME} {NAME} | --stdio
    uvx --env-file .env {NAME} | --stdio
    uvx -- {NAME} | --stdio
    uvx.exe {NAME} | --stdio
    uv tool run {NAME} | --stdio
    uv tool run {HERE} | --stdio
    uv tool run --from {HERE} {NAME} | --stdio
    uv -q tool run {NAME} | --stdio
    uv run {NAME} | --stdio
    uv run -- {NAME} | --stdio
    uv run --directory {HERE} {NAME} | --stdio
    uv --directory {HERE} run {NAME} | --stdio
    uv --directory={HERE} run {NAME} | --stdio
    uv run --project {HERE} --extra semantic {NAME} | --stdio
    uv run --directory {HERE} python -m responses_mcp | --stdio
    uv run --directory {HERE} -m responses_mcp | --stdio
    uv run --directory {HERE} --module responses_mcp | --stdio
    uv run --with {NAME} {NAME} | --stdio
    uv run --with {NAME} python -m responses_mcp | --stdio
    uv run --no-sync --frozen --directory {HERE} {NAME} | --stdio
    /opt/uv/bin/uv run --directory {HERE} {NAME} | --stdio
    pipx run {NAME} | --stdio
    pipx run --spec {HERE} {NAME} | --stdio
    pipx run --spec {URL} {NAME} | --stdio
    pipx run {HERE} | --stdio
    pipx run --no-cache {NAME} | -- --stdio
    pipx run --python 3.12 --pip-args '-q' {NAME}==0.9.0 | --stdio
    hatch run {NAME} | --stdio
    hatch -e dev run {NAME} | --stdio
    poetry run {NAME} | --stdio
    poetry -C {HERE} run {NAME} | --stdio
    poetry run python -m responses_mcp | --stdio
    pdm run -p {HERE} {NAME} | --stdio
    nix run github:uchimanajet7/{NAME} | -- --stdio
    nix run --refresh github:uchimanajet7/{NAME}#default | -- --stdio
    docker run -i --rm -e OPENAI_API_KEY {NAME} | --stdio
    docker run -i --rm -e OPENAI_API_KEY=sk-canary {NAME}:latest | --stdio
    docker run -it --rm --env OPENAI_API_KEY ghcr.io/uchimanajet7/{NAME}:1 | --stdio
    docker run -i --name {NAME} ghcr.io/x/{NAME} | --stdio
    docker run --rm -i -v {HERE}:/manuals:ro -e MANUALS_ROOT=/manuals {NAME}
    docker run --pull=always --network host -ie OPENAI_API_KEY {NAME}@sha256:0123abcd | --stdio
    docker run --interactive --init --read-only --no-healthcheck {NAME} | --stdio
    docker --context far container run -i localhost:5000/x/{NAME}:1 | --stdio
    podman run -i --replace --userns keep-id {NAME} | --stdio
    nerdctl run -i {NAME} | --stdio
    sudo docker run -i {NAME} | --stdio
    env {NAME} | --stdio
    /usr/bin/env uvx {NAME}
    env OPENAI_API_KEY=sk-canary {NAME} | --stdio
    env A=b uvx {HERE} | --stdio
    env -i PATH=/bin {NAME} | --stdio
    env -u HTTPS_PROXY -C /tmp A=b python3 -m responses_mcp | --stdio
    env -S uvx {NAME} | --stdio
    env -S 'A=b uvx {NAME} --stdio' |
    cmd /c {NAME} | --stdio
    cmd /C uvx {NAME} | --stdio
    cmd.exe /d /s /c uvx {HERE} | --stdio
    cmd /c 'C:\\x\\{NAME}.exe' | --stdio
    cmd /c 'uvx {NAME} --stdio' |
    wsl {NAME} | --stdio
    wsl -d Ubuntu -e uvx {NAME} | --stdio
    wsl.exe --cd '~' -- uvx {NAME} | --stdio
    wsl bash -lc 'uvx {NAME} --stdio' |
    sudo -u me {NAME} | --stdio
    nohup {NAME} | --stdio
    nice -n 10 uvx {NAME} | --stdio
    stdbuf -oL {NAME} | --stdio
    mise exec -- {NAME} | --stdio
    mise x python@3.12 -- uvx {NAME}
    op run --env-file=x -- {NAME} | --stdio
    op run -- uvx {NAME}
    op run -- {NAME}
    doppler run -p x -- env A=b {NAME} | --stdio
    npx -y dotenv-cli -e .env -- /opt/bin/{NAME} | --stdio
    uvx mcp-proxy --port 8080 -- uvx {NAME} | --stdio
    bash -c '{NAME} --stdio' |
    bash -lc '{NAME} --stdio' |
    /bin/sh -c 'exec {NAME} --stdio' |
    /usr/bin/zsh -l -c 'uvx {NAME} --stdio' |
    bash --noprofile --norc -c '{NAME}' |
    bash -o pipefail -c 'A=b {NAME} --stdio 2>/tmp/log' |
    sh -c 'cd /tmp && exec {NAME} --stdio' |
    sh -c 'cd /tmp; . ./x; OPENAI_API_KEY="$(pass x)" exec uvx {NAME} --stdio' |
    sh -c 'exec {NAME} "$@"' x --stdio |
    sh -c 'test -x y || python3 -m responses_mcp' |
    fish -c 'uv run --directory "{HERE}" {NAME}' |
    bash -c 'docker run -i {NAME}:1 --stdio' |
"""

OLDER = f"""
    npx {NAME}
    npx -y {NAME} | --stdio
    npx -y {NAME}@latest | --stdio
    npx --yes {NAME}@0.8.1 | --stdio
    npx.cmd -y {NAME} | --stdio
    'C:\\Program Files\\nodejs\\npx.cmd' -y {NAME} | --stdio
    npx -- {NAME}
    npx --registry https://registry.npmjs.org -y {NAME}
    npx --cache /tmp/c {NAME}
    npx --loglevel silent {NAME}
    npx --node-options --max {NAME}
    npx --prefix /x --userconfig /y -q {NAME}
    npx -p {NAME}@0.8.1 {NAME}
    npx --package={NAME} {NAME}
    npx --prefer-offline --no-audit {NAME}
    npx --no {HERE} | --stdio
    npx -s {HERE} | --stdio
    npx {HERE} | --stdio
    npx -y github:uchimanajet7/{NAME}
    npx -y {URL}.git#main
    npm exec -y {NAME}
    npm exec -- {NAME} | --stdio
    npm --silent exec -- {NAME}
    npm x -y -- {NAME}
    pnpm dlx {NAME}
    pnpm exec tsx {HERE}/dist/index.js
    npx -y tsx {HERE}/dist/index.js
    yarn node {HERE}/dist/index.js
    pnpm --dir /x dlx {NAME}
    pnpm -C /x exec {NAME}
    yarn dlx -q {NAME}
    yarn --cwd /x {NAME}
    bunx {NAME}@latest
    bunx --bun {NAME}
    bun x {NAME}
    bun {HERE}/dist/index.js
    bun run {HERE}/dist/index.js | --stdio
    deno run -A {HERE}/dist/index.js
    deno run --allow-env --allow-net=api.openai.com npm:{NAME}@0.8
    tsx {HERE}/dist/index.js
    node {HERE}/dist/index.js | --stdio
    node ./{NAME}/dist/index.js
    node {NAME}/dist/index.js
    node 'C:\\src\\{NAME}\\dist\\index.js'
    'C:\\Program Files\\nodejs\\node.exe' 'C:\\src\\{NAME}\\dist\\index.js' | --stdio
    node /usr/lib/node_modules/{NAME}/dist/index.js | --stdio
    node {HERE}
    nodejs {HERE}/dist/index.js
    node20 {HERE}/dist/index.js
    /opt/node-v20/bin/node {HERE}/dist/index.js
    node -r dotenv/config {HERE}/dist/index.js
    node --require dotenv/config --import ./x.mjs {HERE}/dist/index.js
    node --env-file .env {HERE}/dist/index.js | --stdio
    node --env-file=.env {HERE}/dist/index.js | --stdio
    node --max-old-space-size=512 --no-warnings {HERE}/dist/index.js
    {HERE}/dist/index.js | --stdio
    ./node_modules/.bin/{NAME} | --stdio
    'C:\\Users\\me\\AppData\\Roaming\\npm\\{NAME}.cmd' | --stdio
    cmd /c npx -y {NAME}@0.8.1 | --stdio
    cmd /d /s /c npx -y {NAME}
    cmd /c 'npx -y {NAME}' |
    env DEBUG=1 node {HERE}/dist/index.js
    env -u X npx {NAME}
    env -S npx -y {NAME}
    env -S 'npx -y {NAME}' |
    wsl npx -y {NAME}
    wsl -d Ubuntu -- npx -y {NAME}
    mise exec node@20 -- npx -y {NAME} | --stdio
    volta run npx {NAME}
    volta run --node 20 npx -y {NAME}
    op run -- npx -y {NAME}
    npx -y dotenv-cli -e .env -- npx -y {NAME}
    bash -lc 'npx -y {NAME} --stdio' |
    zsh -ic 'cd {HERE} && node {HERE}/dist/index.js' |
    wsl bash -lc 'nvm use 20 >/dev/null; npx -y {NAME}' |
"""

OTHERS = f"""
    uvx mcp-server-git --repository {HERE}
    uvx mcp-server-git --repository {HERE}/
    uvx mcp-server-git --repository={HERE}
    uvx mcp-server-git --repository {NAME}
    uvx mcp-server-git -r ./{NAME}
    uvx mcp-server-git {HERE}
    uvx --directory {HERE} mcp-server-git
    uvx --from {HERE} other-server
    uvx --from {URL} other
    uvx --with {NAME} other-server
    uvx --with-editable {HERE} other-server --stdio
    uvx -w {NAME} other-server
    uvx --refresh-package {NAME} other-server
    uvx -P {NAME} other-server
    uvx --index {NAME} other-server
    uvx --env-file {HERE} other-server
    uvx --python {HERE} other-server
    uvx --cache-dir /var/cache/{NAME} other-server
    uvx basic-memory mcp --project {NAME}
    uvx basic-memory --project {NAME} mcp
    basic-memory mcp --project={NAME}
    basic-memory mcp --project {NAME} --stdio
    uvx basic-memory mcp -- {NAME}
    uvx --from git+https://github.com/oraios/serena serena start-mcp-server --project {NAME}
    uvx --from git+https://github.com/oraios/serena serena start-mcp-server --project {HERE}
    uvx {NAME}-fork
    uvx my-{NAME}
    uvx {NAME}/other-server
    uvx {HERE}/tools/other
    uvx {URL}#subdirectory=other
    python -m responses_mcp.testing
    uv run -m responses_mcp.testing
    python -m pip install {NAME}
    conda run -n {NAME} other
    uvx {HERE}.db
    uvx https://gitmcp.io/{NAME}/other
    uvx mcp-server-fetch --user-agent me/{NAME}
    uv run --with {NAME} python other.py
    uv run --with {NAME} other-server
    uv run --directory {HERE} mcp-server-git
    uv --directory {HERE} run mcp-server-git
    uv --directory {HERE} run server.py --stdio
    uv run --project {HERE} python -m other
    uv run --package {NAME} other
    uv run {HERE}/tools/other.py
    uv tool install {NAME}
    uv pip install {NAME}
    uv tool run other {NAME}
    pipx run --spec {HERE} other
    pipx run other {NAME}
    pipx install {NAME}
    pip install {NAME}
    poetry -C {HERE} run other
    hatch run other {HERE}
    nix run nixpkgs#mcp-server-git -- --repository {HERE}
    nix run nixpkgs#mcp-server-filesystem -- {HERE}
    python -m mcp_server_git --repository {HERE}
    python -m mcp_server_git {HERE}
    python -m other responses_mcp
    python -m responses_mcp_other
    python other.py {HERE}
    python other.py -m responses_mcp
    python {HERE}/tools/other.py
    python -c 'import other; other.main()' {HERE}
    python -W responses_mcp other.py
    python -X {NAME} other.py
    {HERE}/.venv/bin/other
    {HERE}/.venv/bin/python -m other
    {HERE}-old/.venv/bin/other
    npx -y @modelcontextprotocol/server-filesystem {HERE} /home/me
    npx -y @modelcontextprotocol/server-filesystem '$HOME/{NAME}'
    npx -y @modelcontextprotocol/server-filesystem '${{HOME}}/{NAME}'
    npx -y @modelcontextprotocol/server-filesystem '${{userHome}}/{NAME}'
    npx -y @modelcontextprotocol/server-filesystem '${{workspaceFolder}}/{NAME}'
    npx -y @modelcontextprotocol/server-filesystem '~/{NAME}'
    npx -y @modelcontextprotocol/server-filesystem -- {HERE}
    npx -y @modelcontextprotocol/server-filesystem -- {HERE} {HERE}/docs
    npx -y @modelcontextprotocol/server-github --repo uchimanajet7/{NAME}
    npx @sentry/mcp-server@latest --project-slug {NAME}
    npx @sentry/mcp-server@latest --project-slug={NAME} --host x
    npx -y mcp-remote https://gitmcp.io/uchimanajet7/{NAME}
    npx -y mcp-remote gitmcp.io/uchimanajet7/{NAME}
    npx -y mcp-remote ws://localhost:1/{NAME}
    npx -y mcp-remote file:///srv/{NAME}
    npx -y @modelcontextprotocol/server-postgres postgresql://localhost/{NAME}
    npx -y @someone/{NAME}
    npx -y @someone/{NAME}@latest
    npx -y @someone/{NAME}-fork
    npx -y {NAME}-fork
    npx -y my-{NAME}
    npx --prefix {HERE} other-server
    npx --cache {NAME} other-server
    npx -p {NAME} other-server
    npx --package {NAME} other-server
    npx --unheard-of {NAME} other-server
    npx -w {NAME} other-server
    npx -y supergateway --stdio 'uvx mcp-server-git --repository {HERE}'
    npm --prefix {HERE} run other
    npm --prefix {HERE} exec other
    npm install {NAME}
    pnpm --dir {HERE} dlx other
    yarn --cwd {HERE} other
    node {HERE}/node_modules/x/index.js {HERE}
    node {HERE}/node_modules/x/dist/index.js
    node /usr/lib/node_modules/@someone/{NAME}/dist/index.js
    node -r {HERE}/dist/index.js other.js
    node --env-file {HERE} other.js
    node other.js {HERE}/dist/index.js
    node -e 'require("x")' {HERE}/dist/index.js
    bun run --cwd {HERE} other.ts
    bun run other {HERE}
    deno run --allow-read={HERE} x.ts
    deno run -A x.ts {HERE}
    docker run -i --rm --mount type=bind,src={HERE},dst=/projects/{NAME} mcp/filesystem /projects
    docker run -i --rm -v {HERE}:/repo mcp/git
    docker run -i --rm -v {HERE}:/projects/{NAME} mcp/filesystem /projects/{NAME}
    docker run -i --rm -v/a:/b mcp/git {NAME}
    docker run -i --rm -e PROJECT={NAME} mcp/git
    docker run -i --rm -e PROJECT={HERE} mcp/git
    docker run -i --rm --env {NAME} mcp/git
    docker run -i --rm --name {NAME} mcp/git
    docker run -i --hostname {NAME} --network {NAME} mcp/git
    docker run -i -w {HERE} mcp/git
    docker run -i -h {NAME} mcp/git
    docker run -i --label {NAME} --entrypoint {NAME} mcp/git
    docker run -i --env-file {HERE} mcp/git
    docker run -i mcp/git:{NAME}
    docker run -i {NAME}/git
    docker run -i x/{NAME}-fork:1
    docker exec -i {NAME} other-server
    docker build -t {NAME} .
    docker compose --project-name {NAME} run other
    podman run -i --pod {NAME} mcp/git
    sudo docker run --name {NAME} -i image
    env REPO={HERE} mcp-server-git
    env -C {HERE} mcp-server-git
    env -u {NAME} mcp-server-git
    env PROJECT={NAME} uvx basic-memory
    env {NAME}=x other
    cmd /c npx -y server-filesystem 'C:\\dev\\{NAME}'
    cmd /c 'cd C:\\dev\\{NAME} && other.exe'
    cmd /c cd {NAME}
    cmd /k {NAME}
    wsl --cd {HERE} other-server
    wsl -d {NAME} other-server
    sudo -u {NAME} other-server
    sudo -u me mcp-server-git --repository {HERE}
    bash -lc 'mcp-server-git --repository {HERE}'
    bash -lc 'uvx mcp-server-git --repository ~/src/{NAME}'
    bash -c 'cd {HERE} && uvx mcp-server-git'
    bash -c 'cd {HERE}; mcp-server-git -r ~/{NAME}'
    bash -c 'cd ~/{NAME}'
    bash -c '{NAME} update; other-server'
    bash -c '{NAME} ask hi | other-server'
    bash -c 'echo {NAME}'
    bash -c 'other "a; {NAME}"'
    bash -c 'REPO={HERE} other-server'
    bash -c 'other-server' {NAME}
    bash -c '{NAME} --stdio "'
    bash -c 'other --between ";" {NAME}'
    bash -c 'find . -exec other {{}} \\; {NAME}'
    bash -c 'other $(cd /tmp; {NAME} --version )'
    bash -c 'other `cd /tmp; {NAME} --version `'
    bash {HERE}
    bash {HERE}/start.sh
    bash --rcfile {HERE} -c other-server
    bash -c
    ssh host mcp-server-git --repository /srv/{NAME}
    ssh {NAME} other-server
    ssh host -- mcp-server-git --repository /srv/{NAME}
    mcp-server-sqlite --db-path {HERE}.db
    mcp-server-x --log-file /var/log/{NAME}
    mcp-server-time --user-agent {NAME}@0.9
    mcp-server-x {NAME}
    mcp-server-x -- {HERE}
    mcp-server-x -- {NAME}
    op run -- mcp-server-x -- {NAME}
    mcp-server-x -- https://gitmcp.io/uchimanajet7/{NAME} --stdio
    npx -y --package mcp-remote -- mcp-remote https://gitmcp.io/uchimanajet7/{NAME}
    mcp-proxy --stdio -- {NAME}
    mcp-server-x --
    op run --env-file={HERE} -- other-server
    op run -- uvx basic-memory mcp --project {NAME}
    mise exec -C {HERE} -- other-server
    git clone https://github.com/uchimanajet7/{NAME}
    code {HERE}
    {NAME}-fork --stdio
    my-{NAME} --stdio
    {NAME}/other-server
    openai-responses --stdio
    '{NAME} --stdio'
    'uvx {NAME} --stdio'
    'A=b {NAME}'
    'uvx mcp-server-git --repository {HERE}'
    '/usr/bin/uvx mcp-server-git --repository {HERE}'
    '/usr/bin/npx -y server-filesystem {HERE}'
    'npx mcp-remote gitmcp.io/x/{NAME}'
    'node other.js {HERE}/dist/index.js'
    python
    uv
    uvx
    uvx --from
    env
    docker run
    npx -y
    cmd /c
    ''
"""


def lines_of(table: str) -> list[str]:
    return [line.strip() for line in table.strip().splitlines()]


def read(line: str) -> tuple[list[str], int]:
    """Return the words of a line of a table, and how many of them stand before the mark."""
    words = shlex.split(line)
    before = words.index("|") if "|" in words else len(words)
    return [word for word in words if word != "|"], before


@pytest.mark.parametrize("line", lines_of(OURS))
def test_this_program_is_found_behind_what_starts_it_with_the_words_that_are_for_it(line: str) -> None:
    words, before = read(line)
    assert started(words) == Started(before)


@pytest.mark.parametrize("line", lines_of(OLDER))
def test_the_older_program_is_told_apart_by_what_starts_it(line: str) -> None:
    words, before = read(line)
    assert started(words) == Started(before, predecessor=True)


@pytest.mark.parametrize("line", lines_of(OTHERS))
def test_a_server_of_others_is_none_of_ours_whatever_it_is_told(line: str) -> None:
    assert started(shlex.split(line)) is None


@pytest.mark.parametrize("again", [["env"], ["sh", "-c"], ["x", "--"], ["uv", "run"], ["env", "-S", "a b"]])
def test_a_command_without_words_or_without_an_end_starts_nothing_that_is_known(again: list[str]) -> None:
    assert started([]) is None
    assert started(again * 5000) is None
    assert started([*again * 5000, NAME, "--stdio"]) is None
