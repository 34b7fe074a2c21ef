"""V10: a database that lies, breaks and goes away; what is told of it; and the process that speaks to it."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from contexts import Mcp, Paths, RUN_CODE  # noqa: E402
from database import Database  # noqa: E402
from host import check, children, finish, poll, status  # noqa: E402
from server import Site, answered  # noqa: E402

PASSWORD = "sand-glass"


def words(db):
    """What must be nowhere: where the database is, and who we are there."""
    port = re.search(r":(\d+)/", db.url)[1]
    return (PASSWORD, f":{port}", f"port {port}", "sandglass:", "postgres:")


def tells(db, answer):
    said = answer.body.decode(errors="replace") + str(answer.headers)
    return [f"PWNED it tells {w!r}: {answer}" for w in words(db) if w in said]


# ---- rows that lie ----------------------------------------------------------------------------


def foreign_sandbox(db, owner, other):
    """A row of one tenant names the sandbox of another: it is neither used, ended nor given away."""
    wrong = []
    victim_id, victim = owner.obtain("victim", "p")
    owner.code("victim", "p", "secret = 'of the victim'; open('/tmp/secret', 'w').write(secret)")
    for what, ask in (
        ("PUT", lambda id_: other.put("liar", "p")),
        ("run_code", lambda id_: other.code("liar", "p", "print(open('/tmp/secret').read(), secret)")),
        ("branch", lambda id_: other.ask("POST", "/v1/contexts/branch", {
            "conversationId": "liar", "fromPathId": "p", "toPathId": "q", "inherit": "files"})),
        ("touch", lambda id_: other.ask("POST", f"/v1/contexts/{id_}/touch", {"ttlSeconds": 1})),
        ("merge", lambda id_: other.ask("POST", "/v1/contexts/merge", {
            "conversationId": "liar", "sourcePathId": "p", "targetPathId": "q"})),
        ("DELETE", lambda id_: other.ask("DELETE", f"/v1/contexts/{id_}")),
        ("cleanup", lambda id_: other.ask("POST", "/v1/contexts/cleanup", {"conversationId": "liar"})),
    ):
        id_, _ = other.obtain("liar", "p")
        db.sql(f"UPDATE sandglass.context SET sandbox_id = '{victim.id}' WHERE id = '{id_}'")
        a = ask(id_)
        found = (a.json() or {}).get("sandbox") or {}
        if found.get("sandboxID") == victim.id or b"of the victim" in a.body \
                or what == "branch" and a.status == 201 and a.json()["inherited"] != "none":
            wrong.append(f"PWNED {what}: {a}")
        wrong += [f"after {what}: {w}" for w in victim.trouble()]
    # And the reaper: the liar's time is over.
    id_, _ = other.obtain("liar", "p")
    db.sql(f"UPDATE sandglass.context SET sandbox_id = '{victim.id}', expires_at = now() - "
           f"interval '1 hour' WHERE id = '{id_}'")
    poll(lambda: other.status(id_) == "terminated", 5)
    wrong += [f"after the reaper: {w}" for w in victim.trouble()]
    a = owner.code("victim", "p", "secret")
    if a.status != 200 or a.json()["replaced"] or b"of the victim" not in a.body:
        wrong.append(f"the victim is not what it was: {a}")
    return wrong


def same_tenant(db, owner):
    """A row that names the sandbox of another path: that path's files are not inherited by it."""
    a_id, sandbox = owner.obtain("mine", "a")
    owner.code("mine", "a", "open('of_a', 'w').write('x')")
    b_id, _ = owner.obtain("mine", "b")
    db.sql(f"UPDATE sandglass.context SET sandbox_id = '{sandbox.id}' WHERE id = '{b_id}'")
    a = owner.ask("POST", "/v1/contexts/branch", {"conversationId": "mine", "fromPathId": "b",
                                                  "toPathId": "c", "inherit": "files"})
    wrong = [] if a.status == 201 and a.json()["inherited"] == "none" else [f"branch: {a}"]
    a = owner.put("mine", "b")
    if a.status != 201 or a.json()["sandbox"]["sandboxID"] == sandbox.id:
        wrong.append(f"PWNED two paths have one sandbox: {a}")
    return wrong + sandbox.trouble()


def nonsense(db, owner, other):
    """Values that no server writes: a clear error for that row, and nothing else happens."""
    wrong, id_ = [], owner.obtain("nonsense", "p")[0]
    db.sql("ALTER TABLE sandglass.context DROP CONSTRAINT context_sandbox_status_check")
    for change in (
        "error_message = repeat('x', 100000000)", "template_id = repeat('x', 100000)",
        "sandbox_id = repeat('x', 5000)", "sandbox_id = '../../../../etc'", "sandbox_status = 'broken'",
        "node_id = repeat('n', 5000)", "ttl = interval '-5 years'", "ttl = interval '90000 years'",
        "expires_at = 'infinity'", "created_at = '-infinity'", "last_used_at = '0044-03-15 BC'",
        "resource_usage = '{\"cpu_us\": \"many\"}'", "resource_usage = '[]'", "resource_usage = '{\"cpu_us\": -1}'",
        "resource_usage = '{\"cpu_us\": 1e300}'", "conversation_id = repeat('c', 5000)",
        "path_id = E'a\\nb'", "template_id = E'\\r\\nSet-Cookie: x'",
    ):
        db.sql(f"CREATE TABLE kept AS SELECT * FROM sandglass.context WHERE id = '{id_}'; "
               f"UPDATE sandglass.context SET {change} WHERE id = '{id_}'")
        for method, target, body in (
            ("GET", f"/v1/contexts/{id_}", None), ("GET", "/v1/contexts?status=all", None),
            ("GET", "/v1/paths?conversationId=nonsense", None), ("POST", f"/v1/contexts/{id_}/touch", {}),
            ("PUT", "/v1/contexts", {"conversationId": "nonsense", "pathId": "p"}),
            ("POST", "/v1/contexts/branch", {"conversationId": "nonsense", "fromPathId": "p",
                                             "toPathId": "q", "inherit": "files"}),
        ):
            a = owner.ask(method, target, body)
            wrong += [f"{change[:40]}: {w}" for w in answered(f"{method} {target}", a, 2, 4, 5)]
            wrong += tells(db, a)
            if a.json() is None or a.header("Set-Cookie") or a.status == 500:
                wrong.append(f"{change[:40]}: {method} {target}: {a}")
        wrong += [f"{change[:40]}: another tenant: {w}" for w in other.trouble()]
        db.sql(f"DELETE FROM sandglass.context WHERE id = '{id_}' OR (conversation_id = 'nonsense' AND "
               "sandbox_status IN ('creating', 'ready')); INSERT INTO sandglass.context SELECT * FROM kept; "
               "DROP TABLE kept")
    return wrong[:6]


def redirects(db, owner):
    """Where a client is sent is what a server said of itself: no client has a say in it, and what
    could not be an address is not passed on."""
    wrong, id_ = [], owner.obtain("far", "p")[0]
    db.sql("INSERT INTO sandglass.node VALUES ('another', 'http://127.0.0.1:9', now() + interval '1 hour')")
    db.sql(f"UPDATE sandglass.context SET node_id = 'another' WHERE id = '{id_}'")
    site = owner.site
    for target, headers in (
        (f"/v1/contexts/{id_}", {}), (f"/v1/contexts/{id_}", {"Host": "evil.example"}),
        (f"/v1/contexts/{id_}", {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}),
        (f"/v1/contexts/{id_}?a=//evil.example", {}), (f"/v1/contexts/{id_}?x=%0d%0aLocation:%20http://evil", {}),
        (f"http://evil.example/v1/contexts/{id_}", {"Host": "evil.example"}),
        (f"http://evil.example/v1/contexts/{id_}", {}), (f"//evil.example/v1/contexts/{id_}", {}),
        (f"/\\evil.example/v1/contexts/{id_}", {}), (f"/v1/contexts/{id_}@evil.example", {}),
        (f"/.evil.example/v1/contexts/{id_}", {}), (f"@evil.example/v1/contexts/{id_}", {}),
    ):
        a = site.ask("DELETE", target, {"X-API-Key": site.key, **headers})
        place = a.header("Location")
        if a.status == 307 and not (len(place) == 1 and place[0].startswith(
                f"http://127.0.0.1:9/v1/contexts/{id_}")):
            wrong.append(f"PWNED {target} {headers}: {place}")
        if a.status != 307 and (place or a.status < 400):
            wrong.append(f"{target} {headers}: {a}")
    for url in (r"E'http://x\r\nSet-Cookie: a=b'", r"E'http://x\nLocation: y'", "repeat('h', 100000)", "''",
                r"E'http://x\u0001'", "'javascript:alert(1)'", "'//evil.example'", "'http://user:pw@x/'"):
        db.sql(f"UPDATE sandglass.node SET url = {url} WHERE id = 'another'")
        a = owner.ask("DELETE", f"/v1/contexts/{id_}")
        if a.header("Set-Cookie") or len(a.header("Location")) > 1 or a.status not in (307, 503) \
                or any(ord(c) < 32 for v in a.header("Location") for c in v):
            wrong.append(f"{url}: {a} {a.headers}")
    failed, text = Mcp(site, conversation="far").call("run_code", code="1", pathId="p")
    if not failed:
        wrong.append(f"MCP: {text}")
    db.sql("DELETE FROM sandglass.node WHERE id = 'another'")
    return wrong


# ---- a database that breaks -------------------------------------------------------------------

ROUTES = (
    ("PUT", "/v1/contexts", {"conversationId": "c", "pathId": "new"}), ("GET", "/v1/contexts", None),
    ("POST", RUN_CODE, {"conversationId": "c", "pathId": "new", "code": "1"}),
    ("GET", "/v1/paths?conversationId=c", None), ("GET", "/v1/usage", None),
    ("POST", "/v1/contexts/cleanup", {"conversationId": "c"}), ("POST", "/v1/contexts/branch", {
        "conversationId": "c", "fromPathId": "a", "toPathId": "b"}),
    ("POST", "/v1/contexts/merge", {"conversationId": "c", "sourcePathId": "a", "targetPathId": "b"}),
)


def broken(db, owner, sandbox, what):
    wrong = []
    for method, target, body in ROUTES:
        a = owner.ask(method, target, body)
        wrong += [f"{what}: {w}" for w in answered(f"{method} {target}", a, 503)] + tells(db, a)
        if a.status == 503 and (not a.header("Retry-After") or not a.json()["message"]):
            wrong.append(f"{what}: no reason: {a} {a.headers}")
    _, text = Mcp(owner.site).call("run_code", code="1")
    wrong += [f"{what}: PWNED MCP tells {w!r}: {text}" for w in words(db) if w in text]
    return wrong + [f"{what}: {w}" for w in sandbox.trouble()]


def breaks(db, owner):
    wrong, (_, sandbox) = [], owner.obtain("running", "p")
    for what, do, undo in (
        ("no table", "ALTER TABLE sandglass.context RENAME TO gone",
         "ALTER TABLE sandglass.gone RENAME TO context"),
        ("no rights", "ALTER ROLE sandglass NOLOGIN", "ALTER ROLE sandglass LOGIN"),
        ("another password", "ALTER ROLE sandglass PASSWORD 'x'",
         f"ALTER ROLE sandglass PASSWORD '{PASSWORD}'"),
    ):
        db.sql(do)
        db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'sandglass'")
        wrong += broken(db, owner, sandbox, what)
        db.sql(undo)
        if not poll(lambda: owner.put("c", "back").status in (200, 201), 12):
            wrong.append(f"after {what}: {owner.put('c', 'back')}")
    # Nothing is left: it is made anew, and so are the contexts.
    db.sql("DROP SCHEMA sandglass CASCADE")
    for method, target, body in ROUTES:
        a = owner.ask(method, target, body)
        wrong += answered(f"no schema: {method} {target}", a, 2, 404, 503) + tells(db, a)
    if not poll(lambda: owner.put("c", "anew").status in (200, 201), 12):
        wrong.append(f"after no schema: {owner.put('c', 'anew')}")
    return wrong


# ---- the process ------------------------------------------------------------------------------


def memory_has(pid, word):
    """Whether the process's own pages have it."""
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                span, mode = line.split()[:2]
                start, end = (int(x, 16) for x in span.split("-"))
                if "rw" not in mode or end - start > 64 << 20:
                    continue
                try:
                    mem.seek(start)
                    if word in mem.read(end - start):
                        return True
                except (OSError, ValueError, OverflowError):
                    continue
    except OSError:
        pass
    return False


def tree(pid):
    return [pid] + [p for child in children(pid) for p in tree(child)]


def read(path):
    """Nothing, of a process that has ended."""
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def dbworker_of(site):
    return next((p for p in children(site.process.pid) if "clerk" in status(p).get("Name", "")), None)


def secrets(db, site):
    """The password is in the operator's variable, and in the memory of the three that need it."""
    wrong, front = [], site.front()
    needs = {site.process.pid, front, dbworker_of(site)}
    for pid in tree(site.process.pid):
        name = status(pid).get("Name")
        for file in ("cmdline", "environ"):
            if PASSWORD.encode() in read(f"/proc/{pid}/{file}") \
                    and (pid, file) != (site.process.pid, "environ"):
                wrong.append(f"PWNED it is in {file} of {name}")
        if pid not in needs and memory_has(pid, PASSWORD.encode()):
            wrong.append(f"PWNED it is in the memory of {name}")
    if not memory_has(site.process.pid, PASSWORD.encode()):
        wrong.append("control: the search does not find it where it is")
    for top, _, files in os.walk(site.dir):
        for name in files:
            if PASSWORD.encode() in read(os.path.join(top, name)):
                wrong.append(f"PWNED it is in {os.path.join(top, name)}")
    return wrong


def confined(site):
    """No rights, no files, and a filter."""
    dbworker = dbworker_of(site)
    s, wrong = status(dbworker), []
    for name, value in (("Seccomp", "2"), ("NoNewPrivs", "1"), ("CapEff", "0" * 16), ("CapPrm", "0" * 16),
                        ("CapBnd", "0" * 16), ("CapAmb", "0" * 16), ("Groups", "")):
        if s[name].strip() != value:
            wrong.append(f"{name} is {s[name]}")
    if "0" in s["Uid"].split() or s["Uid"] != status(site.front())["Uid"]:
        wrong.append(f"it is {s['Uid']}")
    opened = [os.readlink(f"/proc/{dbworker}/fd/{fd}") for fd in os.listdir(f"/proc/{dbworker}/fd")]
    wrong += [f"it has {path} open" for path in opened
              if path.startswith("/") and path not in ("/dev/null", site.log)]
    with open(f"/proc/{dbworker}/limits") as f:
        if not re.search(r"Max core file size +0 ", f.read()):
            wrong.append("it may leave a core")
    return wrong


def killed(site, owner):
    """It is started again, and the front and all sandboxes live on."""
    id_, sandbox = owner.obtain("survivor", "p")
    owner.code("survivor", "p", "x = 'kept'")
    front, dbworker = site.front(), dbworker_of(site)
    os.kill(dbworker, 9)
    wrong = [] if poll(lambda: dbworker_of(site) not in (None, dbworker), 10) else ["there is no other"]

    def back():
        try:
            return owner.code("survivor", "p", "x")
        except OSError:
            return None

    a = poll(lambda: (lambda b: b if b and b.status == 200 else None)(back()), 15)
    if not a or b"kept" not in a.body or a.json()["contextId"] != id_:
        wrong.append(f"afterwards: {a}")
    return wrong + ([] if site.front() == front else ["the front went with it"])


with Database() as db:
    with Site("--reap-every", "1s", "--conversation-contexts", "10", "--tenant-contexts", "30",
              env={"SANDGLASS_STORE": db.url}) as site:
        owner, other = Paths(site), Paths(site, site.key_of("other"))
        check("V10 a row that names another's sandbox does it no harm", foreign_sandbox(db, owner, other))
        check("V10 nor that of another path", same_tenant(db, owner))
        check("V10 rows of nonsense are refused, and others served", nonsense(db, owner, other))
        check("V10 no client chooses where it is sent", redirects(db, owner))
        check("V10 a database that breaks is told of, and not where it is", breaks(db, owner))
        check("V10 the password is nowhere else", secrets(db, site))
        check("V10 the clerk has no rights", confined(site))
        check("V10 the server goes on", site.trouble() + owner.trouble() + other.trouble())
        check("V10 a clerk that is killed is replaced", killed(site, owner))
        with open(site.log, errors="replace") as f:
            check("V10 the log does not have the password", re.findall(f".*{PASSWORD}.*", f.read()))
finish()
