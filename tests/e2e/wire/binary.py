"""The same services in binary protobuf."""
from wire.connect import IDENTITY, Stream, envelope, run
from wire.http import common
from wire.proto import field, get, message, parse, varint, zigzag
from wire.tap import same, test

FS = "filesystem.Filesystem"


def unary(sandbox, method, data):
    return sandbox.request("POST", f"/{method}", data, {**IDENTITY, "Content-Type": "application/proto"})


def stream(sandbox, method, data, headers=None):
    return Stream(sandbox, method, None, headers, codec="proto", raw=envelope(data))


def config(command, **more):
    return message(_1="/bin/bash", _2=["-l", "-c", command], **more)


def events(messages):
    """[(kind, fields)] of ProcessEvents."""
    names = {1: "start", 2: "data", 3: "end", 4: "keepalive"}
    return [(names[number], values[0]) for m in messages for number, values in parse(get(m, 1)).items()]


@test("binary: Stat, with its numbers and its time")
def _():
    sandbox = common()
    run(sandbox, "printf 12345 > /tmp/binary; chmod 640 /tmp/binary; touch -d @1700000000.25 /tmp/binary; "
                 "ln -sf binary /tmp/binary-link")
    a = unary(sandbox, f"{FS}/Stat", message(_1="/tmp/binary"))
    same((a.status, a.headers["content-type"]), (200, "application/proto"), str(a))
    e = parse(get(a.body, 1))
    same([e[n][0] for n in (1, 3, 6, 7, 8)], [b"binary", b"/tmp/binary", b"-rw-r-----", b"user", b"user"])
    same([e[n][0] for n in (2, 4, 5)], [1, 5, 0o640])
    same((get(e[9][0], 1), get(e[9][0], 2)), (1700000000, 250000000))
    assert 10 not in e, "no link target"
    link = parse(get(unary(sandbox, f"{FS}/Stat", message(_1="/tmp/binary-link")).body, 1))
    same((link[10][0], link[2][0]), (b"/tmp/binary", 1))


@test("binary: List, MakeDir, ListDir, Remove")
def _():
    sandbox = common()
    a = unary(sandbox, "process.Process/List", b"")
    same(a.status, 200, str(a))
    d = "/tmp/binary-dir"
    same(unary(sandbox, f"{FS}/MakeDir", message(_1=f"{d}/sub")).status, 200)
    a = unary(sandbox, f"{FS}/ListDir", message(_1=d, _2=1))
    same([get(e, 1) for e in parse(a.body)[1]], [b"sub"])
    a = unary(sandbox, f"{FS}/Remove", message(_1=d))
    same((a.status, a.body), (200, b""))


@test("binary: Start, with variables, a directory and a tag")
def _():
    sandbox = common()
    request = message(_1=config('echo "$A $B $PWD"; echo oh >&2; exit 3', _3={"A": "1", "B": "ü"}, _4="/tmp"), _3="binary-tag", _4=0)
    s = stream(sandbox, "process.Process/Start", request)
    got = events(s)
    same(got[0][0], "start")
    assert get(got[0][1], 1) > 1
    out = b"".join(get(d, 1) or b"" for kind, d in got if kind == "data")
    err = b"".join(get(d, 2) or b"" for kind, d in got if kind == "data")
    same((out.decode(), err), ("1 ü /tmp\n", b"oh\n"))
    end = parse(got[-1][1])
    same((zigzag(end[1][0]), end[2][0], end[3][0], end[4][0]), (3, 1, b"exit status 3", b"exit status 3"))
    same(s.end, {})


@test("binary: a negative exit code is zigzag")
def _():
    s = stream(common(), "process.Process/Start", message(_1=config("kill -9 $$"), _4=0))
    end = parse(events(s)[-1][1])
    same((zigzag(end[1][0]), end.get(2, [0])[0], end[3][0]), (-1, 0, b"signal: killed"))


@test("binary: input by pid, a signal, an end")
def _():
    sandbox = common()
    s = stream(sandbox, "process.Process/Start", message(_1=config("cat; sleep 1000")))
    it = iter(s)
    selector = message(_1=get(next(it), 1, 1, 1))
    same(unary(sandbox, "process.Process/SendInput", message(_1=selector, _2=message(_1=b"\0\xff\n"))).status, 200)
    same(get(next(it), 1, 2, 1), b"\0\xff\n")
    same(unary(sandbox, "process.Process/SendSignal", message(_1=selector, _2=15)).status, 200)
    end = get(list(it)[-1], 1, 3)
    same(get(end, 3), b"signal: terminated")


@test("binary: WatchDir")
def _():
    sandbox = common()
    run(sandbox, "mkdir -p /tmp/binary-watch")
    s = stream(sandbox, f"{FS}/WatchDir", message(_1="/tmp/binary-watch"))
    it = iter(s)
    same(list(parse(next(it))), [1])
    run(sandbox, "touch /tmp/binary-watch/f")
    event = parse(get(next(it), 2))
    same((event[1][0], event[2][0]), (b"f", 1))
    s.close()


@test("binary: errors are JSON all the same")
def _():
    sandbox = common()
    a = unary(sandbox, f"{FS}/Stat", message(_1="/no/such"))
    same((a.status, a.json["code"], a.headers["content-type"]), (404, "not_found", "application/json"))
    s = stream(sandbox, "process.Process/Connect", message(_1=message(_1=4000000)))
    same(list(s), [])
    same(s.end["error"]["code"], "not_found")


@test("binary: fields nobody knows are passed over, the last of two counts")
def _():
    sandbox = common()
    odd = field(1, "/no") + field(99, "x") + varint(98 << 3 | 1) + b"8 bytes." + varint(97 << 3 | 5) + b"four" + field(1, "/tmp")
    a = unary(sandbox, f"{FS}/Stat", odd)
    same(a.status, 200, str(a))
    same(get(a.body, 1, 3), b"/tmp")


@test("binary: what is no message is refused, and harms nothing")
def _():
    sandbox = common()
    deep = b""
    for _ in range(5000):
        deep = field(1, deep)
    for bad in (
        b"\xff",
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0a\x05abc",
        varint(1 << 3 | 3),
        varint(1 << 3 | 4),
        varint(1 << 3 | 6),
        b"\x08" + b"\x80" * 11 + b"\x01",
        field(1, b"\xff\xfe"),
        b"\x00\x01",
        deep,
    ):
        for method in (f"{FS}/Stat", "process.Process/SendInput"):
            a = unary(sandbox, method, bad)
            assert a.status in (400, 404), f"{method} {bad[:20]}: {a}"
    same(run(sandbox, "echo fine")[0], "fine\n")
