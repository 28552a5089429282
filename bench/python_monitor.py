# python_monitor: what PerformanceMonitor costs a block, against an empty context manager in C and against psutil.
# One process. Must not know how blocks are measured.
"""usage: python bench/python_monitor.py   (with the package installed for this interpreter)"""
import tempfile

import peers
import rows
from figures import Figure
from timing import around_nothing, around_work, in_turn, seconds

ROUNDS, NUMBER = (5, 10000) if rows.QUICK else (15, 50000)


class Rows:
    """The figures, every round's peers measured beside each other."""

    def __init__(self):
        self.floor = Figure("with Empty(\"name\"), an empty context manager in C", "ns")
        self.off = Figure("track, disabled, against it", "x", 1.0)
        self.bare = Figure("track(aggregate=True) without memory readings", "µs", 1.0)
        self.full = Figure("track(aggregate=True) with memory readings", "µs", 5.0)
        self.shared = Figure("  around nothing: one reading serves begin and end", "µs")
        self.listed = Figure("track with memory readings, listed one by one", "µs")
        self.same = Figure("block with what a tracker by psutil reads", "µs")
        self.batch = Figure("on_batch_start and on_batch_end", "µs")
        self.tracker = Figure("a tracker by psutil, a Process each reading, against that block", "x", 30.0,
                              at_least=True)
        self.kept = Figure("  that keeps its Process", "x")
        self.against_track = Figure("  a Process each reading, against track, which has the peak too", "x")
        self.empty = Figure("  the same around nothing", "x")

    def round(self, names):
        if names["Empty"]:
            empty = around_nothing('Empty("x")', names, NUMBER)
            self.floor.add(empty * 1e9)
            self.off.add(around_nothing('off.track("x")', names, NUMBER) / empty)
        self.bare.add(around_nothing('bare.track("x", aggregate=True)', names, NUMBER) * 1e6)
        self.full.add(around_work('full.track("x", aggregate=True)', names, NUMBER // 5) * 1e6)
        self.shared.add(around_nothing('full.track("x", aggregate=True)', names, NUMBER) * 1e6)
        self.listed.add(around_work('full.track("y")', names, NUMBER // 5) * 1e6)
        self.batch.add(seconds("epoch.on_batch_start(9); epoch.on_batch_end(9)", names, NUMBER) * 1e6)
        if names["by_psutil"]:
            self.peers(names)
        else:
            self.same.add(around_work('same.block("x", True)', names, NUMBER // 5) * 1e6)

    def peers(self, names):
        blocks = [('same.block("x", True)', NUMBER // 5), ('by_psutil("x")', NUMBER // 50),
                  ('by_kept("x")', NUMBER // 50)]
        same, each, kept = (1e6 * one for one in in_turn(blocks, names))
        self.same.add(same)
        self.tracker.add(each / same, f"{each:.1f} to {same:.2f} µs in the last round")
        self.kept.add(kept / same)
        self.against_track.add(each / self.full.values[-1])
        self.empty.add(around_nothing('by_psutil("x")', names, NUMBER // 50) * 1e6 / self.shared.values[-1])

    def all(self):
        for one in (self.floor, self.off):
            one.reason = "no C compiler, or no headers of this Python"
        for one in (self.tracker, self.kept, self.against_track, self.empty):
            one.reason = "psutil is not installed"
        return list(vars(self).values())


def main():
    import tare
    measured = Rows()
    with tempfile.TemporaryDirectory() as folder:
        names = {"Empty": peers.empty_context(folder), "off": tare.PerformanceMonitor(enabled=False),
                 "bare": tare.PerformanceMonitor(memory=False), "full": tare.PerformanceMonitor(),
                 "same": tare.Recorder(cpu=False, peak=False), "by_psutil": peers.psutil_tracker(),
                 "by_kept": peers.psutil_tracker(keep_process=True),
                 "epoch": tare.EpochPerformanceMonitor(verbose_batches=0)}
        names["epoch"].on_epoch_start()
        for _ in range(ROUNDS):
            measured.round(names)
    rows.show(measured.all())


if __name__ == "__main__":
    main()
