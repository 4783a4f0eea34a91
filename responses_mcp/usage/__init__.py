"""Money: what calls of the API use and cost, what may be spent, and the ledger in which it is written down."""
