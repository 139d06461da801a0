"""Imported where workers are forked from: what is compiled is loaded once for all of them."""

from adatkg_core.engine import compile_engine

compile_engine()
