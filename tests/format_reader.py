"""Sampled stacks of a .tare file, read without Tare: written from docs/FORMAT.md alone. Damage raises an exception."""
import collections
import ctypes
import struct

Function = collections.namedtuple("Function", "kind first_line name file")
Thread = collections.namedtuple("Thread", "pid tid start main name")
Stack = collections.namedtuple("Stack", "caller function line")
Sample = collections.namedtuple("Sample", "ticks thread stack state flags wall cpu queue")
STACKS, STACK_SAMPLES = 13, 14
MODULO = 1 << 64


class Damage(Exception):
    pass


def must(holds, what):
    if not holds:
        raise Damage(what)


def _table():
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        yield value


_TABLE = list(_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def unpack(data, raw):
    """One Zstandard frame, by the system's library."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(raw)
    must(zstd.ZSTD_decompress(out, raw, data, len(data)) == raw, "a column does not have its length")
    return out.raw


class Bytes:
    """Bytes that are consumed from the start."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        must(self.at + n <= len(self.data), "too short")
        self.at += n
        return self.data[self.at - n:self.at]

    def varint(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                must(value < MODULO, "more than 64 bits")
                return value
        raise Damage("a varint of more than ten bytes")

    def zigzag(self):
        value = self.varint()
        return -(value + 1 >> 1) if value & 1 else value >> 1

    def end(self):
        must(self.at == len(self.data), "a column has more values than records")


def columns(payload, n):
    sizes = []
    for _ in range(n):
        raw = payload.varint()
        word = payload.varint() if raw else 0
        must(word & 1 or word >> 1 == raw, "stored length")
        sizes.append((raw, word >> 1, word & 1))
    must(sum(raw for raw, _, _ in sizes) <= 8 << 20, "more than 8 MiB")
    return [Bytes(unpack(payload.take(stored), raw) if packed else payload.take(raw)) for raw, stored, packed in sizes]


def signed(value):
    """As a signed number of 64 bits."""
    value %= MODULO
    return value - MODULO if value >> 63 else value


class Stacks:
    """The tables and samples of a whole file: dictionaries by number, and a list."""

    def __init__(self, data):
        self.functions, self.stacks, self.threads, self.samples = {}, {}, {}, []
        self.samples_of_blocks = []
        must(data[:8] == b"\x89TARE\r\n\x1a", "magic")
        major, self.minor, crc = struct.unpack_from("<HHI", data, 8)
        must(major == 1 and crc == crc32c(data[:12]), "file header")
        at = 16
        while at < len(data):
            head = data[at:at + 64]
            (magic, kind, flags, size, _, count, _, first, last, _, _, payload_crc, _, crc) = \
                struct.unpack("<IHHIIIIQQQIIII", head)
            must(magic == 0x4B4C4254 and crc == crc32c(head[:60]) and flags == 0, "block header")
            payload = data[at + 64:at + 64 + size]
            must(crc32c(payload) == payload_crc, "payload")
            if kind == STACKS:
                self.tables(Bytes(payload), count)
            elif kind == STACK_SAMPLES:
                self.samples_of_blocks.append(self.block(Bytes(payload), count, first, last))
                self.samples += self.samples_of_blocks[-1]
            at += 64 + size

    def tables(self, payload, count):
        ranges = [range(first, first + n) for first, n in [(payload.varint(), payload.varint()) for _ in range(3)]]
        must(sum(map(len, ranges)) == count, "count")
        for numbers, limit in zip(ranges, (1 << 18, 1 << 20, 1 << 16)):
            must(not numbers or 1 <= numbers[0] and numbers[-1] <= limit, "number of a row")
        (kinds, lines, names_bytes, files_bytes, callers, functions, at_lines, pids, tids, starts, mains, threads_bytes,
         names, files, threads) = all_columns = columns(payload, 15)
        line, file = 0, None
        for number in ranges[0]:
            line += lines.zigzag()
            code = files_bytes.varint()
            must(code != 1 or file is not None, "no previous file")
            file = b"" if code == 0 else file if code == 1 else files.take(code - 1)
            must(number not in self.functions, "a function twice")
            self.functions[number] = Function(kinds.varint(), line, names.take(names_bytes.varint()), file)
        function = 0
        for number in ranges[1]:
            back = callers.varint()
            function += functions.zigzag()
            must(back < number, "a caller that is not a smaller number")
            must(number not in self.stacks and (function == 0 or function in self.functions), "function of a stack")
            self.stacks[number] = Stack(number - back if back else 0, function, at_lines.varint())
        pid = start = 0
        for number in ranges[2]:
            pid = signed(pid + pids.zigzag())
            start = (start + starts.zigzag()) % MODULO
            must(number not in self.threads, "a thread twice")
            self.threads[number] = Thread(pid, signed(pid + tids.zigzag()), start, mains.varint() & 1,
                                          threads.take(threads_bytes.varint()))
        for column in all_columns:
            column.end()

    def block(self, payload, count, first, last):
        must(1 <= count <= 8192, "count")
        rate = payload.varint()
        must(rate < 1 << 40, "rate")
        parts, times, threads, stacks, states, flags, walls, cpus, queues = all_columns = columns(payload, 9)
        ticks, thread, before, out = first, 0, {}, []
        for _ in range(count):
            part = parts.varint()
            must(part < 32, "parts")
            ticks += times.varint()
            thread += threads.zigzag()
            must(thread in self.threads, "thread")
            old = before.get(thread)
            stack, state, flag = (old.stack, old.state, old.flags) if old else (0, 0, 0)
            if part & 1:
                stack += stacks.zigzag()
                must(stack == 0 or stack in self.stacks, "stack")
            if part & 2:
                state, flag = states.varint(), flags.varint()
            wall = (ticks - old.ticks) * rate >> 32 if old else 0
            if part & 4:
                wall += walls.zigzag()
            queue = queues.varint() if part & 16 else 0
            cpu = wall - queue + cpus.zigzag() if part & 8 else 0
            before[thread] = Sample(ticks, thread, stack, state, flag, wall % MODULO, cpu % MODULO, queue)
            out.append(before[thread])
        must(out[0].ticks == first and ticks == last, "time range")
        for column in all_columns:
            column.end()
        return out

    def frames(self, stack):
        """From the outermost in: (function, line)."""
        out = []
        while stack:
            row = self.stacks[stack]
            out.append((self.functions.get(row.function), row.line))
            stack = row.caller
        return out[::-1]
