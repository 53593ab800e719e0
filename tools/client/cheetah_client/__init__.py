"""Modules shared by programs that are clients of a server: connections, options and messages."""
