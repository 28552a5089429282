"""Waiting for something, never for ever."""
import os
import stat
import time

PATIENCE = 120  # seconds


def came_true(condition, seconds=PATIENCE, pause=0.01):
    """Whether it came true in time; a slow machine only makes it wait."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return bool(condition())
        time.sleep(pause)
    return True


def until(condition, what, seconds=PATIENCE, pause=0.01):
    assert came_true(condition, seconds, pause), f"{what}: not within {seconds} s"


def read_page(path):
    """The bytes of a session page, "" where it is none. Other tests make FIFOs of theirs: opening one to read waits
    until somebody writes, which nobody does."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return b""  # its collector was quicker
    with open(fd, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(fd).st_mode) else b""
