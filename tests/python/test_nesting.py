"""Places in loops, compared by their byte code: it differs between interpreters."""
import pytest

from tare.torch import _loops

SAME, OUTER, INNER, APART = range(4)
places = {}


def step(name):
    places[name] = _loops._where(places.get(name))


def helper(name):
    step(name)


def same_loop():
    for i in range(4):
        step("often")
        if i % 2:
            step("now")


def now_first():
    for i in range(4):
        if i % 2 == 0:
            step("now")
            continue
        step("often")


def inner_for():
    for _ in range(2):
        for _ in range(3):
            step("often")
        step("now")


def inner_while():
    i = 0
    while i < 2:
        j = 0
        while True:
            step("often")
            j += 1
            if j == 3:
                break
        helper("now")
        i += 1


def inner_of_a_function():
    def several():
        for _ in range(3):
            step("often")
    for _ in range(2):
        several()
        step("now")


def now_in_an_inner_loop():
    for i in range(4):
        step("often")
        if i == 2:
            for _ in range(2):
                helper("now")


def one_after_the_other():
    for _ in range(2):
        for _ in range(3):
            step("often")
        for _ in range(3):
            step("now")


def at_one_place():
    for name in ("often", "often", "now"):
        step(name)


def guarded():
    for i in range(4):
        try:
            with open("/dev/null"):
                step("often")
        finally:
            if i % 2:
                step("now")


def of_coroutines():
    async def often():
        step("often")

    async def now():
        step("now")

    async def both():
        for i in range(4):
            await often()
            if i % 2:
                await now()
    with pytest.raises(StopIteration):
        both().send(None)


@pytest.mark.parametrize("program, expected", [
    (same_loop, SAME), (now_first, SAME), (guarded, SAME), (of_coroutines, SAME),
    (inner_for, OUTER), (inner_while, OUTER), (inner_of_a_function, OUTER),
    (now_in_an_inner_loop, INNER), (one_after_the_other, APART), (at_one_place, APART)],
    ids=lambda value: getattr(value, "__name__", ""))
def test_nesting(program, expected):
    places.clear()
    program()
    assert _loops._compare(places["often"], places["now"]) == expected


def test_the_same_place_again_is_the_same_object():
    def again(last):
        return _loops._where(last)
    seen = []
    for _ in range(200):  # specialized meanwhile
        seen.append(again(seen[-1] if seen else None))
    assert all(place is seen[0] for place in seen)
    assert again(seen[0]) is not seen[0]
