"""The MCP clients: which are known, their configuration files, and the entries of this server in them."""
