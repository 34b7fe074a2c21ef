"""What sandboxes use and what GET /v1/usage says of it: the steps behind usage.sh."""
import os
import signal
import sys

from server_client import Client, Server, until

BURN = "python3 -c 'import time\nwhile time.process_time() < {}: pass'"
OUTPUT = 1_000_000
TOLD_S = 30  # a living sandbox is sampled every 5 seconds, and told every 10
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail:
        print(f"# {detail}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def total(client):
    status, answer = client.api("GET", "/v1/usage")
    if status != 200:
        raise RuntimeError(f"usage: {status} {answer}")
    return answer["total"]


def grown(client, before, **at_least):
    """What was used since, as soon as it is so much."""
    def look():
        now = total(client)
        more = {key: now[key] - before[key] for key in now}
        return more if all(more[key] >= n for key, n in at_least.items()) else None
    return until(look, TOLD_S, 0.2) or {key: total(client)[key] - before[key] for key in before}


def kill(client, sandbox):
    client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")


def plain(client):
    before = total(client)
    check("nothing was used at first", not any(before.values()), before)
    sandbox = client.create()
    client.run(sandbox, BURN.format(1))
    client.run(sandbox, f"head -c {OUTPUT} /dev/zero | tr '\\0' x")
    kill(client, sandbox)
    used = grown(client, before, sandboxes=1)
    check("processor time is about what was burnt", 1 <= used["cpuSeconds"] < 10, used)
    check("bytes that came out", OUTPUT <= used["bytesOut"] < 1.1 * OUTPUT, used)
    check("programs that were run", used["executions"] == 2, used)
    check("memory, for the time it lived", 0 < used["memoryGibSeconds"] < 10, used)
    check("one sandbox", used["sandboxes"] == 1, used)


def short(client):
    before = total(client)
    for _ in range(3):
        sandbox = client.create()
        client.run(sandbox, BURN.format(0.1))
        kill(client, sandbox)
    used = grown(client, before, sandboxes=3)
    check("three that lived for a moment only are counted", used["sandboxes"] == 3, used)
    check("and what they burnt", 0.3 <= used["cpuSeconds"] < 5, used)


def sent(client):
    before = total(client)
    sandbox = client.create()
    client.raw("POST", "/files?path=/home/user/big&username=user", b"x" * OUTPUT,
               {**client.data_headers(sandbox, "application/octet-stream")})
    status, size = client.run(sandbox, "stat -c %s /home/user/big")
    kill(client, sandbox)
    used = grown(client, before, sandboxes=1)
    check("bytes that went in", size.strip() == str(OUTPUT)
          and OUTPUT <= used["bytesIn"] < 1.1 * OUTPUT, (status, size, used))


def days(client):
    status, answer = client.api("GET", "/v1/usage")
    names = [day["day"] for day in answer["days"]]
    check("it is counted for today", names and names[-1] == answer["to"]
          and names == sorted(names) and len(names) <= 2, answer)
    summed = sum(day["cpuSeconds"] for day in answer["days"])
    check("the days make the total", abs(summed - answer["total"]["cpuSeconds"]) < 0.001, answer)
    status, old = client.api("GET", "/v1/usage?from=2020-01-01&to=2020-01-31")
    check("other days have none", status == 200 and not any(old["total"].values()), old)


def context(client):
    status, made = client.api("PUT", "/v1/contexts", {"conversationId": "c", "pathId": "main"})
    id_ = made["context"]["id"]
    code = "import time\nwhile time.process_time() < 1: pass\nprint('x' * 100000)"
    status, ran = client.api("POST", "/v1/tools/run_code",
                             {"conversationId": "c", "pathId": "main", "code": code})
    check("code was run", status == 200 and ran["success"], ran)

    def look():
        _, row = client.api("GET", f"/v1/contexts/{id_}")
        return row["resourceUsage"] if row["resourceUsage"]["cpuSeconds"] >= 0.9 else None
    used = until(look, TOLD_S, 0.2)
    check("a living context has what it used", bool(used), used)
    check("a cell is an execution", used and used["executions"] == 1, used)
    check("its output", used and 100000 <= used["bytesOut"] < 120000, used)
    check("its sandbox", used and used["sandboxes"] == 1, used)
    status, other = client.api("PUT", "/v1/contexts", {"conversationId": "c", "pathId": "other"})
    client.api("DELETE", f"/v1/contexts/{other['context']['id']}")
    row = until(lambda: (lambda r: r if r["resourceUsage"]["sandboxes"] else None)(
        client.api("GET", f"/v1/contexts/{other['context']['id']}")[1]), TOLD_S, 0.2)
    check("one that has ended has its own", row and row["resourceUsage"]["executions"] == 0
          and row["resourceUsage"]["cpuSeconds"] < 0.9, row)
    client.api("DELETE", f"/v1/contexts/{id_}")


def front_dies(server, client):
    before = total(client)
    sandbox = client.create()
    client.run(sandbox, BURN.format(2))
    used = grown(client, before, cpuSeconds=2)
    check("a living sandbox is counted", used["cpuSeconds"] >= 2, used)
    pid = until(server.front)
    os.kill(pid, signal.SIGKILL)
    until(lambda: server.front() not in (None, pid))

    def again():
        try:
            return client.run(sandbox, BURN.format(1))[0] == 0
        except (OSError, RuntimeError):
            return False
    check("it lives on when the front dies", until(again, 20))
    kill(client, sandbox)
    used = grown(client, before, cpuSeconds=3)
    check("what the next front sees is added", used["cpuSeconds"] >= 3, used)
    check("and nothing is counted twice", used["cpuSeconds"] < 4.5 and used["sandboxes"] == 1, used)


def restart(server, client):
    before = total(client)
    sandbox = client.create()
    client.run(sandbox, BURN.format(0.2))
    kill(client, sandbox)
    server.stop()
    server.start()
    now = total(client)
    check("what was used is still there after a restart", now["cpuSeconds"] >= before["cpuSeconds"], now)
    check("the last of it was told before the end", now["sandboxes"] == before["sandboxes"] + 1
          and now["cpuSeconds"] >= before["cpuSeconds"] + 0.2, (before, now))


def main(program, state):
    server = Server(program, state)
    server.start()
    client = Client(server)
    try:
        plain(client)
        short(client)
        sent(client)
        days(client)
        context(client)
        front_dies(server, client)
        restart(server, client)
    finally:
        server.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
