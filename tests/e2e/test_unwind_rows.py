"""The unwind rules that Tare compiles from libraries, row by row, against those that readelf prints."""
import collections
import glob
import re
import shutil
import subprocess

import pytest
from conftest import BUILD
from waiting import PATIENCE

TOOL = BUILD / "tests" / "tool" / "unwind"
NAMES = {
    "x86-64": {name: number for number, name in enumerate(
        "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 ra".split() +
        ["xmm%d" % number for number in range(16)])},
    "aarch64": {**{"x%d" % number: number for number in range(31)}, "sp": 31, "ra": 30},
}
Function = collections.namedtuple("Function", "start end")


def library(pattern):
    found = sorted(glob.glob(pattern))
    return found[0] if found else None


# Those that every Debian has, and one of another processor where its cross libraries are installed.
LIBRARIES = {
    "libc": library("/usr/lib/x86_64-linux-gnu/libc.so.6") or library("/lib/*/libc.so.6"),
    "libstdc++": library("/usr/lib/*/libstdc++.so.6"),
    "libm": library("/lib/*/libm.so.6"),
    "loader": library("/lib*/ld-linux-*.so.*"),
    "libcrypto": library("/usr/lib/*/libcrypto.so.[13]*"),
    "libc of aarch64": library("/usr/aarch64-linux-gnu/lib/libc.so.6"),
}


def tare_rows(path):
    """Function -> [(address, CFA, {register: place})]."""
    out = subprocess.run([TOOL, "rows", path], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    functions = {}
    for line in out.splitlines():
        words = line.split()
        if not line.startswith(" "):
            rows = functions.setdefault(Function(int(words[0], 16), int(words[1], 16)), [])
        else:
            places = dict(word.split("=") for word in words[2:])
            rows.append((int(words[0], 16), words[1], {int(reg): place for reg, place in places.items()
                                                       if place != "u"}))
    return {function: shortened(rows, function) for function, rows in functions.items()}


def cfa_of(word, names):
    match = re.fullmatch(r"([a-z0-9]+)([+-]\d+)", word)
    return "%d%s" % (names[match.group(1)], match.group(2)) if match else word


def row_of(columns, words, names):
    places = {names[column]: place for column, place in zip(columns[2:], words[2:]) if column in names}
    # A register that is not described keeps its value, as one that is described as kept.
    return (int(words[0], 16), cfa_of(words[1], names),
            {reg: place for reg, place in places.items() if place not in ("u", "s")})


def shortened(rows, function):
    """Without rows that repeat the one before (readelf shows all expressions as `exp`), that
    another at the same address replaces, or behind the end."""
    last = {}
    for row in rows:
        if row[0] < function.end:
            last[row[0]] = row
    kept = []
    for row in (last[address] for address in sorted(last)):
        if not kept or kept[-1][1:] != row[1:]:
            kept.append(row)
    return kept


def readelf_rows(path, names):
    out = subprocess.run(["readelf", "--wide", "--debug-dump=frames-interp", path], capture_output=True, text=True,
                         timeout=PATIENCE).stdout  # its status is 1 if the separate debug file is missing
    out = out[out.index(".eh_frame section"):].split(".debug_frame section")[0]
    entries, rows, columns = {}, None, None
    shared = {}  # the row of a CIE, for functions without rows of their own
    for line in out.splitlines():
        words = line.split()
        match = re.search(r" FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if " CIE " in line:
            rows = shared.setdefault(words[0], [])
        elif match:
            function = Function(int(match.group(2), 16), int(match.group(3), 16))
            rows = []
            entries[function] = (match.group(1), rows)
        elif words and words[0] == "LOC":
            columns = words
        elif words and re.fullmatch("[0-9a-f]{16}", words[0]) and rows is not None:
            # A register in another one: "r8 (r8)".
            rows.append(row_of(columns, [word for word in words if word[0] != "("], names))
    functions = {}
    for function, (cie, rows) in entries.items():
        common = shared[cie.zfill(8)] if cie.zfill(8) in shared else shared[cie]
        rows = rows or [(function.start, *common[0][1:])]
        functions[function] = shortened(rows, function)
    return functions


@pytest.mark.parametrize("name", LIBRARIES)
def test_rows_equal_readelf(name):
    path = LIBRARIES[name]
    if not path or not shutil.which("readelf"):
        pytest.skip("no %s, or no readelf" % name)
    names = NAMES["aarch64" if "aarch64" in path else "x86-64"]
    ours, theirs = tare_rows(path), readelf_rows(path, names)
    assert len(theirs) > 20
    assert set(ours) == set(theirs)
    different = [function for function in theirs if ours[function] != theirs[function]]
    assert not different, "%d of %d, at %x: %r is not %r" % (
        len(different), len(theirs), different[0].start, ours[different[0]], theirs[different[0]])


def test_a_file_without_tables_is_refused(tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(b"\x7fELF" + bytes(60))
    done = subprocess.run([TOOL, "rows", plain], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and not done.stdout
