"""openai-responses-mcp: search-backed answers from OpenAI's Responses API for MCP clients, on Trio."""

__version__ = "0.9.0"
