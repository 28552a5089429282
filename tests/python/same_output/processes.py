"""Processes, threads and tasks."""
from ._table import add

for _method in ("fork", "spawn", "forkserver"):
    add("multiprocessing " + _method, """
        import multiprocessing, sys
        def work(x):
            print("worker", x, flush=True)
            return x * x
        def fails(x):
            raise ValueError("in a worker")
        if __name__ == "__main__":
            multiprocessing.set_start_method("%s")
            with multiprocessing.Pool(1) as pool:
                print(pool.map(work, range(3)))
            process = multiprocessing.Process(target=sys.exit, args=(5,))
            process.start(); process.join()
            print(process.exitcode)
            process = multiprocessing.Process(target=fails, args=(1,), name="failing")
            process.start(); process.join()
            print(process.exitcode)
    """ % _method, expect="ValueError: in a worker")
add("subprocess", """
    import subprocess, sys
    print(subprocess.run([sys.executable, "-c", "import sys; print(sys.path[1:], 'child'); sys.exit(9)"]).returncode,
          flush=True)
    print(subprocess.run(["sh", "-c", "echo out; echo err >&2; kill -9 $$"]).returncode)
""", expect="child")
add("a child that outlives it", """
    import subprocess, sys
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5); print('late')"])
    print("first", flush=True)
""", expect="late")
add("os.fork and exec", """
    import os, sys
    sys.stdout.flush()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "print('after exec')"])
    print(os.wait()[1])
""", expect="after exec")
add("concurrent.futures", """
    import concurrent.futures as futures
    def work(x):
        if x == 3:
            raise ValueError(x)
        return x
    if __name__ == "__main__":
        for kind in (futures.ThreadPoolExecutor, futures.ProcessPoolExecutor):
            with kind(2) as pool:
                print([type(one.exception()).__name__ for one in [pool.submit(work, x) for x in range(4)]])
""", expect="ValueError")
add("asyncio", """
    import asyncio
    async def fails():
        raise ValueError("in a task")
    async def main():
        asyncio.create_task(fails(), name="failing")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        print("main ends")
    asyncio.run(main())
""", expect="Task exception was never retrieved", options=("-X", "utf8"))
add("asyncio debug", """
    import asyncio
    async def never(): pass
    async def main():
        never()
        print(asyncio.get_running_loop().get_debug())
    asyncio.run(main(), debug=True)
""", expect="was never awaited")
