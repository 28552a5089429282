"""Threads with stacks of every kind, which do not change. Writes those stacks, as the interpreter reports them: lines
`thread IDENT TID MAIN DEPTH`, each followed by its frames, innermost first: `frame LINE FIRST_LINE NAME<tab>FILE`. Then
the main thread computes without end. To be stopped, and recorded by record_python."""
import asyncio
import gc
import os
import sys
import threading

sys.setrecursionlimit(20000)
threading.stack_size(64 << 20)
gate = threading.Lock()
gate.acquire()
done = []


def waits():
    done.append(threading.current_thread())
    gate.acquire()


class Outer:
    class Inner:
        def method(self, n):
            return self.static(
                n)

        @staticmethod
        def static(n):
            try:
                raise ValueError(n)
            except ValueError:
                with threading.Lock():
                    waits()

    def __add__(self, other):
        return self.Inner().method(other)


def recursion(n=1500):
    return recursion(n - 1) if n else waits()


def generator(n=5):
    if n:
        yield from generator(n - 1)
    else:
        yield waits()


async def coroutine(n=3):
    if n:
        await coroutine(n - 1)
    else:
        await asyncio.sleep(0)
        waits()


async def several():
    await asyncio.gather(coroutine(0), asyncio.sleep(1000))


def comprehensions():
    return [(lambda x: list(map(lambda y: {k: waits() for k in [y]}, [x])))(i) for i in range(1)]


def été():
    λ名()


def λ名():
    𠀀()


def 𠀀():
    waits()


def executed():
    text = "\n" * 70000 + "def made():\n\n\n  waits()\nmade()"
    exec(compile(text, "<made é>", "exec"), {"waits": waits})


def long_function():
    text = "def long():\n" + "".join(f"  x = {i}\n" for i in range(3000)) + "  waits()\nlong()"
    exec(compile(text, "long.py", "exec"), {"waits": waits})


def sorts():
    sorted([2, 1], key=lambda n: waits())


TARGETS = [lambda: Outer() + 1, recursion, lambda: list(generator()), lambda: asyncio.run(coroutine()),
           lambda: asyncio.run(several()), comprehensions, été, executed, long_function, sorts]


def report(frame):
    tids = {thread.ident: thread.native_id for thread in threading.enumerate()}
    for ident, top in sys._current_frames().items():
        main = ident == threading.main_thread().ident
        at, frames = frame if main else top, []
        while at:
            code = at.f_code
            frames.append(f"frame {at.f_lineno} {code.co_firstlineno} {code.co_qualname}\t{code.co_filename}")
            at = at.f_back
        print("thread", ident, tids[ident], int(main), len(frames))
        print(*frames, sep="\n")
    print("ready", flush=True)


class Cycle:
    def __del__(self):
        stop()


def stop():
    report(sys._getframe(1))
    sum(range(1 << 62))  # holds the GIL, in a garbage collection


for number, target in enumerate(TARGETS):
    threading.Thread(target=target, daemon=True).start()
    while len(done) <= number:
        pass
threading.Event().wait(1)
cycle = Cycle()
cycle.self = cycle
del cycle
gc.collect()
