"""Money: usage and cost of calls of the API, limits, and the ledger."""
