"""Bytes that nobody meant: everything the package reads is read, or refused by a sentence that names the place.

The inputs are always the same ones; tests/fuzz/fuzz_python.py looks for others, guided by coverage."""
import os
import random
import sys

import pytest

FUZZ = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fuzz")
sys.path.insert(0, FUZZ)
import python_targets  # noqa: E402

sys.path.remove(FUZZ)


def cut(dice, data, words):
    del words
    at = dice.randrange(len(data) + 1)
    return data[:at] + data[at + dice.choice((1, 2, 10, 1000000)):]


def flip(dice, data, words):
    del words
    at = dice.randrange(len(data)) if data else 0
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1:] if data else b"\0"


def put(dice, data, words):
    at, end = dice.randrange(len(data) + 1), dice.choice((0, 0, 1, 5))
    return data[:at] + dice.choice(words) + data[at + end:]


def repeat(dice, data, words):
    del words
    at = dice.randrange(len(data) + 1)
    piece = data[at:at + dice.randrange(1, 40)]
    return data[:at] + piece * dice.choice((2, 3, 50)) + data[at:]


def noise(dice, data, words):
    del words
    at = dice.randrange(len(data) + 1)
    return data[:at] + bytes(dice.randrange(256) for _ in range(dice.randrange(1, 9))) + data[at:]


WAYS = (cut, flip, put, put, repeat, noise)


def inputs(seeds, words, count):
    """The seeds, the words by themselves, then changes of the seeds, one to six at a time."""
    dice = random.Random(20)
    yield from seeds
    yield from words
    yield b""
    shallow = [seed for seed in seeds if python_targets.DEEP not in seed]  # once is enough: they take long
    for _ in range(count):
        data = dice.choice(shallow)
        for _ in range(dice.randint(1, 6)):
            data = dice.choice(WAYS)(dice, data, words)
        yield data


@pytest.mark.parametrize("name", python_targets.TARGETS)
def test_any_bytes_are_read_or_refused(name):
    _, seeds, words, count = python_targets.TARGETS[name]
    for number, data in enumerate(inputs(seeds, words, count)):
        try:
            python_targets.one(name, data)
        except BaseException as error:
            raise AssertionError(f"input {number} of {name}, {data[:400]!r}: {error!r}") from error


def test_what_is_refused_without_a_place_is_noticed():
    """The check itself can fail."""
    with pytest.raises(python_targets.Wrong, match="without the place"):
        with python_targets.refused_by_a_sentence("tare.toml"):
            raise ValueError("elsewhere is no place")
    with pytest.raises(KeyError):
        with python_targets.refused_by_a_sentence("here"):
            raise KeyError("here")
