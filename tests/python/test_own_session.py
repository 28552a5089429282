"""Sessions that a program starts itself: the same file as `tare run` writes, with program and machine looked at."""
import tare

PROGRAM = """
    import time, tare
    tare.start("own.tare")
    profiler = tare.PerformanceProfiler()
    with profiler.profile("hoard"):
        held = bytearray(96 << 20)
        for i in range(0, len(held), 4096):
            held[i] = 1
    with tare.span("spin"):
        begun = time.process_time()
        while time.process_time() - begun < 0.5:
            sum(range(1000))
    tare.stop()
    print(time.process_time())
"""


def test_a_session_of_its_own_has_samples_of_the_machine(bench):
    cpu = float(bench.python(PROGRAM, env={"TARE_HELPER": bench.command}).out)
    report = tare.report(bench.folder / "own.tare")
    assert {"hoard", "spin"} <= {row.name for row in report.spans}
    assert 0.4 < report.usage.cpu_seconds < cpu + 0.2
    assert report.usage.rss_peak_bytes > 96 << 20
    assert {"memory.rss", "cpu.user", "memory.available"} <= {row.metric for row in report.metrics}
    assert "Resource usage" in str(report)
    assert "memory.rss" in (bench.folder / report.html(bench.folder / "own.html")).read_text()


def test_sampling_can_be_left_out(bench):
    bench.python(PROGRAM, env={"TARE_HELPER": bench.command, "TARE_NO_SAMPLING": "1"})
    report = tare.report(bench.folder / "own.tare")
    assert {"hoard", "spin"} <= {row.name for row in report.spans} and report.metrics == []
    assert isinstance(report.usage.cpu_seconds, tare.Missing)


def test_memory_that_grows_is_seen_to_grow(bench):
    bench.python("""
        import time, tare
        tare.start("own.tare")
        kept = []
        begun = time.process_time()
        while time.process_time() - begun < 1.5:
            with tare.span("step"):
                kept.append(bytearray(1 << 20))
                sum(range(100000))
        tare.stop()
    """, env={"TARE_HELPER": bench.command, "TARE_INTERVAL": "20ms"})
    report = tare.report(bench.folder / "own.tare")
    of_memory = [row for row in report.metrics if row.metric == "memory.rss" and row.samples and row.samples > 10]
    assert of_memory and of_memory[0].last > of_memory[0].first


def test_what_was_before_the_session_is_not_counted(bench):
    bench.python("""
        import time
        while time.process_time() < 1.5:
            pass
        import tare
        tare.start("own.tare")
        with tare.span("little"):
            pass
        tare.stop()
    """, env={"TARE_HELPER": bench.command})
    report = tare.report(bench.folder / "own.tare")
    assert report.usage.cpu_seconds < 1 and report.run.attached > 0


WRONG = """
    import tare
    try:
        tare.start("own.tare")
    except Exception as error:
        print(type(error).__name__, error)
    print(tare.recording())
"""


def test_a_session_that_cannot_start_says_why(bench):
    out = bench.python(WRONG, env={"TARE_HELPER": bench.command, "TARE_INTERVL": "1s"}).out
    assert out == ("ValueError tare.start: unknown setting TARE_INTERVL; did you mean TARE_INTERVAL?\nFalse\n")
    out = bench.python(WRONG, env={"TARE_HELPER": bench.command, "TARE_INTERVAL": "often"}).out
    assert "ValueError tare.start: TARE_INTERVAL: --interval: 'often' is not a duration" in out
    (bench.folder / "tare.toml").write_text("colour = 3\n")
    assert "tare.toml:1: unknown setting 'colour'" in bench.python(WRONG, env={"TARE_HELPER": bench.command}).out
    (bench.folder / "tare.toml").unlink()
    out = bench.python(WRONG.replace("own.tare", "none/own.tare"), env={"TARE_HELPER": bench.command}).out
    assert "RuntimeError tare.start: " in out and "none/own.tare" in out
    assert not (bench.folder / "own.tare").exists()
