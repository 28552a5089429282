"""Statistics from their definitions, by enumeration and in whole numbers: what comparisons, checks and trends are held
against. Nothing here comes from Tare. Where there is an environment with SciPy (TARE_SCIPY names its interpreter, else
build/scipy/bin/python), the p values are SciPy's as well, and both have to agree.
"""
import functools
import itertools
import json
import math
import os
import subprocess

import numpy

from truth import ROOT

SCIPY = os.environ.get("TARE_SCIPY", str(ROOT / "build" / "scipy" / "bin" / "python"))
SCRIPT = """
import json, sys
from scipy import stats
def answer(name, words):
    if name == "mannwhitneyu":
        base, head, method = words
        return stats.mannwhitneyu(head, base, alternative="two-sided", method=method).pvalue
    if name == "wilcoxon":
        return stats.wilcoxon(words[0], method="exact").pvalue
    if name == "benjamini_hochberg":
        return list(stats.false_discovery_control(words[0], method="bh"))
    if name == "student":
        return 2 * stats.t.sf(abs(words[0]), words[1])
print(json.dumps([answer(*call) for call in json.load(sys.stdin)]))
"""


def by_scipy(calls):
    """Answers of SciPy to [[name, [argument, …]], …]; None where there is no SciPy."""
    try:
        done = subprocess.run([SCIPY, "-c", SCRIPT], input=json.dumps(calls), capture_output=True, text=True)
    except OSError:
        return None
    if "No module named 'scipy'" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


# ---- two samples ---------------------------------------------------------------------------------------------
@functools.lru_cache(None)
def orders(n, m, u):
    """In how many orders of n and m values u pairs have the second one above (Mann and Whitney 1947)."""
    if u < 0 or n < 0 or m < 0:
        return 0
    if n == 0 or m == 0:
        return int(u == 0)
    return orders(n - 1, m, u - m) + orders(n, m - 1, u)


def p_of_u(n, m, u):
    less = sum(orders(n, m, k) for k in range(int(min(u, n * m - u)) + 1))
    return min(1, 2 * less / math.comb(n + m, n))


def pairs_above(base, head):
    return sum((h > b) + (h == b) / 2 for b in base for h in head)


def mann_whitney(base, head):
    """Exact without ties, and by all orders of the values where these are few; else the normal approximation."""
    n, m, u = len(base), len(head), pairs_above(base, head)
    every = [*base, *head]
    if len(set(every)) == n + m and n * m <= 2500:
        p = p_of_u(n, m, u)
        if math.comb(n + m, m) <= 4000:
            mean = n * m / 2
            far = [abs(pairs_above([every[i] for i in range(n + m) if i not in chosen],
                                   [every[i] for i in chosen]) - mean) >= abs(u - mean)
                   for chosen in itertools.combinations(range(n + m), m)]
            assert math.isclose(p, sum(far) / len(far)), "all orders, counted, and by the recursion"
        return p
    ties = sum(every.count(value) ** 3 - every.count(value) for value in set(every))
    spread = math.sqrt(n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1))))
    return min(1, math.erfc((abs(u - n * m / 2) - 0.5) / spread / math.sqrt(2))) if spread else 1


def cliffs_delta(base, head):
    return (sum(h > b for b in base for h in head) - sum(h < b for b in base for h in head)) / (len(base) * len(head))


def ratio_interval(base, head, level=0.05):
    """Ratios by which base may be multiplied so that the exact test still has p above the level, as changes: the test
    is turned round, ratio by ratio. None: every ratio."""
    logs = [math.log(h / b) for b in base for h in head]
    edges = sorted(set(logs))
    kept = []
    for left, right in zip([-math.inf, *edges], [*edges, math.inf]):
        shift = left + 1 if right == math.inf else right - 1 if left == -math.inf else (left + right) / 2
        if p_of_u(len(base), len(head), sum(one > shift for one in logs)) > level:
            kept.append((left, right))
    low, high = kept[0][0], kept[-1][1]
    return None if math.isinf(low) or math.isinf(high) else (math.expm1(low), math.expm1(high))


def benjamini_hochberg(values):
    """For each p: the least over all p that are no smaller of p times how many there are, over how many are as
    small."""
    return [min(min(1, other * len(values) / sum(p <= other for p in values)) for other in values if other >= one)
            for one in values]


# ---- pairs ---------------------------------------------------------------------------------------------------
def middle_ranks(values):
    return [sum(other < one for other in values) + (sum(other == one for other in values) + 1) / 2 for one in values]


def wilcoxon(base, head):
    """Signed ranks of logarithms of ratios, equal pairs left out: all 2^n signs."""
    logs = [value for value in (math.log(h / b) for b, h in zip(base, head)) if value]
    if not logs:
        return 1.0
    ranks = numpy.array(middle_ranks([abs(value) for value in logs]))
    seen = sum(rank for rank, value in zip(ranks, logs) if value > 0)
    signs = (numpy.arange(2 ** len(logs))[:, None] >> numpy.arange(len(logs))) & 1
    away = abs(signs @ ranks - ranks.sum() / 2)
    return float((away >= abs(seen - ranks.sum() / 2) - 1e-9).mean())


def walsh(base, head):
    logs = [math.log(h / b) for b, h in zip(base, head)]
    return sorted((logs[i] + logs[j]) / 2 for i in range(len(logs)) for j in range(i, len(logs)))


def paired_ratio(base, head):
    return math.expm1(float(numpy.median(walsh(base, head))))


def paired_interval(base, head, level):
    """Ratios that Wilcoxon's test of the pairs does not reject at this level, without ties; None: every ratio."""
    n = len(base)
    signs = (numpy.arange(2 ** n)[:, None] >> numpy.arange(n)) & 1
    sums = signs @ numpy.arange(1, n + 1)
    averages = walsh(base, head)
    k = 0  # so many averages below a ratio, or fewer, are rejected
    while k <= len(averages) // 2 and 2 * (sums <= k).mean() <= level:
        k += 1
    if k == 0:
        return None
    return math.expm1(averages[k - 1]), math.expm1(averages[-k])


# ---- looks: what p has to reach after each -------------------------------------------------------------------
def tail(z):
    """P(Z > z)"""
    return 0.5 * numpy.vectorize(math.erfc)(z / math.sqrt(2))


def levels(most, alpha=0.0125):
    """{n: level}: by round n alpha (n / most)^3 may be spent, from the first n at which n equal signs can reach that.
    The sum of n normal values, as long as no look has ended it, is followed on a grid of points."""
    may = {n: alpha * (n / most) ** 3 for n in range(1, most + 1)}
    looks = [n for n in may if 2 / 2 ** n <= may[n]]
    found, places, weights = {}, numpy.zeros(1), numpy.ones(1)
    last, spent = 0, 0.0
    for n in looks:
        spread = math.sqrt(n - last)
        low, high = 0.0, 12 * math.sqrt(n)
        for _ in range(80):
            limit = (low + high) / 2
            out = float((weights * (tail((limit - places) / spread) + tail((limit + places) / spread))).sum())
            low, high = (limit, high) if out > may[n] - spent else (low, limit)
        found[n] = float(2 * tail(numpy.array([limit / math.sqrt(n)]))[0])
        grid = numpy.linspace(-limit, limit, 1501)
        density = (weights[None, :] * numpy.exp(-((grid[:, None] - places[None, :]) / spread) ** 2 / 2)).sum(1)
        step = numpy.full(len(grid), grid[1] - grid[0])
        step[[0, -1]] /= 2
        places, weights = grid, density / (spread * math.sqrt(2 * math.pi)) * step
        last, spent = n, may[n]
    return found


# ---- a step in a level that wanders --------------------------------------------------------------------------
SHARES = (0, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 100)


def student(t, degrees):
    """P(|T| > |t|): the integral of the density, with t = sqrt(degrees) tan(angle)."""
    angle = math.atan(abs(t) / math.sqrt(degrees))
    # near the end the cosine is small and smooth: Gauss and Legendre's points need few
    at, weight = numpy.polynomial.legendre.leggauss(200)
    half = (math.pi / 2 - angle) / 2
    integral = float((weight * numpy.cos(angle + half * (at + 1)) ** (degrees - 1)).sum()) * half
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    return 2 * scale * integral


def step_p(values, places):
    """p of steps at these places: generalized least squares with the covariance of a random walk plus noise written
    out, Student's p of each step, averaged over shares of the walk by their restricted likelihood, times the values."""
    y = numpy.array(values, dtype=float)
    y = (y - y[0]) / y.std()
    n = len(y)
    at = numpy.arange(n)
    x = numpy.stack([numpy.ones(n), *[(at >= place).astype(float) for place in places]], axis=1)
    degrees = n - x.shape[1]
    likelihoods, all_p, all_t = [], [], []
    for share in SHARES:
        covariance = numpy.eye(n) + share * numpy.minimum(at[:, None], at[None, :])
        inverse = numpy.linalg.inv(covariance)
        information = x.T @ inverse @ x
        size = numpy.linalg.solve(information, x.T @ inverse @ y)
        rest = y - x @ size
        variance = float(rest @ inverse @ rest) / degrees
        t = size / numpy.sqrt(variance * numpy.diag(numpy.linalg.inv(information)))
        all_t.append(list(t[1:]))
        all_p.append([student(one, degrees) for one in t[1:]])
        likelihoods.append(-0.5 * (degrees * math.log(variance) + numpy.linalg.slogdet(covariance)[1] +
                                   numpy.linalg.slogdet(information)[1]))
    weights = numpy.exp(numpy.array(likelihoods) - max(likelihoods))
    theirs = by_scipy([["student", [float(t), degrees]] for row in all_t for t in row])
    if theirs:
        assert numpy.allclose(theirs, [p for row in all_p for p in row], rtol=1e-8, atol=0)
    return [min(1, float(weights @ numpy.array([row[i] for row in all_p]) / weights.sum()) * n)
            for i in range(len(places))]
