# The server in a container. Build it in the checkout:
#   podman build --tag openai-responses-mcp .
# A client starts it with:
#   podman run --rm --interactive --env OPENAI_API_KEY openai-responses-mcp
# Docker takes the same words, and `--file Dockerfile` for the build.

FROM docker.io/library/python:3.13-slim-trixie AS build
RUN pip install --no-cache-dir uv==0.13.9
WORKDIR /src
COPY pyproject.toml uv.lock README.md LICENSE ./
COPY config config
COPY responses_mcp responses_mcp
ENV UV_PROJECT_ENVIRONMENT=/opt/server UV_PYTHON_DOWNLOADS=never
RUN uv sync --locked --no-dev --no-editable --compile-bytecode

FROM docker.io/library/python:3.13-slim-trixie
LABEL io.modelcontextprotocol.server.name="io.github.uchimanajet7/openai-responses-mcp"
RUN useradd --uid 10001 --create-home server
COPY --from=build /opt/server /opt/server
ENV PATH=/opt/server/bin:$PATH
USER 10001
WORKDIR /home/server
ENTRYPOINT ["openai-responses-mcp", "--stdio"]
