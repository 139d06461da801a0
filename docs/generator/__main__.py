"""`python -m docs.generator` writes the reference pages."""

from docs.generator import write

for page in write():
    print(page)
