"""What is in the way of a copy: it is named, nothing changes, and without it there is a copy."""
import threading
import time

from server import Line, Sandbox, Wrong, in_the_way

HOME = "/home/user/p/"
OPEN = "f0 = os.open('a', os.O_RDWR | os.O_CREAT)\nos.write(f0, b'abc')\n"
CLOSE = "\nos.close(f0); del f0"
SLEEP_S = 1
PATIENCE_S = 10

# A name, what is done, what is in the way of a copy then, what takes it away.
CASES = (
    ("a thread", "t0 = Worker()", {("thread", "threads")}, "t0.end(); del t0"),
    ("a process that writes to a file", "c0 = Child('a')", {("file", HOME + "a")},
     "c0.end(); del c0"),
    ("a mapping that writes to a file",
     OPEN + "os.close(f0); del f0\nm0 = mapped('a', 'WRITE')", {("mapping", HOME + "a")},
     "m0.close(); del m0"),
    ("a mapping that can come to write to a file",
     OPEN + "m0 = mmap.mmap(f0, 0, prot=mmap.PROT_READ)" + CLOSE, {("mapping", HOME + "a")},
     "m0.close(); del m0"),
    ("a file without a name, open for writing", OPEN + "os.unlink('a')",
     {("file", HOME + "a (deleted)")}, CLOSE),
    ("a file without a name, open for reading",
     OPEN + CLOSE + "\nf0 = os.open('a', os.O_RDONLY); os.unlink('a')",
     {("file", HOME + "a (deleted)")}, CLOSE),
    ("a name that is gone, of a file that has another", OPEN + CLOSE +
     "\nos.link('a', 'b'); f0 = os.open('a', os.O_RDONLY); os.unlink('a')",
     {("file", HOME + "a (deleted)")}, CLOSE),
    ("a file that could not be opened for writing again", OPEN + "os.chmod('a', 0o400)",
     {("file", HOME + "a")}, CLOSE),
    ("a lock of an opening", OPEN + "lock(f0)", {("lock", HOME + "a")}, "unlock(f0)"),
    ("a lock of a process",
     "f0 = os.open('/home/user/lock', os.O_RDWR | os.O_CREAT)\nfcntl.lockf(f0, fcntl.LOCK_EX)",
     {("lock", "/home/user/lock")}, CLOSE),
    ("a database in the middle of a transaction",
     "import sqlite3; db = sqlite3.connect('/home/user/x.db'); db.execute('create table t (a)'); "
     "db.execute('insert into t values (1)')", {("lock", "/home/user/x.db")}, "db.commit()"),
    ("a file in place of standard output", OPEN + "v0 = os.dup(2); os.dup2(f0, 2)",
     {("file", HOME + "a")}, "os.dup2(v0, 2); os.close(v0); del v0"),
    ("more open files than can be taken along",
     "v0 = [os.open('/home/user/a', os.O_RDWR | os.O_CREAT) for _ in range(600)]",
     {("file", "/home/user/a")}, "for fd in v0: os.close(fd)"),
    ("much shared memory", "x = mmap.mmap(-1, 300 << 20)",
     {("memory", "more than 256 MiB of shared memory, or too many pieces")}, "x.close()"),
    ("two at once", OPEN + "lock(f0); c0 = Child('b')",
     {("lock", HOME + "a"), ("file", HOME + "b")}, "unlock(f0); c0.end(); del c0"),
)


def must_refuse(status, answer, wanted):
    if status != 409:
        raise Wrong(f"{status}: {answer}")
    got = in_the_way(answer)
    if wanted is not None and got != wanted:
        raise Wrong(f"in the way: {got}, and must have been {wanted}")
    if not all(way["remedy"] for way in answer["inTheWay"]):
        raise Wrong(f"no remedy: {answer}")


def must_be(got, wanted, whose):
    if got != wanted:
        raise Wrong(f"{whose} has {got}, and must have {wanted}")


def branch(sandbox):
    status, answer = sandbox.try_fork()
    if status != 201:
        raise Wrong(f"with nothing in the way: {status}: {answer}")
    return Sandbox(sandbox.line, answer[0]["sandbox"])


def case(line, first, wanted, then):
    sandbox = line.create()
    before = sandbox.report("begin()\n" + first)
    must_refuse(*sandbox.try_fork(), wanted)
    must_refuse(*sandbox.try_checkpoint(), wanted)
    must_be(sandbox.report(), before, "the source")
    listed = line.must(200, "GET", f"/sandboxes/{sandbox.id}/checkpoints")["checkpoints"]
    must_be(listed, [], "the list of checkpoints")
    after = sandbox.report(then)
    other = branch(sandbox)
    must_be(other.report(), after, "the branch")
    must_be(sandbox.report(), after, "the source")
    other.kill()
    sandbox.kill()


def in_flight(line):
    """A descriptor that no process has: it is on its way through a socket. The files are frozen before that
    is noticed; they must not be anybody else's as long as it can come back."""
    sandbox = line.create()
    sandbox.cell("begin()\nimport socket; x, y = socket.socketpair()\n" + OPEN +
                 "socket.send_fds(x, [b'x'], [f0])" + CLOSE)
    must_refuse(*sandbox.try_fork(), None)
    must_refuse(*sandbox.try_fork(), None)
    sandbox.cell("open('b', 'w').close()")
    must_refuse(*sandbox.try_fork(), None)
    sandbox.cell("_, fds, _, _ = socket.recv_fds(y, 1, 1); f0 = fds[0]\nos.write(f0, b'def')" + CLOSE)
    other = branch(sandbox)
    sandbox.cell("with open('a', 'a') as f: f.write('ghi')")
    must_be(other.cell("print(open('a').read())"), "abcdef\n", "the branch")
    must_be(sandbox.cell("print(open('a').read())"), "abcdefghi\n", "the source")
    other.kill()
    sandbox.kill()


def running_cell(line, server):
    """It is waited for if that is asked for."""
    sandbox = line.create()
    other = Line(server)
    twin = Sandbox(other, {"sandboxID": sandbox.id, "envdAccessToken": sandbox.headers["X-Access-Token"]})
    code = f"begin()\nopen('/home/user/begun', 'w').close()\ntime.sleep({SLEEP_S})\nv0 = 7"
    caller = threading.Thread(target=twin.cell, args=(code,))
    caller.start()
    end = time.monotonic() + PATIENCE_S
    while True:  # until it is under way
        status, answer = sandbox.try_fork()
        if status == 409 or time.monotonic() > end:
            break
        Sandbox(line, answer[0]["sandbox"]).kill()
    must_refuse(status, answer, None)
    must_be([way["what"] for way in answer["inTheWay"]], ["cell"], "the list")
    status, answer = sandbox.try_fork(waitMs=PATIENCE_S * 1000)
    caller.join()
    if status != 201:
        raise Wrong(f"waiting for it: {status}: {answer}")
    must_be(Sandbox(line, answer[0]["sandbox"]).cell("print(v0)"), "7\n", "the branch")
    Sandbox(line, answer[0]["sandbox"]).kill()
    sandbox.kill()
    other.close()


def run(tap, server):
    line = Line(server)
    tests = [(name, lambda c=rest: case(line, *c)) for name, *rest in CASES]
    tests += [("a descriptor on its way through a socket", lambda: in_flight(line)),
              ("a cell that runs", lambda: running_cell(line, server))]
    for name, test in tests:
        try:
            test()
            tap.check(f"in the way of a copy: {name}")
        except (Wrong, OSError, ValueError, KeyError) as error:
            line.close()
            tap.check(f"in the way of a copy: {name}", str(error))
    line.close()
