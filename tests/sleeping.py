"""Work for a process whose imports never end: they stand for torch, which takes seconds, on a busy machine many."""

import time

time.sleep(3600)


def sleep_long() -> None:
    """Never reached."""
