"""Attacks from outside on ports of sandboxes. E37."""
import unittest

import attack

SERVE = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (self.headers.get("Host", "") + " " + self.path).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


def setUpModule():
    attack.begin()


class Ingress(attack.Case):
    def served(self, **network):
        """A sandbox that may reach nothing: what comes in comes in all the same."""
        sandbox = self.sandbox(allow_internet_access=False, network=network)
        sandbox.put("/tmp/serve.py", SERVE.encode())
        sandbox.spawn("exec python3 /tmp/serve.py")
        self.assertTrue(attack.until(lambda: sandbox.run("exec 3<>/dev/tcp/127.0.0.1/8000")[0] == 0))
        return sandbox

    def ask(self, sandbox, port=8000, target="/", **headers):
        return attack.site.ask("GET", target, {"E2b-Sandbox-Id": sandbox.id, "E2b-Sandbox-Port": str(port), **headers})

    def test_E37_the_token(self):
        sandbox = self.served(allowPublicTraffic=False)
        token = sandbox.made["trafficAccessToken"]
        header = "E2B-Traffic-Access-Token"
        self.assertEqual(self.ask(sandbox).status, 403)
        for wrong in ("wrong", "", token[:-1], token + "x", token.swapcase() + "x", "0" * len(token)):
            self.assertEqual(self.ask(sandbox, **{header: wrong}).status, 403, wrong)
        other = self.sandbox(network={"allowPublicTraffic": False})
        self.assertEqual(self.ask(sandbox, **{header: other.made["trafficAccessToken"]}).status, 403, "another's")
        self.assertEqual(self.ask(sandbox, **{header: token}).status, 200)
        self.assertEqual(sandbox.network(denyOut=["0.0.0.0/0"]).status, 204)
        self.assertEqual(self.ask(sandbox).status, 403, "a change of what goes out changes nothing of it")

    def test_E37_the_host(self):
        sandbox = self.served(maskRequestHost="inner.test:${PORT}")
        answer = self.ask(sandbox, target="/x")
        self.assertEqual((answer.status, answer.body), (200, b"inner.test:8000 /x"))

    def test_E37_ports_and_paths_of_the_inside(self):
        sandbox = self.served()
        for port in (0, 65536, -1, "8000x", "0x1f40", "", "99999999999999999999"):
            self.assertGreaterEqual(self.ask(sandbox, port).status, 400, port)
        for path in ("/init", "/freeze", "/unfreeze", "/upgrade"):
            self.assertEqual(self.ask(sandbox, 49983, path, **{"X-Access-Token": sandbox.token}).status, 404, path)


if __name__ == "__main__":
    unittest.main()
