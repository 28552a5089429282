"""Spans that generators and tasks hold open: each is one call, of its whole duration, whatever ends around it. The
program counts and times its own blocks; the report has to agree."""
import json
import textwrap

import pytest

COUNTED = """
    import atexit, collections, gc, itertools, json, sys, time
    import tare
    lasted = collections.defaultdict(list)   # of each name: seconds
    class block:                              # a span that is counted and timed by the program, too
        def __init__(self, name, **numbers):
            self.name, self.span = name, tare.span(name, **numbers)
        def __enter__(self):
            self.began = time.perf_counter()
            self.span.__enter__()
        def __exit__(self, *error):
            self.span.__exit__(*error)
            lasted[self.name].append(time.perf_counter() - self.began)
    def busy(seconds):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass
    def work(n, name="work", seconds=2e-4):
        with tare.span(name):
            began = time.perf_counter()
            try:
                for i in range(n):
                    busy(seconds)
                    yield i
            finally:
                lasted[name].append(time.perf_counter() - began)
    def around(name="around"):
        return block(name)
    atexit.register(lambda: print(json.dumps(lasted)))
"""

PROGRAMS = {
    "held open by a list": """
        held = []
        for _ in range(50):
            with around():
                held.append(work(3))
                next(held[-1])
                with block("inside"):
                    busy(1e-5)
        for _ in range(75):
            with around():
                for one in list(held):
                    if next(one, None) is None:
                        held.remove(one)
        for one in held:
            one.close()
    """,
    "names of their own": """
        held = [work(2 + n % 3, f"work {n}") for n in range(50)]
        while held:
            with around():
                held = [one for one in held if next(one, None) is not None]
    """,
    "round robin": """
        held = [work(1 + n % 7) for n in range(50)]
        while held:
            for one in list(held):
                with around():
                    if next(one, None) is None:
                        held.remove(one)
    """,
    "zip": """
        with around():
            for several in zip(*[work(1 + n % 5) for n in range(50)]):
                with block("body"):
                    busy(1e-5)
        gc.collect()
    """,
    "chain": """
        with around():
            for n, _ in enumerate(itertools.chain.from_iterable(work(3) for _ in range(50))):
                with block("body"):
                    pass
    """,
    "garbage": """
        held = []
        for n in range(50):
            with around():
                one = work(5)
                next(one)
                if n % 3:
                    held.append((one, held))   # a cycle: only the collector frees it
        held.clear()
        del one, held
        gc.collect()
    """,
    "decorated, nested, an exception": """
        @tare.span("outer generator")
        def outer(n):
            began = time.perf_counter()
            try:
                yield from work(n)
            finally:
                lasted["outer generator"].append(time.perf_counter() - began)
        held = [outer(4) for _ in range(50)]
        for n, one in enumerate(held):
            with around():
                next(one)
        for n, one in enumerate(held):
            with around():
                try:
                    one.throw(ValueError) if n % 2 else list(one)
                except ValueError:
                    pass
    """,
    "threads": """
        import threading
        def rounds():
            held = [work(3) for _ in range(10)]
            while held:
                with tare.span("turn"):
                    held = [one for one in held if next(one, None) is not None]
        threads = [threading.Thread(target=rounds) for _ in range(5)]
        [one.start() for one in threads], [one.join() for one in threads]
    """,
    "steps told one by one": """
        held = []
        for n in range(40):
            began = time.perf_counter()
            tare.step_begin(n)
            with block("body"):
                held.append(work(3))
                next(held[-1])
            for one in list(held):
                if next(one, None) is None:
                    held.remove(one)
            tare.step_end()
            lasted["step"].append(time.perf_counter() - began)
        for one in held:
            one.close()
    """,
    "epochs and steps in a row": """
        held = []
        for epoch in range(3):
            epoch_began = time.perf_counter()
            tare.epoch_begin(epoch)
            with block("before"):
                held.append(work(9, "long"))
                next(held[-1])
            for n in range(10):
                tare.step_next(n)
                with block("body"):
                    held.append(work(2))
                    next(held[-1])
                    next(held[-1])
            tare.step_end()
            lasted["step"].extend([(time.perf_counter() - epoch_began) / 10] * 10)
            held.pop(len(held) // 2).close()
            tare.epoch_end()
            lasted["epoch"].append(time.perf_counter() - epoch_began)
        with around():
            for one in held:
                one.close()
    """,
    "recursion": """
        def tree(depth):
            with block("tree"):
                for _ in range(2 if depth else 0):
                    tree(depth - 1)
        tree(5)
    """,
}


def spans_of(bench, code, **more):
    done = bench.recorded(textwrap.dedent(COUNTED) + textwrap.dedent(code), **more)
    lasted = json.loads(done.out)
    report = bench.call(bench.command, "report", "--json", bench.folder / "trace.tare")
    return lasted, json.loads(report.out)


def near(shown_ns, seconds):
    """A clock that the program reads beside the span: a switch of threads may lie between both."""
    return shown_ns / 1e9 == pytest.approx(seconds, rel=0.25, abs=0.06)


@pytest.mark.parametrize("how", sorted(PROGRAMS))
def test_a_generator_left_open_is_one_call(bench, how):
    lasted, report = spans_of(bench, PROGRAMS[how])
    for name, durations in lasted.items():
        rows = [row for row in report["spans"] if row["name"] == name]
        assert sum(row["calls"] for row in rows) == len(durations), (how, name)
        counted = [row for row in rows if row["calls"]]
        assert near(min(row["min_ns"] for row in counted), min(durations)), (how, name)
        assert near(max(row["max_ns"] for row in counted), max(durations)), (how, name)
        whole = sum(row["mean_ns"] * row["calls"] for row in counted if row["mean_ns"] is not None)
        if all(row["mean_ns"] is not None for row in counted):
            assert near(whole, sum(durations)), (how, name)
    tops = [row for row in report["spans"] if row["depth"] == 0]
    assert sum(row["self_ns"] for row in report["spans"]) <= sum(row["total_ns"] for row in tops) * 1.001
    assert all(row["still_open"] == row["left_open"] == row["end_missing"] == 0 for row in report["spans"])
    assert sum(row["unmatched_ends"] for row in report["threads"]) == 0
    if how != "threads":
        assert report["run"]["spans"] == sum(map(len, lasted.values()))


def test_calls_of_one_name_are_told_apart(bench):
    lasted, report = spans_of(bench, """
        def held():
            with tare.span("held"):
                began = time.perf_counter()
                try:
                    yield
                finally:
                    lasted["held"].append(time.perf_counter() - began)
        first, second = held(), held()
        next(first)
        time.sleep(0.2)
        next(second)
        first.close()         # 0.2 s; were the innermost ended, that would be 0 s
        time.sleep(0.3)
        second.close()        # 0.3 s, not 0.5
    """)
    rows = [row for row in report["spans"] if row["name"] == "held"]
    assert sum(row["calls"] for row in rows) == 2
    shown = sorted(value for row in rows for value in {row["min_ns"], row["max_ns"]} if value is not None)
    assert len(shown) == 2 and near(shown[0], min(lasted["held"])) and near(shown[1], max(lasted["held"])), rows


def test_numbers_belong_to_the_call_that_carries_them(bench):
    _, report = spans_of(bench, """
        def batches(rows):
            with tare.span("batches", samples=rows):
                busy(0.05)
                yield
                busy(0.05)
        for rows in (3, 4):
            with block("around"):
                one = batches(rows)
                next(one)
            with block("other"):          # innermost when `batches` ends
                next(one, None)
    """)
    samples = {}
    for row in report["spans"]:
        for number in row["numbers"]:
            samples.setdefault((row["name"], number["name"]), []).append(number)
    assert set(samples) == {("batches", "samples")}, samples
    assert sum(number["sum"] for number in samples["batches", "samples"]) == 7
    assert sum(number["count"] for number in samples["batches", "samples"]) == 2
    for number in samples["batches", "samples"]:  # over the whole call, some 0.1 s: not over a part of it
        assert number["per_second"] <= 41 * number["count"], number


TASKS = {
    "tasks": """
        async def request():
            with tare.span("request"):
                began = time.perf_counter()
                await asyncio.sleep(0.001)
                with tare.span("part"):
                    lasted["part"].append(0)
                    await asyncio.sleep(0)
                lasted["request"].append(time.perf_counter() - began)
        async def main():
            with block("main"):
                await asyncio.gather(*(request() for _ in range(50)))
    """,
    "generators of tasks": """
        async def rows(n):
            with tare.span("rows"):
                began = time.perf_counter()
                try:
                    for i in range(n):
                        await asyncio.sleep(0)
                        yield i
                finally:
                    lasted["rows"].append(time.perf_counter() - began)
        async def reads(stop):
            async for i in rows(5):
                if i == stop:
                    break             # closed later, by a task of the loop
        async def main():
            await asyncio.gather(*(reads(n % 7) for n in range(50)))
            gc.collect()
            await asyncio.sleep(0.01)
    """,
    "closed by another task": """
        async def begins(held):
            one = work(3)
            next(one)
            held.append(one)
        async def main():
            held = []
            await asyncio.gather(*(begins(held) for _ in range(50)))
            gc.collect()
            async def ends():
                while held:
                    held.pop().close()
                    await asyncio.sleep(0)
            await asyncio.gather(ends(), ends())
    """,
    "closed after the loop": """
        held = []
        async def begins():
            held.append(work(3))
            next(held[-1])
        async def main():
            await asyncio.gather(*(begins() for _ in range(50)))
        atexit.register(lambda: [one.close() for one in held])
    """,
    "cancelled": """
        async def request():
            began = time.perf_counter()
            with tare.span("request"):
                try:
                    await asyncio.sleep(60)
                finally:
                    lasted["request"].append(time.perf_counter() - began)
        async def main():
            tasks = [asyncio.create_task(request()) for _ in range(50)]
            await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    """,
}


@pytest.mark.parametrize("how", sorted(TASKS))
def test_a_span_of_a_task_is_one_call(bench, how):
    lasted, report = spans_of(bench, "import asyncio\n" + textwrap.dedent(TASKS[how]) + "asyncio.run(main())\n")
    assert lasted
    for name, durations in lasted.items():
        rows = [row for row in report["tracks"] + report["spans"] if row["name"] == name]
        assert sum(row["calls"] for row in rows) == len(durations), (how, name)
        if durations[0]:
            assert near(max(row["max_ns"] for row in rows), max(durations)), (how, name)
    assert sum(row["unmatched_ends"] for row in report["threads"]) == 0


def test_many_open_generators_stay_cheap(bench):
    """Ends in the order of the begins: one event more a call, not as many as are open."""
    lasted, report = spans_of(bench, """
        held = [work(1, seconds=0) for _ in range(3000)]
        for one in held:
            next(one)
        for one in held:
            next(one, None)
    """)
    assert sum(row["calls"] for row in report["spans"]) == 3000 == len(lasted["work"])
    assert sum(row["events"] for row in report["threads"]) < 4 * 3000
