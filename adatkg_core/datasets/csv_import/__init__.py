"""Makes a data set from a table of events, and reports by line what is odd about it."""

from adatkg_core.datasets.csv_import.importer import import_csv

__all__ = [
    "import_csv",
]
