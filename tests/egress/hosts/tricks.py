"""DNS answers that are wrong. Each gets the question and what the right answer would be (make), and yields
what is sent."""
import socket
import struct
import time

import world

GOOD, BAD = socket.inet_aton(world.A), socket.inet_aton(world.EVIL)
SLOW_S = 1.5
FLOOD = 50


def slow(q, make, tcp):
    time.sleep(SLOW_S)
    yield make(q, [(q.wire_name, 1, GOOD)])


def never(q, make, tcp):
    yield from ()


def cut(q, make, tcp):
    """Not whole over UDP; the rest is to be had over TCP."""
    yield make(q, [(q.wire_name, 1, GOOD)]) if tcp else make(q, [], flags=0x8780)


def cut_never(q, make, tcp):
    if not tcp:
        yield make(q, [], flags=0x8780)


def wrong_id(q, make, tcp):
    answer = make(q, [(q.wire_name, 1, BAD)])
    yield struct.pack(">H", q.id ^ 1) + answer[2:]


def wrong_name(q, make, tcp):
    """The question section is another one."""
    yield make(q, [(b"\1a\4test\0", 1, BAD)], question=b"\1a\4test\0" + struct.pack(">HH", q.type, 1))


def wrong_type(q, make, tcp):
    yield make(q, [(q.wire_name, 16, b"\4text")])


def no_question(q, make, tcp):
    answer = make(q, [(q.wire_name, 1, BAD)])
    yield answer[:4] + b"\0\0" + answer[6:12] + answer[12 + len(q.wire):]


def extra(q, make, tcp):
    """The right answer, and one to a question that nobody asked."""
    yield make(q, [(q.wire_name, 1, GOOD), (b"\1b\4test\0", 1, BAD)])


def loop(q, make, tcp):
    """A name that leads to itself."""
    at = 12 + len(q.wire)
    yield make(q, [(struct.pack(">H", 0xC000 | at), 1, GOOD)])


def short(q, make, tcp):
    yield make(q, [(q.wire_name, 1, GOOD)])[:-2]


def count(q, make, tcp):
    answer = make(q, [(q.wire_name, 1, GOOD)])
    yield answer[:6] + struct.pack(">H", 9) + answer[8:]


def length(q, make, tcp):
    """An address of three bytes."""
    yield make(q, [(q.wire_name, 1, GOOD[:3])])


def label(q, make, tcp):
    yield make(q, [(b"\x45" + b"x" * 69 + b"\0", 1, GOOD)])


def empty(q, make, tcp):
    yield b""


def noise(q, make, tcp):
    yield struct.pack(">H", q.id) + bytes(i * 73 % 251 for i in range(200))


def query(q, make, tcp):
    """Our own question, back."""
    yield struct.pack(">HHHHHH", q.id, 0x0100, 1, 0, 0, 0) + q.wire


def twice(q, make, tcp):
    """Two answers: the first counts."""
    yield make(q, [(q.wire_name, 1, GOOD)])
    yield make(q, [(q.wire_name, 1, BAD)])


def late_lie(q, make, tcp):
    """Lies come first, with ids that are nearly right."""
    answer = make(q, [(q.wire_name, 1, BAD)])
    for i in range(1, 9):
        yield struct.pack(">H", q.id ^ i) + answer[2:]
    yield make(q, [(q.wire_name, 1, GOOD)])


def flood(q, make, tcp):
    for _ in range(FLOOD):
        yield make(q, [(q.wire_name, 1, BAD)], flags=0x0180)
    yield make(q, [(q.wire_name, 1, GOOD)])


def play(how, q, make, tcp):
    return globals()[how.replace("-", "_")](q, make, tcp)
