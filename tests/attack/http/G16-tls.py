"""G16: old versions and weak ciphers of TLS, renegotiation, and the key's file."""
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from program import SANDGLASS  # noqa: E402
from server import Site  # noqa: E402

warnings.simplefilter("ignore", DeprecationWarning)
OLD = ("TLSv1", "TLSv1_1")
WEAK = ("NULL", "RC4", "3DES", "ADH", "EXPORT", "AES128-SHA", "CAMELLIA", "kRSA", "PSK")


def make_pair(where):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-keyout", f"{where}/key.pem", "-out", f"{where}/cert.pem"],
                   check=True, capture_output=True)
    os.chmod(f"{where}/key.pem", 0o600)
    return "--tls-cert", f"{where}/cert.pem", "--tls-key", f"{where}/key.pem"


def client(version=None, ciphers=None):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    if version:
        c.set_ciphers("ALL:@SECLEVEL=0")
        c.minimum_version = c.maximum_version = getattr(ssl.TLSVersion, version)
    if ciphers:
        c.maximum_version = ssl.TLSVersion.TLSv1_2
        c.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    return c


def speak(site, context):
    """The first line of an answer, or the error."""
    try:
        with socket.create_connection(("127.0.0.1", site.port), 15) as raw, \
                context.wrap_socket(raw) as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            return s.recv(100)
    except (ssl.SSLError, OSError) as e:
        return e


def versions(site):
    wrong = []
    for version in ("TLSv1_2", "TLSv1_3"):
        got = speak(site, client(version))
        if not isinstance(got, bytes) or not got.startswith(b"HTTP/1.1 2"):
            wrong.append(f"{version} does not work: {got}")
    for version in OLD:
        got = speak(site, client(version))
        if isinstance(got, bytes):
            wrong.append(f"PWNED {version} works")
    for name in WEAK:
        try:
            context = client(ciphers=name)
        except ssl.SSLError:
            continue  # this OpenSSL has forgotten it
        if isinstance(speak(site, context), bytes):
            wrong.append(f"PWNED {name} works")
    return wrong


def renegotiation(site):
    p = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{site.port}", "-tls1_2"],
                       input=b"R\nGET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
                       capture_output=True, timeout=30)
    return ["PWNED it works"] if b"HTTP/1.1 2" in p.stdout else []


def plain(site):
    got = site.say(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
    return [f"plain text is answered: {got[:80]}"] if got.startswith(b"HTTP/1.1 2") else []


def refused(*options):
    """Complaints if the server starts with these."""
    where = tempfile.mkdtemp(prefix="sandglass-attack-", dir="/var/tmp")
    try:
        p = subprocess.run([SANDGLASS, "serve", "--state", f"{where}/state", *options], text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        return [] if p.returncode != 0 and p.stderr else [f"status {p.returncode}: {p.stderr}"]
    except subprocess.TimeoutExpired:
        return ["it serves"]
    finally:
        shutil.rmtree(where, ignore_errors=True)


where = tempfile.mkdtemp(prefix="sandglass-attack-", dir="/var/tmp")
try:
    pair = make_pair(where)
    with Site(*pair) as site:
        check("G16 only TLS 1.2 and 1.3, and only good ciphers", versions(site))
        check("G16 no renegotiation", renegotiation(site))
        check("G16 no plain text beside it", plain(site))
    os.chmod(f"{where}/key.pem", 0o644)
    check("G16 a key that everybody can read is refused", refused("--listen", "127.0.0.1:0", *pair))
    check("G16 other machines are not served without TLS", refused("--listen", "0.0.0.0:0"))
finally:
    shutil.rmtree(where)
finish()
