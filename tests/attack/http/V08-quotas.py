"""V08: more sandboxes than allowed, by asking for all of them at once, in every way there is."""
import concurrent.futures
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from contexts import Paths  # noqa: E402
from host import check, finish, poll  # noqa: E402
from server import Site, answered  # noqa: E402

LIMIT, OF_CONVERSATION, MANY = 10, 5, 200


class Watch(threading.Thread):
    """Counts the tenant's sandboxes, and the places that its contexts have, all the time."""

    def __init__(self, site):
        super().__init__()
        self.site, self.most, self.places, self.over = site, 0, 0, threading.Event()

    def run(self):
        while not self.over.is_set():
            listed = self.site.api("GET", "/v2/sandboxes?limit=100&state=running").json()
            self.most = max(self.most, len(listed))
            rows = self.site.api("GET", "/v1/contexts?limit=200").json()["contexts"]
            taken = [c for c in rows if c["sandboxId"] or c["sandboxStatus"] == "creating"]
            self.places = max(self.places, len(taken))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def at_once(fn, items):
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        return list(pool.map(fn, items))


def count(answers):
    return {s: sum(a.status == s for a in answers) for s in sorted({a.status for a in answers})}


def limited(what, site, fn, items, most):
    """No more than `most` were made, and the others were told why."""
    with Watch(site) as watch:
        answers = at_once(fn, items)
    counts, wrong = count(answers), []
    made = sum(a.status in (200, 201) for a in answers)
    if watch.most > most:
        wrong.append(f"PWNED {watch.most} sandboxes at once, {most} are allowed")
    if made > most or not made:
        wrong.append(f"{made} of {most} were made: {counts}")
    for a in answers:
        if a.status not in (200, 201, 429) or a.status == 429 and b"limit" not in a.body.lower():
            wrong.append(str(a))
    check(what, wrong[:3], f"{counts}, {watch.most} at once")


def end_all(paths):
    """All contexts of the tenant end, and their sandboxes with them."""
    for c in paths.ask("GET", "/v1/contexts?limit=200").json()["contexts"]:
        paths.ask("DELETE", f"/v1/contexts/{c['id']}")
    poll(lambda: not paths.site.api("GET", "/v2/sandboxes").json())


def same_path(site, paths):
    """One sandbox for all who ask, and exactly one of them made it."""
    wrong = []
    for i in range(5):
        answers = at_once(lambda _: paths.put("same", str(i)), range(64))
        ids = {a.json()["sandbox"]["sandboxID"] for a in answers if a.status in (200, 201)}
        if len(ids) != 1 or count(answers) != {200: 63, 201: 1}:
            wrong.append(f"{len(ids)} sandboxes, {count(answers)}")
    return wrong


def by_create(site, i):
    """E2B's create with names is the same door."""
    return site.api("POST", "/v2/sandboxes", {"templateID": "base", "metadata": {
        "sandglass.conversation": f"e2b-{i}", "sandglass.path": "p"}})


def layers(site):
    found = [os.path.join(top, name) for top, names, _ in os.walk(site.state) for name in names
             if len(name) == 20]
    return [f for f in found if os.path.basename(os.path.dirname(f)).startswith("layer")]


def branches(site, paths):
    """A storm of branches with files: within the limit, one at a time, and nothing is left."""
    paths.code("tree", "root", "import os\nopen('large', 'wb').write(os.urandom(64 << 20))")
    before = len(layers(site))

    def branch(i):
        return paths.ask("POST", "/v1/contexts/branch", {
            "conversationId": "tree", "fromPathId": "root", "toPathId": f"b{i}", "inherit": "files"})

    with Watch(site) as watch:
        answers = at_once(branch, range(60))
    wrong = [str(a) for a in answers if a.status not in (201, 409, 429)][:3]
    if watch.most > OF_CONVERSATION:
        wrong.append(f"PWNED {watch.most} sandboxes at once")
    made = [a for a in answers if a.status == 201 and a.json()["context"]]
    if not 0 < len(made) < OF_CONVERSATION:
        wrong.append(f"{len(made)} branches were made")
    for a in made:
        got = paths.code("tree", a.json()["pathId"], "import os\nos.path.getsize('large')").json()
        if got["results"][0]["text"] != str(64 << 20):
            wrong.append(f"a branch has {got}")
    end_all(paths)
    if not poll(lambda: len(layers(site)) <= before):
        wrong.append(f"{len(layers(site)) - before} layers are left")
    return wrong, f"{count(answers)}"


def churn(site, paths):
    """Made, ended, replaced and merged at the same time on few paths: never more than allowed."""
    stop, wrong = time.monotonic() + 3, []

    def worker(n):
        while time.monotonic() < stop:
            a = paths.put("churn", str(n % 7))
            if a.status in (200, 201) and n % 3 == 0:
                site.api("DELETE", f"/sandboxes/{a.json()['sandbox']['sandboxID']}")
            elif a.status in (200, 201) and n % 3 == 1:
                paths.ask("DELETE", f"/v1/contexts/{a.json()['context']['id']}")
            elif n % 3 == 2:
                paths.ask("POST", "/v1/contexts/merge", {
                    "conversationId": "churn", "sourcePathId": str(n % 7), "targetPathId": "x"})
            if a.status not in (200, 201, 429, 503):
                wrong.append(str(a))

    with Watch(site) as watch:
        at_once(worker, range(24))
    active = paths.ask("GET", "/v1/contexts?conversationId=churn&limit=200").json()["contexts"]
    # A place is free when its context has ended; the sandbox may need a moment more.
    if watch.places > OF_CONVERSATION or watch.most > 2 * OF_CONVERSATION:
        wrong.append(f"PWNED {watch.places} places, {watch.most} sandboxes at once")
    if len(active) != len({c["pathId"] for c in active}):
        wrong.append(f"PWNED a path has two contexts: {active}")
    named = {c["sandboxId"] for c in active}

    def strays():
        return {b["sandboxID"] for b in site.api("GET", "/v2/sandboxes?limit=100").json()} - named

    if not poll(lambda: not strays(), 8):
        wrong.append(f"sandboxes without a context: {strays()}")
    return wrong[:3]


with Site("--tenant-contexts", str(LIMIT), "--conversation-contexts", str(OF_CONVERSATION),
          "--tenant-rate", "100000", "--reap-every", "1s") as site:
    paths, other = Paths(site), Paths(site, site.key_of("other"))
    limited(f"V08 {MANY} paths at once, {LIMIT} of a tenant", site,
            lambda i: paths.put(f"c{i}", "p"), range(MANY), LIMIT)
    check("V08 another tenant has its own", answered("put", other.put("c", "p"), 201))
    end_all(paths)
    limited("V08 neither by E2B's create", site, lambda i: by_create(site, i), range(20), LIMIT)
    end_all(paths)
    limited(f"V08 {MANY} paths at once, {OF_CONVERSATION} of a conversation", site,
            lambda i: paths.put("c", str(i)), range(MANY), OF_CONVERSATION)
    end_all(paths)
    limited("V08 nor by run_code", site, lambda i: paths.code(f"c{i}", "p", "1"), range(60), LIMIT)
    end_all(paths)
    check("V08 one path, many callers: one sandbox", same_path(site, paths))
    end_all(paths)
    more, note = branches(site, paths)
    check("V08 a storm of branches", more, note)
    check("V08 paths that are made and ended at the same time", churn(site, paths))
    check("V08 the server goes on", site.trouble() + other.trouble())
finish()
