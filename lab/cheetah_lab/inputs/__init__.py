"""Generators of rows."""
