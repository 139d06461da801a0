"""The command `adatkg`, thin: it parses, calls and prints."""

import os

# Before anything imports torch: with OpenMP's busy waiting, two threads on two cores run several times slower
# as soon as another process (the broker, an event loop) wants one of them.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
