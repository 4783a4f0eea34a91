"""The name that `service` had until 0.10, for hosts that import it."""

from responses_mcp.manuals.service import Manuals, open_manuals

__all__ = ["Manuals", "open_manuals"]
