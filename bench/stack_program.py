# stack_program: programs whose stacks bench/stacks.py samples, each with the truth by its own clocks.
# One process. Must not know who samples it.
"""usage: stack_program.py NAME SECONDS [FILE]

Says that it is ready, waits for a line, works for SECONDS (CPU time, or wall time where it waits or is compared by
wall time), prints what it measured itself as JSON, and waits for another line. With FILE it waits for nothing, and
writes the JSON there."""
import json
import os
import socket
import subprocess
import sys
import threading
import time


# ---- one thread with 33 frames ----------------------------------------------------------------------------------
FRAMES = 33
DONE = []  # chunks: begin and end by the monotonic clock; CPU time and time waiting for a CPU by the kernel's clocks


def chunk():
    total = 0
    for number in range(300000):
        total += number ^ 5
    return total


def ready_s():
    return int(os.pread(SCHEDULED, 100, 0).split()[1]) / 1e9


def chunks(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin, cpu, ready = time.monotonic(), time.thread_time(), ready_s()
        chunk()
        DONE.append((begin, time.monotonic(), time.thread_time() - cpu, ready_s() - ready))


def down(levels, seconds):
    if levels:
        down(levels - 1, seconds)
    else:
        chunks(seconds)


def deep(seconds):
    global SCHEDULED
    SCHEDULED = os.open("/proc/self/schedstat", os.O_RDONLY)
    down(FRAMES - 6, seconds)  # <module>, main, deep, chunks and chunk are the others
    return {"chunks": DONE}


# ---- known shares -----------------------------------------------------------------------------------------------
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


def half(): spin(0.02)
def third(): spin(0.012)
def some(): spin(0.006)
def little(): spin(0.002)


def in_turn(functions, seconds, clock):
    taken = dict.fromkeys([function.__name__ for function in functions], 0)
    end = clock() + seconds
    while clock() < end:
        for function in functions:
            begin = clock()
            function()
            taken[function.__name__] += clock() - begin
    return {"shares": {name: each / sum(taken.values()) for name, each in taken.items()}}


def shares(seconds):
    return in_turn((half, third, some, little), seconds, time.thread_time)


# ---- very short functions ---------------------------------------------------------------------------------------
def tiny(number):
    return number + 1


def calls():
    for number in range(60000):
        tiny(number)


def loops():
    total = 0
    for number in range(90000):
        total += number & 3


def library():
    for _ in range(30):
        sorted(range(3000))


def short(seconds):
    return in_turn((calls, loops, library), seconds, time.thread_time)


# ---- lines ------------------------------------------------------------------------------------------------------
TEXT = json.dumps([{"name": "a" * 10, "values": list(range(50))}] * 200)


def lines():
    numbers = list(range(60000))
    numbers.sort(key=str)
    text = json.loads(TEXT)
    total = sum(number * number for number in numbers)
    words = ",".join(map(str, numbers)).split(",")
    return text, total, len(words)


def profiled(seconds):
    """By line_profiler, in the same run: lines of milliseconds, beside which its cost does not count."""
    import line_profiler
    profiler = line_profiler.LineProfiler()
    measured = profiler(lines)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        measured()
    stats = profiler.get_stats()
    (rows,) = stats.timings.values()
    whole = sum(row[2] for row in rows)
    return {"lines": {row[0]: row[2] / whole for row in rows}}


# ---- waiting ----------------------------------------------------------------------------------------------------
def sleeps(): time.sleep(0.05)
def receives(): there.recv(1)
def waits(): lock.acquire(timeout=0.02)
def works(): spin(0.01)


def waiting(seconds):
    global there, lock
    lock = threading.Lock()
    lock.acquire()
    there, other = socket.socketpair()
    sender = "import socket, sys, time\ns = socket.socket(fileno=%d)\nwhile 1:\n    s.recv(1)\n    time.sleep(.03)\n" \
             "    s.send(b'x')\n" % other.fileno()
    child = subprocess.Popen([sys.executable, "-c", sender], pass_fds=[other.fileno()], stderr=subprocess.DEVNULL)
    there.send(b"x")
    receives()

    def asks():
        there.send(b"x")
        receives()
    asks.__name__ = "receives"
    try:
        return in_turn((sleeps, asks, waits, works), seconds, time.perf_counter)
    finally:
        child.kill()
        child.wait()


# ---- torch with eight threads -----------------------------------------------------------------------------------
def torch(seconds):
    torch = sys.modules["torch"]
    torch.set_num_threads(2)
    stop = time.monotonic() + seconds

    def load(number):
        while time.monotonic() < stop:
            torch.randn(64, 64).sort()
            time.sleep(0.002)
    threads = [threading.Thread(target=load, args=(number,)) for number in range(7)]
    for thread in threads:
        thread.start()
    model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    steps, cpu = 0, time.process_time()
    while time.monotonic() < stop:
        optimizer.zero_grad()
        model(torch.randn(64, 128)).square().mean().backward()
        optimizer.step()
        steps += 1
    for thread in threads:
        thread.join()
    return {"steps": steps, "cpu": time.process_time() - cpu}


def main():
    name, seconds = sys.argv[1], float(sys.argv[2])
    program = {"lines": profiled}.get(name) or globals()[name]
    if name == "torch":
        __import__("torch")
    if len(sys.argv) == 3:
        print("ready", flush=True)
        sys.stdin.readline()
    begin, cpu = time.monotonic(), time.process_time()
    result = program(seconds)
    result.update(begin=begin, wall=time.monotonic() - begin, cpu=time.process_time() - cpu)
    if len(sys.argv) == 3:
        print(json.dumps(result), flush=True)
        sys.stdin.readline()
    else:
        with open(sys.argv[3], "w") as out:
            json.dump(result, out)


if __name__ == "__main__":
    main()
