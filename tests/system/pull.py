"""The steps behind pull.sh: images that are fetched, and those that must not be."""
import base64
import gzip
import http.client
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.parse

from pull_hostile import ACCOUNT, IDENTITY, TOKEN, Proxy, Registry, Server, tls
from pull_image import INDEX, MACHINE, OTHER, PASSWORD, PASSWORD_HASH, Image, Puller, digest, tar_of

number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail:
        print("# " + str(detail).replace("\n", "\n# "))
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def fetched(answer, image, machine=MACHINE):
    """Everything of an image is there, and nothing else."""
    layers = {digest(layer): layer for layer in image.layers[machine]}
    r = answer.result or {}
    return (answer.status == 0 and answer.files == layers and r.get("architecture") == machine
            and [layer["digest"] for layer in r["layers"]] == list(layers)
            and r["config"] == {"Env": ["A=b", "PATH=/bin"], "WorkingDir": "/work", "User": "somebody", "Entrypoint": [],
                                "Cmd": ["sh", "-c", "true"]})


def refused(answer, code, *words):
    """One clear error, nothing left, no secret told."""
    said = answer.error.get("message", "")
    return (answer.status == 1 and not answer.files and answer.error.get("code") == code and all(w in said for w in words)
            and answer.err == b"" and PASSWORD.encode() not in answer.out and TOKEN.encode() not in answer.out
            and sum("error" in line for line in answer.lines) == 1 and "\n" not in said)


# ---- a real registry

class Real:
    """Debian's docker-registry, with a user."""

    def __init__(self, place, port, user=None):
        self.host, self.auth = f"localhost:{port}", {}
        config = {"version": 0.1, "log": {"level": "error"}, "storage": {"filesystem": {"rootdirectory": f"{place}/registry{port}"}},
                  "http": {"addr": f"127.0.0.1:{port}"}}
        if user:
            with open(f"{place}/htpasswd", "w", encoding="ascii") as f:
                f.write(f"{user}:{PASSWORD_HASH}\n")
            config["auth"] = {"htpasswd": {"realm": "test", "path": f"{place}/htpasswd"}}
            self.auth = {"Authorization": "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()}
        with open(f"{place}/registry{port}.yml", "w", encoding="ascii") as f:
            json.dump(config, f)
        with open(f"{place}/registry{port}.log", "wb") as log:
            self.child = subprocess.Popen(["docker-registry", "serve", f"{place}/registry{port}.yml"], stdout=log, stderr=log)
        for _ in range(200):
            try:
                self.ask("GET", "/v2/")
                break
            except OSError:
                time.sleep(0.05)

    def ask(self, method, path, body=None, **headers):
        c = http.client.HTTPConnection("127.0.0.1", int(self.host.split(":")[1]), timeout=10)
        c.request(method, path, body, {**self.auth, **headers})
        answer = c.getresponse()
        answer.read()
        return answer

    def push(self, name, image):
        for d, data in image.blobs.items():
            at = urllib.parse.urlsplit(self.ask("POST", f"/v2/{name}/blobs/uploads/").getheader("Location"))
            self.ask("PUT", f"{at.path}?{at.query}&digest={urllib.parse.quote(d)}", data)
        statuses = [self.ask("PUT", f"/v2/{name}/manifests/{d}", body, **{"Content-Type": kind}).status
                    for d, (kind, body) in sorted(image.manifests.items(), key=lambda m: m[1][0] == INDEX)]
        check(f"the registry takes the image {name}", set(statuses) == {201}, statuses)

    def end(self):
        self.child.terminate()
        self.child.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def real_registry(puller, place):
    image, real = Image(3_000_000), Real(place, free_port())
    try:
        real.push("a/b", image)
        open_to = {"registries": {real.host: "http"}}
        a = puller.pull(image=f"{real.host}/a/b", **open_to)
        check("an image by tag, for this machine", fetched(a, image), a)
        check("progress is told, to the last byte", any(line.get("progress", {}).get("bytes") == len(image.layers[MACHINE][1])
                                                        for line in a.lines), a)
        a = puller.pull(image=f"{real.host}/a/b", architecture=OTHER, **open_to)
        check("for another machine", fetched(a, image, OTHER), a)
        a = puller.pull(image=f"{real.host}/a/b@{digest(image.index)}", **open_to)
        check("by digest", fetched(a, image), a)
        have = digest(image.layers[MACHINE][1])
        a = puller.pull(image=f"{real.host}/a/b", have=[have], **open_to)
        check("layers that are there are not fetched", a.status == 0 and list(a.files) == [digest(image.layers[MACHINE][0])], a)
        check("but told", have in [layer["digest"] for layer in a.result["layers"]], a)
        check("each layer that came is told when it is there", [line["layer"]["digest"] for line in a.lines if "layer" in line] ==
              [digest(image.layers[MACHINE][0])], a)
        known = a.result["digest"]
        a = puller.pull(image=f"{real.host}/a/b", known=known, **open_to)
        check("of an image that is known nothing is fetched", a.status == 0 and not a.files and a.result["digest"] == known, a)
        a = puller.pull(image=f"{real.host}/a/b", only=["docker.io", real.host], sync=False, **open_to)
        check("a registry that is listed", fetched(a, image), a)
        a = puller.pull(image=f"{real.host}/a/b", only=["docker.io"], **open_to)
        check("and one that is not", refused(a, "forbidden", real.host, "build_registries"), a)
        a = puller.pull(image=f"{real.host}/a/b:v2", **open_to)
        check("a tag that is not there", refused(a, "not_found", real.host, "MANIFEST_UNKNOWN"), a)
        a = puller.pull(image=f"{real.host}/a/b")
        check("a registry inside that nobody allowed", refused(a, "forbidden", "loopback"), a)
        files(puller, place, real, image)
    finally:
        real.end()


def private_registry(puller, place):
    image, real = Image(), Real(place, free_port(), "user")
    try:
        real.push("private", image)
        ask = {"image": f"{real.host}/private", "registries": {real.host: "http"}}
        a = puller.pull(**ask)
        check("a private image without credentials", refused(a, "denied", "user and a password"), a)
        a = puller.pull(**ask, credentials={"type": "registry", "username": "user", "password": PASSWORD})
        check("and with", fetched(a, image), a)
        a = puller.pull(**ask, credentials={"type": "registry", "username": "user", "password": PASSWORD + "!"})
        check("and with wrong ones", refused(a, "denied", "these credentials"), a)
    finally:
        real.end()


# ---- files of a real program

def files(puller, place, real, image):
    def copy(to):
        return subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false", f"docker://{real.host}/a/b", to],
                              capture_output=True, text=True, check=False)

    copies = [copy(f"oci:{place}/oci:mine"), copy(f"oci-archive:{place}/oci.tar:mine"), copy(f"docker-archive:{place}/docker.tar:me/mine:v1")]
    check("skopeo writes the image into files", not any(c.returncode for c in copies), [c.stderr for c in copies])
    subprocess.run(["chmod", "-R", "a+rX", f"{place}/oci", f"{place}/oci.tar", f"{place}/docker.tar"], check=False)
    for name, source, kind in ("a layout", "oci", "layout"), ("a tar of one", "oci.tar", "archive"):
        a = puller.pull(source=f"{place}/{source}", **{"from": kind})
        check(name, fetched(a, image), a)
        a = puller.pull(source=f"{place}/{source}", image="other", **{"from": kind})
        check(f"{name}, another image", refused(a, "not_found", "'other'"), a)
    a = puller.pull(source=f"{place}/docker.tar", image="me/mine:v1", **{"from": "archive"})
    diff_ids = [layer["diffId"] for layer in a.result["layers"]] if a.result else []
    check("what docker save writes", a.status == 0 and sorted(a.files) == sorted(diff_ids), a)
    check("its layers are what they were", all(digest(data) == name for name, data in a.files.items()), a)
    broken(puller, place)


def broken(puller, place):
    blob = max((os.path.join(d, f) for d, _, names in os.walk(f"{place}/oci") for f in names), key=os.path.getsize)
    with open(blob, "r+b") as f:
        f.seek(1000)
        f.write(b"other")
    a = puller.pull(source=f"{place}/oci", **{"from": "layout"})
    check("a layout with a changed layer", refused(a, "corrupt", "another content"), a)
    os.remove(blob)
    os.symlink("/etc/passwd", blob)
    a = puller.pull(source=f"{place}/oci", **{"from": "layout"})
    check("a layout with a link that leads out", refused(a, "corrupt", "is a link"), a)
    os.truncate(f"{place}/docker.tar", 100_000)
    a = puller.pull(source=f"{place}/docker.tar", **{"from": "archive"})
    check("an archive that was cut", refused(a, "corrupt", "ends inside"), a)
    a = puller.pull(source=puller.program, **{"from": "archive"})
    check("an archive that is none", refused(a, "corrupt", "no tar"), a)
    saved(puller, place)


def saved(puller, place):
    """What older versions of docker save write: the same layer twice is a link; other programs compress."""
    tar = tar_of("file", b"x" * 5000)
    zipped, names = gzip.compress(tar, mtime=0), ["a/layer.tar", "b/layer.tar", "c/layer.tar"]

    def pull(diff_ids, images=1, **more):
        config = {"os": "linux", "architecture": MACHINE, "rootfs": {"type": "layers", "diff_ids": diff_ids}, "config": {}}
        entry = {"Config": "config.json", "RepoTags": ["mine:1"], "Layers": names}
        with tarfile.open(f"{place}/saved.tar", "w") as out:
            for name, data in ((names[0], tar), (names[1], None), (names[2], zipped), ("config.json", json.dumps(config).encode()),
                               ("manifest.json", json.dumps([entry] * images).encode())):
                info = tarfile.TarInfo(name)
                info.size = len(data or b"")
                if data is None:
                    info.type, info.linkname = tarfile.SYMTYPE, "../a/layer.tar"
                out.addfile(info, io.BytesIO(data or b""))
        return puller.pull(source=f"{place}/saved.tar", **{"from": "archive"}, **more)

    a = pull([digest(tar)] * 3, image="docker.io/library/mine:1")
    check("layers that are links, and compressed ones", a.status == 0 and a.files == {digest(tar): tar, digest(zipped): zipped}
          and [layer["digest"] for layer in a.result["layers"]] == [digest(tar), digest(tar), digest(zipped)], a)
    a = pull([digest(b"other")] * 3)
    check("a layer that is not what the config says", refused(a, "corrupt", "another content"), a)
    a = pull([digest(tar)] * 2)
    check("a layer of which the config says nothing", refused(a, "corrupt", "2 layers"), a)
    a = pull([digest(tar)] * 3, images=2)
    check("several images and no name", refused(a, "invalid", "say which one"), a)


# ---- one that lies

def hostile(puller):
    server = Server(Registry)
    host = f"localhost:{server.port}"
    image = Registry.image
    quick = {"registries": {host: "http"}, "limits": {"attempts": 3, "stallSeconds": 1, "connectSeconds": 2, "seconds": 20}}

    def pull(name, **more):
        return puller.pull(image=f"{host}/{name}", **{**quick, **more})

    a = pull("right")
    check("the hostile registry can be honest", fetched(a, image), a)
    for name, code, words in (
            ("html", "corrupt", ["text/html", "is it a registry?"]), ("not-json", "corrupt", ["not JSON"]),
            ("gzip", "corrupt", ["compressed"]), ("endless", "too_large", ["4194304 bytes"]),
            ("announced", "too_large", ["4194304 bytes"]), ("schema1", "unsupported", ["schema 1"]),
            ("other", "corrupt", ["promised"]), ("foreign", "unsupported", ["fetched from elsewhere"]),
            ("head", "corrupt", ["head of more than"]), ("moved", "forbidden", ["5 times"]),
            ("inside", "forbidden", ["cloud metadata"]), ("name-inside", "forbidden", ["loopback"]),
            ("elsewhere", "forbidden", ["another kind"]), ("hang", "timeout", ["in time"]),
            ("always-busy", "busy", ["503", "TOOMANYREQUESTS"]), ("teapot", "corrupt", ["418"]),
            ("absent", "not_found", [host, "MANIFEST_UNKNOWN"]), ("stall", "timeout", ["in time"]), ("config", "corrupt", ["another content"]),
            ("changed", "corrupt", ["another content"]), ("short", "corrupt", ["bytes, not"]), ("long", "corrupt", ["bytes, not"]),
            ("part", "corrupt", ["another part"]), ("always-cut", "network", ["broke"]),
            ("proof", "unsupported", ["proof"]), ("token-inside", "forbidden", ["loopback"]),
            ("token-file", "forbidden", ["another kind"])):
        a = pull(name)
        check(f"a lie: {name}", refused(a, code, *words), a)
    a = pull("endless@" + digest(image.index))
    check("a lie: endless, by digest", refused(a, "too_large"), a)
    for name in "cut", "from-start", "busy":
        a = pull(name)
        check(f"trouble that passes: {name}", fetched(a, image), a)
        check(f"it was told: {name}", any("waiting" in line for line in a.lines), a)
    check("only the rest was asked for", any(h.get("Range") for _, path, h, _ in server.seen if "/cut/" in path))
    limits(pull, image)
    killed(puller, host)


def limits(pull, image):
    largest = max(len(layer) for layer in image.layers[MACHINE])
    a = pull("right", limits={"layerBytes": largest - 1})
    check("a layer that is too large", refused(a, "too_large", "bytes, more than"), a)
    a = pull("right", limits={"totalBytes": largest})
    check("layers that are too large together", refused(a, "too_large", "the image's layers"), a)
    a = pull("right", limits={"layers": 1})
    check("too many layers", refused(a, "too_large", "2 layers"), a)
    a = pull("slow", limits={"seconds": 2})
    check("an image that takes too long", refused(a, "timeout", "more than 2 seconds"), a)


def killed(puller, host):
    directory = puller.directory()
    child = puller.start(directory)
    child.stdin.write(json.dumps({"image": f"{host}/slow", "registries": {host: "http"}}).encode())
    child.stdin.close()
    for _ in range(200):
        if any(name.endswith(".part") and os.path.getsize(f"{directory}/{name}") for name in os.listdir(directory)):
            break
        time.sleep(0.05)
    with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    with open(f"/proc/{child.pid}/limits", encoding="ascii") as f:
        limits = [line.split() for line in f]
    core, data = ([words[-2] for words in limits if words[1] == what] for what in ("core", "data"))
    check("it has a filter, no rights, limited memory, and leaves no core", status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
          and int(status["CapEff"], 16) == 0 and core == ["0"] and data == [str(512 << 20)], (status, limits))
    child.send_signal(signal.SIGTERM)
    out = child.stdout.read()
    check("one that is cancelled says so", child.wait() == 1 and b'"cancelled"' in out, out)
    check("and leaves nothing", not os.listdir(directory), os.listdir(directory))


def no_room(puller, host):
    directory = puller.directory()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k,mode=700,uid=65534,gid=65534", "none", directory], check=True)
    try:
        a = puller.pull(directory, image=f"{host}/right", registries={host: "http"})
        check("a disk that is full", refused(a, "storage", "write layer"), a)
    finally:
        subprocess.run(["umount", directory], check=True)


# ---- credentials

def credentials(puller):
    server, other = Server(Registry), Server(Registry)
    host, elsewhere = f"localhost:{server.port}", f"127.0.0.1:{other.port}"
    mine = {"registries": {host: "http", elsewhere: "http"}}
    user = {"type": "registry", "username": "user", "password": PASSWORD}
    Registry.others = {"store": f"http://{elsewhere}", "token": f"http://{elsewhere}"}
    a = puller.pull(image=f"{host}/basic", credentials=user, **mine)
    check("a redirect to where layers are stored", fetched(a, Registry.image), a)
    asked = [h for _, path, h, _ in other.seen if "/blobs/" in path]
    check("it is followed without credentials", len(asked) >= 3 and not any("Authorization" in h for h in asked), asked)
    check("which the registry got", any("Authorization" in h for _, _, h, _ in server.seen))
    a = puller.pull(image=f"{host}/token", credentials=user, **mine)
    check("a token for user and password", fetched(a, Registry.image), a)
    asked = [path for _, path, _, _ in other.seen if path.startswith("/token")]
    check("it is asked for one repository", asked and "scope=repository%3atoken%3apull" in asked[-1].lower() and "service=s" in asked[-1], asked)
    a = puller.pull(image=f"{host}/gcp", credentials={"type": "gcp", "serviceAccountJson": ACCOUNT}, **mine)
    check("a registry of Google, with an account", fetched(a, Registry.image), a)
    a = puller.pull(image=f"{host}/token", credentials={"type": "identity", "token": IDENTITY}, **mine)
    check("a token for an identity token", fetched(a, Registry.image), a)
    a = puller.pull(image=f"{host}/token", **mine)
    check("no token without a password", refused(a, "denied", elsewhere), a)
    Registry.others["anonymous"] = True
    a = puller.pull(image=f"{host}/token", **mine)
    check("a token for nobody", fetched(a, Registry.image), a)
    a = puller.pull(image=f"{host}/token", registries={host: "http"})
    check("a token of a host that nobody allowed", refused(a, "forbidden", "not encrypted"), a)
    no_room(puller, host)


# ---- encryption, a proxy, AWS

def certificates(place):
    names = "subjectAltName=DNS:localhost,DNS:registry.test,DNS:api.ecr.eu-west-1.amazonaws.com"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=test", "-addext", names, "-keyout", f"{place}/key.pem", "-out", f"{place}/cert.pem"],
                   check=True, capture_output=True)
    with open(f"{place}/cert.pem", encoding="ascii") as f:
        return f.read()


def encrypted(puller, place):
    pem = certificates(place)
    secure, plain = Server(Registry, tls(f"{place}/cert.pem", f"{place}/key.pem")), Server(Registry)
    host, ask = f"localhost:{secure.port}", {"certificates": pem}
    image = Registry.image
    Registry.others["plain"] = f"http://localhost:{plain.port}"
    mine = {host: "https", f"localhost:{plain.port}": "http"}
    a = puller.pull(image=f"{host}/right", registries=mine, **ask)
    check("an encrypted registry", fetched(a, image), a)
    a = puller.pull(image=f"{host}/right", registries=mine)
    check("one that nobody vouches for", refused(a, "certificate", "cannot be trusted"), a)
    a = puller.pull(image=f"127.0.0.1:{secure.port}/right", registries={f"127.0.0.1:{secure.port}": "https"}, **ask)
    check("one of another name", refused(a, "certificate", "cannot be trusted"), a)
    a = puller.pull(image=f"{host}/plain", registries=mine, **ask)
    check("a redirect to what is not encrypted", refused(a, "forbidden", "not encrypted") and not plain.seen, a)
    proxied(puller, secure, ask)


def proxied(puller, secure, ask):
    proxy = Server(Proxy)
    Proxy.targets = {"registry.test:443": secure.port, "api.ecr.eu-west-1.amazonaws.com:443": secure.port}
    through = {**ask, "proxy": f"http://127.0.0.1:{proxy.port}"}
    a = puller.pull(image="registry.test/right", **through)
    check("through a proxy, which knows the name", fetched(a, Registry.image), a)
    a = puller.pull(image="registry.test:444/right", **through)
    check("where the proxy does not let us", refused(a, "denied", "the proxy", "registry.test:444"), a)
    a = puller.pull(image="10.0.0.1/right", **through)
    check("to an address inside", refused(a, "forbidden", "private network"), a)
    Registry.others["store"] = "https://registry.test"
    aws = {"type": "aws", "awsAccessKeyId": "AKID", "awsSecretAccessKey": PASSWORD, "awsRegion": "eu-west-1"}
    a = puller.pull(image="registry.test/ecr", credentials=aws, **through)
    check("a registry of AWS, with a key", fetched(a, Registry.image), a)
    check("no header of ours reaches the proxy", not any("Authorization" in h for _, _, h, _ in proxy.seen), proxy.seen)


def main():
    program, place = sys.argv[1], sys.argv[2] + "/pull"
    os.mkdir(place, 0o755)
    puller = Puller(shutil.copy(program, place + "/sandglass-pull"), place)
    child = subprocess.run([puller.program], capture_output=True, check=False, close_fds=True)
    check("it is not started by hand", child.returncode == 2 and b"by hand" in child.stderr, child)
    real_registry(puller, place)
    private_registry(puller, place)
    hostile(puller)
    credentials(puller)
    encrypted(puller, place)


if __name__ == "__main__":
    main()
