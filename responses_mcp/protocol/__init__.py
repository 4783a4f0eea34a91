"""The protocol without I/O: framing, JSON-RPC and the session, as data in and out.

Nothing in this package waits, and nothing in it imports more than the standard library.
"""
