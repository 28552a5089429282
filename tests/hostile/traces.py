"""Blocks of a .tare file, read and written without Tare: docs/FORMAT.md."""
import struct

HEADER = struct.Struct("<IHHIIIIQQQIIII")
FILE_HEAD = 16
MAGIC = b"TBLK"
RUN, NAMES, PROCESS, STREAM, CLOCK, EVENTS, COMPLETE, AGGREGATES, END, SERIES, SAMPLES, FACTS, STACKS, STACK_SAMPLES = \
    range(1, 15)
SESSION_ID, FOLDER = 1, 7
_TABLE = []


def crc32c(data):
    if not _TABLE:
        for value in range(256):
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
            _TABLE.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def blocks(data):
    """(offset, kind, payload) of every whole block."""
    at = FILE_HEAD
    while at + HEADER.size <= len(data) and data[at:at + 4] == MAGIC:
        fields = HEADER.unpack_from(data, at)
        end = at + HEADER.size + fields[3]
        if end > len(data):
            return
        yield at, fields[1], data[at + HEADER.size:end]
        at = end


def seal(kind, payload, stream=0, count=1, spans=0):
    head = HEADER.pack(0x4B4C4254, kind, 0, len(payload), stream, count, spans, 0, 0, 0, 0, crc32c(payload), 0, 0)
    return head[:-4] + struct.pack("<I", crc32c(head[:-4])) + payload


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(payload):
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = payload[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(payload):
        tag, length = number(), number()
        yield tag, payload[at:at + length]
        at += length


def with_fields(payload, **changes):
    """The payload with some fields replaced: with_fields(payload, f7=b"/folder")."""
    want = {int(key[1:]): value for key, value in changes.items()}
    out = b""
    for tag, value in fields(payload):
        value = want.pop(tag, value)
        if value is not None:
            out += varint(tag) + varint(len(value)) + value
    for tag, value in want.items():
        out += varint(tag) + varint(len(value)) + value
    return out


def replaced(data, kind, **changes):
    """The file with the fields of its blocks of this kind changed."""
    out = data[:FILE_HEAD]
    for _, of, payload in blocks(data):
        original = seal(of, payload)
        out += seal(of, with_fields(payload, **changes)) if of == kind else original if of in (RUN, END) else b""
    return out
