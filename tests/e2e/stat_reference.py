"""Draws samples, asks the program that is named what it makes of them, and SciPy the same: one line of JSON.

Run by test_stat.py in an environment that has SciPy."""
import json
import subprocess
import sys

import numpy
from scipy import stats

program = sys.argv[1]
draw = numpy.random.default_rng(20260101)
questions, compares = [], []


def ask(name, compare, before=(), samples=()):
    words = [name, *(repr(float(number)) for number in before)]
    for sample in samples:
        words += [str(len(sample)), *(repr(float(value)) for value in sample)]
    questions.append(" ".join(words))
    compares.append(compare)


def close(name, given, wanted, relative, absolute=0.0):
    good = bool(numpy.allclose(given, wanted, rtol=relative, atol=absolute, equal_nan=True))
    return [name, good, [float(x) for x in numpy.atleast_1d(given)], [float(x) for x in numpy.atleast_1d(wanted)]]


def some(n, kind):
    """Samples as measurements are: smooth, skewed, with ties, far from zero."""
    return {"normal": lambda: draw.normal(100, 5, n), "skewed": lambda: draw.lognormal(3, 0.5, n),
            "ties": lambda: draw.integers(10, 16, n).astype(float),
            "far": lambda: 1e9 + draw.exponential(1000, n)}[kind]()


def mann_whitney():
    for n, m in [(1, 1), (2, 3), (4, 4), (5, 9), (8, 30), (20, 20), (50, 50), (60, 60), (200, 150)]:
        for kind in ("normal", "skewed", "ties"):
            base, head = some(n, kind), some(m, kind) * (1.0 if kind == "ties" else 1.05)
            tied = len(set(base) | set(head)) < n + m
            method = "exact" if not tied and n * m <= 2500 else "asymptotic"
            wanted = stats.mannwhitneyu(head, base, method=method)

            def compare(given, wanted=wanted, method=method, n=n, m=m):
                expected = [wanted.statistic, wanted.pvalue, wanted.statistic / (n * m), method == "exact"]
                if numpy.isnan(wanted.pvalue):  # nothing but ties: SciPy divides by zero
                    expected[1] = 1
                return close(f"mann_whitney {n} {m}", given, expected, 1e-9)
            ask("mann_whitney", compare, samples=(base, head))


def effects():
    for n, m in [(3, 3), (6, 8), (20, 20), (40, 60), (100, 90)]:
        for kind in ("normal", "skewed", "far"):
            base, head = some(n, kind), some(m, kind)
            middle = numpy.median(numpy.subtract.outer(head, base))

            def shift(given, middle=middle, base=base, head=head):
                value, low, high = given
                good = abs(value - middle) <= 1e-9 * abs(middle) + 1e-12
                if not numpy.isnan(low):  # moving head by a value inside of the interval leaves nothing significant
                    inside = [low + (high - low) * part for part in (0.02, 0.5, 0.98)]
                    good &= all(stats.mannwhitneyu(head - by, base).pvalue > 0.045 for by in inside)
                    edge = (high - low) * 0.6
                    good &= all(stats.mannwhitneyu(head - by, base).pvalue < 0.05 for by in (low - edge, high + edge))
                return [f"shift {len(base)} {len(head)}", bool(good), given, [float(middle)]]
            ask("shift", shift, before=(0.95,), samples=(base, head))


def pairs():
    """Wilcoxon's signed ranks of the logarithms of ratios; the interval inverts the test."""
    for n in (5, 6, 8, 20, 45, 60, 100):
        base = some(n, "skewed")
        head = base * draw.normal(1.02, 0.05, n)
        logs = numpy.log(head / base)
        p = stats.wilcoxon(logs, method="exact" if n <= 60 else "approx", correction=n > 60).pvalue
        walsh = numpy.sort([(logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n)])
        if n > 60:
            all_sums = n * (n + 1) / 2
            rank = int(max(0, numpy.floor(all_sums / 2 + stats.norm.ppf(0.025)
                                          * numpy.sqrt(all_sums * (2 * n + 1) / 12))))
        else:
            chances = numpy.ones(1)
            for one in range(1, n + 1):
                chances = (numpy.append(chances, numpy.zeros(one)) + numpy.append(numpy.zeros(one), chances)) / 2
            rank = int(numpy.searchsorted(numpy.cumsum(chances), 0.025, side="right"))
        bounds = [numpy.exp(walsh[rank - 1]), numpy.exp(walsh[len(walsh) - rank])] if rank else [numpy.nan] * 2
        wanted = [p, numpy.exp(numpy.median(walsh)), *bounds]
        ask("paired_test", lambda given, wanted=wanted, n=n: close(f"paired_test {n}", given, wanted, 1e-10),
            before=(0.95,), samples=(base, head))


def distributions():
    for z in (-8.0, -3.0, -1.0, -0.1, 0.0, 0.3, 1.959963984540054, 5.0, 20.0):
        # A tail next to 1 has lost the digits of its z.
        digits = 1e-12 if z > -3 else 1e-2
        wanted = [stats.norm.sf(z), -z]
        ask("normal", lambda given, wanted=wanted, digits=digits: close("normal", given, wanted, digits, 1e-12),
            before=(z,))
    for t in (0.0, 0.1, 1.0, 2.5, -7.0, 40.0):
        for degrees in (1.0, 2.5, 10.0, 98.7, 4000.0):
            wanted = 2 * stats.t.sf(abs(t), degrees)
            ask("student", lambda given, wanted=wanted, t=t: close(f"student {t}", given, [wanted], 1e-9),
                before=(t, degrees))


def outliers():
    for n in (5, 30, 200):
        values = some(n, "skewed")
        values[0] *= 20
        low, high = numpy.quantile(values, [0.25, 0.75])
        off = numpy.maximum(low - values, values - high) / (high - low)
        ask("tukey", lambda given, off=off: close("tukey", given, (off > 1.5) * 1.0 + (off > 3), 0),
            samples=(values,))


for part in (mann_whitney, effects, pairs, distributions, outliers):
    part()
done = subprocess.run([program], input="\n".join(questions) + "\n", capture_output=True, text=True, check=True)
answers = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
assert len(answers) == len(questions), (len(answers), len(questions))
print(json.dumps([compare(answer) for compare, answer in zip(compares, answers)]))
