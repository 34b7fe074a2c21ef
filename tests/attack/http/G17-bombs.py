"""G17: little that unpacks to much, from many clients of one tenant; another one is served meanwhile."""
import gzip
import http.client
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, rss_mib  # noqa: E402
from server import Site, answered  # noqa: E402

CLIENTS, SECONDS, GROSS_S = 24, 3, 5
ZEROS = 1024 << 20
KIND = "multipart/form-data; boundary=B"
FORM = b'--B\r\nContent-Disposition: form-data; name="other"\r\n\r\n'
FILE = b'--B\r\nContent-Disposition: form-data; name="file"; filename="/tmp/f"\r\n\r\n'


MEMBER = gzip.compress(bytes(16 << 20), 9)


def bomb(before):
    """As many zeros as fill a machine, behind a few bytes."""
    return gzip.compress(before) + MEMBER * (ZEROS // (16 << 20))


BOMBS = {"before the first part": bomb(b""), "in a part that is no file": bomb(FORM),
         "behind the last part": bomb(FILE + b"x\r\n--B--\r\n")}


def post(site, sandbox, body):
    c = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    try:
        c.request("POST", "/files", body, sandbox.headers(**{"Content-Type": KIND,
                                                             "Content-Encoding": "gzip"}))
        return c.getresponse().status
    except OSError:  # it was cut off while it sent
        return 0
    finally:
        c.close()


def flood(site, sandbox, bodies, stop, counts):
    while not stop.is_set():
        for body in bodies:
            if stop.is_set():
                return
            status = post(site, sandbox, body)
            counts[status] = counts.get(status, 0) + 1


def others(site, key, seconds):
    wrong, times, deadline = [], [], time.monotonic() + seconds
    while time.monotonic() < deadline:
        began = time.monotonic()
        sandbox = site.create(key)
        wrong += answered("kill", site.api("DELETE", f"/sandboxes/{sandbox.id}", key=key), 204)
        times.append(time.monotonic() - began)
        time.sleep(0.05)
    times.sort()
    return wrong, times


with Site() as site:
    other, sandbox = site.key_of("other"), site.create()
    wrong = []
    for where, body in (*BOMBS.items(), ("in a file", bomb(FILE))):
        status = post(site, sandbox, body)
        if status not in (0, 400, 413, 507):
            wrong.append(f"{where}: {status}")
    check("G17 what belongs to no file, or to one that is too long, is refused", wrong)
    _, alone = others(site, other, 1)
    before = rss_mib(site.front())
    stop, counts = threading.Event(), {}
    threads = [threading.Thread(target=flood, args=(site, sandbox, list(BOMBS.values()), stop, counts))
               for _ in range(CLIENTS)]
    for t in threads:
        t.start()
    wrong, times = others(site, other, SECONDS)
    grown = rss_mib(site.front()) - before
    stop.set()
    for t in threads:
        t.join()
    note = (f"create and kill: alone p50 {alone[len(alone) // 2] * 1e3:.1f} ms, beside it "
            f"{times[len(times) // 2] * 1e3:.1f} ms, worst {times[-1] * 1e3:.0f} ms, "
            f"{sum(counts.values())} uploads")
    if times[-1] > GROSS_S:
        wrong.append(f"the other tenant waited {times[-1]:.1f} s")
    check("G17 another tenant is served while they are unpacked", wrong, note)
    check("G17 they take little memory", [f"{grown:.0f} MiB"] if grown > 128 else [])
    check("G17 the server goes on", sandbox.trouble() + site.trouble())
finish()
