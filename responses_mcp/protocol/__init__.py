"""The wire without the wires: framing, JSON-RPC and the session, as pure data in and out.

Nothing in this package waits, and nothing in it imports more than the standard library.
"""
