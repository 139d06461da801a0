"""Imported where workers are forked from: what is compiled is loaded once for all of them."""

from adatkg_core.evidence import compile_evidence

compile_evidence()
