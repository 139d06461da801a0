"""Imported where workers are forked from: what is compiled, or imported late, is loaded once for all of them."""

import torch._dynamo  # noqa: F401  # the first step of an optimizer imports it, for three seconds

import trainer  # noqa: F401
from adatkg_core.engine import compile_engine

compile_engine()
