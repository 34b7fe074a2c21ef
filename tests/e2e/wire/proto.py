"""Protobuf by hand: enough to write a message and to take one apart."""
import struct


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A number becomes a varint, text and bytes a string; a list repeats; a dictionary is a map."""
    if isinstance(value, list):
        return b"".join(field(number, v) for v in value)
    if isinstance(value, dict):
        return b"".join(field(number, field(1, k) + field(2, v)) for k, v in value.items())
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(**fields):
    """message(_1="path", _2=7)"""
    return b"".join(field(int(name[1:]), value) for name, value in fields.items())


def read_varint(data, at):
    n = shift = 0
    while True:
        b = data[at]
        at += 1
        n |= (b & 127) << shift
        shift += 7
        if b < 128:
            return n, at


def parse(data):
    """{field number: [value, ...]}: numbers, or bytes."""
    out, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        elif key & 7 == 2:
            length, at = read_varint(data, at)
            assert at + length <= len(data), "a length beyond the end"
            value, at = data[at : at + length], at + length
        elif key & 7 == 1:
            (value,), at = struct.unpack("<Q", data[at : at + 8]), at + 8
        elif key & 7 == 5:
            (value,), at = struct.unpack("<I", data[at : at + 4]), at + 4
        else:
            raise AssertionError(f"wire type {key & 7}")
        out.setdefault(key >> 3, []).append(value)
    return out


def get(data, *path):
    """The first value at a path of field numbers; None if it is not there."""
    for number in path:
        data = parse(data).get(number, [None])[0]
        if data is None:
            return None
    return data


def zigzag(n):
    return (n >> 1) ^ -(n & 1)
