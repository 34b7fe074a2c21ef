"""G14: tokens and keys that were good once, or are good elsewhere."""
import http.client
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, poll  # noqa: E402
from program import SANDGLASS  # noqa: E402
from server import Site, answered  # noqa: E402

SERVER = "cd /tmp && exec python3 -m http.server 8000 --bind 127.0.0.1"


def envs(site, sandbox, token):
    return site.ask("GET", "/envs", {"E2b-Sandbox-Id": sandbox.id, "X-Access-Token": token})


def access_tokens(site):
    sandbox, other = site.create(), site.create()
    wrong = answered("control", envs(site, sandbox, sandbox.token), 200)
    wrong += answered("of another sandbox", envs(site, sandbox, other.token), 401)
    wrong += answered("an API key", envs(site, sandbox, site.key), 401)
    site.api("POST", f"/sandboxes/{sandbox.id}/pause", {})
    wrong += answered("paused", envs(site, sandbox, sandbox.token), 502)
    site.api("POST", f"/v2/sandboxes/{sandbox.id}/connect", {"timeout": 60})
    wrong += answered("resumed", envs(site, sandbox, sandbox.token), 200)
    wrong += answered("resumed, of another", envs(site, sandbox, other.token), 401)
    sandbox.kill()
    wrong += answered("after the end", envs(site, sandbox, sandbox.token), 502)
    wrong += answered("of an ended one", envs(site, other, sandbox.token), 401)
    return wrong


def traffic_tokens(site):
    sandboxes = [site.create(network={"allowPublicTraffic": False}) for _ in range(2)]
    tokens = [b.made.get("trafficAccessToken") for b in sandboxes]
    if not all(tokens) or tokens[0] == tokens[1]:
        return [f"traffic tokens are {tokens}"]
    sandbox = sandboxes[0]
    sandbox.spawn(SERVER)

    def get_port(token):
        headers = {"E2b-Sandbox-Id": sandbox.id, "E2b-Sandbox-Port": "8000"}
        return site.ask("GET", "/", headers | ({"E2b-Traffic-Access-Token": token} if token else {}))

    poll(lambda: get_port(tokens[0]).status == 200)
    wrong = answered("control", get_port(tokens[0]), 200)
    for what, token in (("none", None), ("empty", ""), ("of another", tokens[1]), ("cut",
                        tokens[0][:-1]), ("access token", sandbox.token), ("API key", site.key)):
        wrong += answered(what, get_port(token), 403)
    wrong += answered("a traffic token as access token", envs(site, sandbox, tokens[0]), 401)
    sandbox.kill()
    return wrong + answered("after the end", get_port(tokens[0]), 502)


def revoked_keys(site):
    key = site.key_of("short")
    c = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)

    def status():
        c.request("GET", "/v2/sandboxes", headers={"X-API-Key": key})
        r = c.getresponse()
        r.read()
        return r.status

    before = status()
    subprocess.run([SANDGLASS, "key", "revoke", "--state", site.state, key], check=True,
                   stdout=subprocess.DEVNULL)
    after = status()
    c.close()
    return [] if (before, after) == (200, 401) else [f"{before}, then {after}"]


with Site() as site:
    check("G14 access tokens are good for one sandbox, while it lives", access_tokens(site))
    check("G14 so are traffic tokens", traffic_tokens(site))
    check("G14 a revoked key is refused on a connection that it opened", revoked_keys(site))
    check("G14 the server goes on", site.trouble())
finish()
