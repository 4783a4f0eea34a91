"""The known MCP clients, their configuration files, and the entries of this server in them."""
