"""Writes the reference pages from the code itself; nothing of this is shipped.

`make reference` writes them anew. A test fails while they differ from the code, and the generator itself while the code
has something that nobody has described.
"""

from docs.generator.pages import PAGES, REFERENCE, write

__all__ = ["PAGES", "REFERENCE", "write"]
