"""The name that `serving` had until 0.10, for hosts that import it."""

from responses_mcp.serving import configured_toolsets, serve, serve_descriptors

__all__ = ["configured_toolsets", "serve", "serve_descriptors"]
