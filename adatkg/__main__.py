"""`python -m adatkg` is the command `adatkg`."""

from adatkg.main import main

main()
