"""Names, files and lines of native functions against addr2line and nm, on programs compiled here and on libraries."""
import glob
import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD
from waiting import PATIENCE

TOOL = BUILD / "tests" / "tool" / "symbols"

C_SOURCE = r"""
#include <stdlib.h>
static inline __attribute__((always_inline)) int inner(int x)
{
    return x * 3 + rand();
}
static inline __attribute__((always_inline)) int middle(int x)
{
    if (x > 2)
        x += inner(x);
    return x;
}
__attribute__((noinline)) int outer(int x)
{
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += middle(i) + inner(sum);
    return sum;
}
static __attribute__((noinline)) int local(int x)
{
    return outer(x) + 1;
}
int main(int argc, char **argv)
{
    (void)argv;
    return local(argc) > 5;
}
"""
CPP_SOURCE = r"""
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace shapes {
template <typename T> struct Box {
    T value;
    __attribute__((noinline)) T twice() const { return value + value; }
};
namespace {
struct Hidden {
    __attribute__((noinline)) int get(int x) { return x * number; }
    int number = 3;
};
}
__attribute__((noinline)) int total(const std::vector<int> &values)
{
    Hidden hidden;
    int sum = 0;
    for (int value : values)
        sum += hidden.get(value);
    return sum;
}
}
int main(int argc, char **argv)
{
    std::vector<int> values;
    std::map<std::string, int> names;
    for (int i = 0; i < argc; i++) {
        values.push_back(i);
        names[argv[i]] = i;
    }
    std::sort(values.begin(), values.end(), [](int a, int b) { return a > b; });
    shapes::Box<double> box{2.5};
    shapes::Box<std::string> text{"x"};
    return shapes::total(values) + (int)box.twice() + (int)text.twice().size() + (int)names.size();
}
"""


def build_id(path):
    out = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, timeout=PATIENCE).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", out)
    return found.group(1) if found else ""


def tare_symbols(path, addresses, mode="own", identity=None, env=None):
    """Address -> [(name, file, line)], innermost first."""
    done = subprocess.run([TOOL, mode, path, build_id(path) if identity is None else identity],
                          input="\n".join("%x" % address for address in addresses), capture_output=True, text=True,
                          timeout=PATIENCE, env={**os.environ, **(env or {})})
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        address, name, file, number = line.split("\t")
        found.setdefault(int(address, 16), []).append((name, os.path.normpath(file) if file else "", int(number)))
    return found


def addr2line(path, addresses, tool="addr2line"):
    out = subprocess.run([tool, "-a", "-f", "-i", "-C", "-e", path], capture_output=True, text=True,
                         input="\n".join("%x" % address for address in addresses), timeout=PATIENCE).stdout
    found, lines = {}, out.splitlines()
    at = 0
    while at < len(lines):
        if re.fullmatch("0x[0-9a-f]+", lines[at]):
            frames = found.setdefault(int(lines[at], 16), [])
            at += 1
            continue
        file, _, number = re.sub(r" \(discriminator \d+\)$", "", lines[at + 1]).rpartition(":")
        frames.append((lines[at], os.path.normpath(file), int(number) if number.isdigit() else 0))
        at += 2
    return found


def text_addresses(path, step=1):
    out = subprocess.run(["objdump", "-d", "-j", ".text", "--no-show-raw-insn", path], capture_output=True, text=True,
                         timeout=PATIENCE).stdout
    return [int(found, 16) for found in re.findall(r"^ +([0-9a-f]+):\t", out, re.M)][::step]


def compiled(folder, source, *options):
    compiler = options[0]
    path = folder / ("program.cpp" if "++" in compiler else "program.c")
    path.write_text(source)
    out = folder / "program"
    subprocess.run([*options, "-o", out, path, "-Wl,--build-id"], check=True, timeout=PATIENCE)
    return out


PROGRAMS = {
    "c": (C_SOURCE, "gcc", "-O2", "-g"),
    "c of DWARF 4": (C_SOURCE, "gcc", "-O2", "-g", "-gdwarf-4"),
    "c by clang": (C_SOURCE, "clang", "-O2", "-g"),  # without .debug_aranges
    "c++": (CPP_SOURCE, "g++", "-O2", "-g"),
    "c++ by clang": (CPP_SOURCE, "clang++", "-O2", "-g"),
}


def in_functions(path, addresses):
    """Those in functions, not in the padding between them, where sources differ."""
    out = subprocess.run(["nm", "-S", path], capture_output=True, text=True, timeout=PATIENCE).stdout
    ranges = [(int(start, 16), int(start, 16) + int(size, 16))
              for start, size in re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwWuV] ", out, re.M)]
    return [address for address in addresses if any(start <= address < end for start, end in ranges)]


def written(frames):
    """Without differences between demanglers: spaces, names of lambdas, suffixes of parts and copies of functions."""
    def plain(name):
        name = name.replace(" ", "").removesuffix(".cold")
        name = re.sub(r"\{lambda(\([^{}]*?\))#\d+\}", r"'lambda'\1", name)
        return re.sub(r"\(\.[a-z0-9.]*\)$", "", name)
    return [(plain(name), file, line) for name, file, line in frames]


def same(ours, theirs):
    """All frames; some names are too much for LLVM's demangler."""
    return len(ours) == len(theirs) and all(one == other or (one[1:] == other[1:] and other[0].startswith("_Z"))
                                            for one, other in zip(ours, theirs))


@pytest.mark.parametrize("tool", ["llvm-addr2line", "addr2line"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_names_and_lines(tmp_path, name, tool):
    source, *command = PROGRAMS[name]
    if tool == "addr2line" and "c++" in name:
        pytest.skip("binutils takes the wrong file for some functions of headers")
    if not shutil.which(command[0]) or not shutil.which(tool):
        pytest.skip("no %s, or no %s" % (command[0], tool))
    program = compiled(tmp_path, source, *command)
    addresses = in_functions(program, text_addresses(program))
    ours, theirs = tare_symbols(program, addresses), addr2line(program, addresses, tool)
    # Those of the C runtime have no debug information; both know their names only.
    with_lines = [address for address in addresses if theirs[address][0][2]]
    assert len(with_lines) > 30
    assert max(len(ours[address]) for address in with_lines) > 1  # inlined
    if tool == "addr2line":
        # That of binutils gives some inlined functions the name of their caller, and leaves some out.
        wrong = [address for address in with_lines if ours[address][0][1:] != theirs[address][0][1:]]
    else:
        wrong = [address for address in with_lines if not same(written(ours[address]), written(theirs[address]))]
    assert not wrong, "%d of %d: %x %r is not %r" % (len(wrong), len(with_lines), wrong[0], ours[wrong[0]],
                                                      theirs[wrong[0]])


def functions_of(path, *options):
    """Address -> names, by nm."""
    out = subprocess.run(["nm", *options, path], capture_output=True, text=True, timeout=PATIENCE).stdout
    found = {}
    for address, name in re.findall(r"^([0-9a-f]+) [tTwWi] (\S+)$", out, re.M):
        found.setdefault(int(address, 16), set()).add(name.split("@")[0])
    return found


@pytest.mark.parametrize("mode", ["own", "foreign"])
def test_without_debug_information(tmp_path, mode):
    program = compiled(tmp_path, C_SOURCE, "gcc", "-O2")
    names = {address: found for address, found in functions_of(program).items() if "data_start" not in found}
    ours = tare_symbols(program, names, mode)
    assert {ours[address][0][0] for address in names} >= {"main", "outer", "local", "_start"}
    wrong = [(hex(address), ours[address], found) for address, found in names.items()
             if ours[address][0][0] not in found or ours[address][0][2]]
    assert not wrong, wrong


def test_stripped_library(tmp_path):
    """Of a stripped library exported functions have names, and others do not get those of their neighbours."""
    source = tmp_path / "part.c"
    source.write_text("__attribute__((noinline)) static int hidden(int x) { return x * x + 7; }\n"
                      "int shown(int x) { return hidden(x) + hidden(x + 1); }\n")
    library = tmp_path / "part.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-Wl,--build-id", "-o", library, source], check=True)
    before = {name: address for address, names in functions_of(library).items() for name in names}
    subprocess.run(["strip", library], check=True)
    ours = tare_symbols(library, [before["shown"], before["hidden"]])
    assert ours[before["shown"]][0][0] == "shown"
    assert ours[before["hidden"]][0][0] == ""


def test_names_of_libc():
    path = sorted(glob.glob("/usr/lib/*/libc.so.6") + glob.glob("/lib/*/libc.so.6"))[0]
    names = functions_of(path, "-D", "--defined-only")
    identity = build_id(path)
    more = functions_of("/usr/lib/debug/.build-id/%s/%s.debug" % (identity[:2], identity[2:])) # where it is installed
    names = {address: found | more.get(address, set()) for address, found in names.items()}
    assert len(names) > 1000
    ours = tare_symbols(path, names, "foreign")
    wrong = [(hex(address), ours[address], names[address]) for address in names
             if ours[address][0][0] not in names[address]]
    assert not wrong, "%d of %d: %r" % (len(wrong), len(names), wrong[:3])
    public = [address for address, found in names.items() if "qsort" in found]
    assert [ours[address][0][0] for address in public] == ["qsort"]


def test_without_libdw(tmp_path):
    program = compiled(tmp_path, CPP_SOURCE, "g++", "-O2", "-g")
    (total,) = [address for address, names in functions_of(program).items() if any("6shapes5total" in name
                                                                                    for name in names)]
    env = {"TARE_LIBDW": "/nonexistent/libdw.so.1"}
    assert tare_symbols(program, [total], env=env)[total] == [
        ("shapes::total(std::vector<int, std::allocator<int> > const&)", "", 0)]
    with_lines = tare_symbols(program, [total])[total]
    assert with_lines[-1][0].startswith("shapes::total(") and with_lines[-1][2] > 0


def test_names_of_rust(tmp_path):
    """By assembler names as rustc makes them, since there may be no rustc."""
    legacy = "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE"
    escaped = "_ZN50_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$Clone$GT$5clone17hfedcba9876543210E"
    current = "_RNvC6_123foo3bar"
    source = tmp_path / "names.s"
    source.write_text(".text\n" + "".join('.globl "%s"\n.type "%s",@function\n"%s": ret\n.size "%s",1\n'
                                          % (name, name, name, name) for name in (legacy, escaped, current)))
    library = tmp_path / "names.so"
    subprocess.run(["gcc", "-shared", "-Wl,--build-id", "-o", library, source], check=True)
    addresses = {next(iter(names)): address for address, names in functions_of(library).items()
                 if any(name in (legacy, escaped, current) for name in names)}
    ours = tare_symbols(library, addresses.values())
    assert ours[addresses[legacy]][0][0] == "core::fmt::Formatter::write_str"
    assert ours[addresses[escaped]][0][0] == "<alloc::vec::Vec<T> as Clone>::clone"
    assert ours[addresses[current]][0][0] == current


def refused(path, mode, identity):
    done = subprocess.run([TOOL, mode, path, identity, "1000"], capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and not done.stdout
    return done.stderr


def test_another_file_is_refused(tmp_path):
    program = compiled(tmp_path, C_SOURCE, "gcc", "-O2", "-g")
    assert "was replaced" in refused(program, "own", "00" * 20)
    assert "was replaced" in refused(program, "own", "")
    bare = tmp_path / "bare"
    subprocess.run(["gcc", "-O2", "-Wl,--build-id=none", "-o", bare, tmp_path / "program.c"], check=True)
    assert "no build ID" in refused(bare, "foreign", "")
    assert "was replaced" in refused(bare, "own", "00" * 20)
    assert tare_symbols(bare, [functions_address(bare, "outer")])[functions_address(bare, "outer")][0][0] == "outer"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "a pipe" in refused(pipe, "own", "00" * 20)
    assert "a device" in refused("/dev/zero", "own", "00" * 20)
    assert "no such file" in refused(tmp_path / "none", "own", "00" * 20).lower()
    assert "not an ELF file" in refused(tmp_path / "program.c", "own", "00" * 20)


def functions_address(path, name):
    return next(address for address, names in functions_of(path).items() if name in names)


def test_no_debug_information_of_other_users(tmp_path):
    """A file that another user can change, or owns: names from the symbol table, but libdw does not see it."""
    program = compiled(tmp_path, C_SOURCE, "gcc", "-O2", "-g")
    address = functions_address(program, "outer")
    assert tare_symbols(program, [address])[address][-1][2] > 0
    program.chmod(0o777)
    assert tare_symbols(program, [address])[address] == [("outer", "", 0)]
    program.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(program, 12345, 12345)
        assert tare_symbols(program, [address])[address] == [("outer", "", 0)]


def test_no_network(tmp_path):
    """A stripped program with a server for debug information in the environment: no socket is opened."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    program = compiled(tmp_path, C_SOURCE, "gcc", "-O2", "-g")
    subprocess.run(["strip", program], check=True)
    log = tmp_path / "log"
    subprocess.run(["strace", "-f", "-e", "trace=socket,connect", "-o", log, TOOL, "own", program, build_id(program),
                    "1100"], check=True, capture_output=True, timeout=PATIENCE,
                   env={**os.environ, "DEBUGINFOD_URLS": "http://127.0.0.1:9/",
                        "ASAN_OPTIONS": "detect_leaks=0"})  # the leak check does not work under strace
    assert "socket(" not in log.read_text()
