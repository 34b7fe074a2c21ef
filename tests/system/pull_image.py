"""Images for the tests of sandglass-pull: layers, configs, manifests, and the requests that fetch them."""
import gzip
import hashlib
import io
import json
import os
import platform
import subprocess
import tarfile

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
OTHER = {"amd64": "arm64", "arm64": "amd64"}[MACHINE]
OCI = "application/vnd.oci.image."
INDEX, MANIFEST, CONFIG, LAYER = OCI + "index.v1+json", OCI + "manifest.v1+json", OCI + "config.v1+json", OCI + "layer.v1.tar+gzip"
PASSWORD = "open sesame 1001"
PASSWORD_HASH = "$2b$04$abcdefghijklmnopqrstuulEb9yTCSDU.A8LJkTMlNstbuo1yweaK"  # bcrypt, as htpasswd writes it
DOCKER_V1 = "application/vnd.docker.distribution.manifest.v1+prettyjws"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar_of(name, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Image:
    """Two layers for each of two machines, below one index."""

    def __init__(self, size=300_000):
        self.blobs, self.manifests, self.layers, entries = {}, {}, {}, []
        for machine in ("amd64", "arm64"):
            tars = [tar_of("first", b"the same for all"), tar_of(machine, os.urandom(size))]
            layers = [gzip.compress(tar, 1, mtime=0) for tar in tars]
            config = json.dumps({
                "os": "linux", "architecture": machine, "rootfs": {"type": "layers", "diff_ids": [digest(t) for t in tars]},
                "config": {"Env": ["A=b", "PATH=/bin"], "WorkingDir": "/work", "User": "somebody", "Cmd": ["sh", "-c", "true"]},
            }).encode()
            manifest = json.dumps({
                "schemaVersion": 2, "mediaType": MANIFEST, "config": self.blob(CONFIG, config),
                "layers": [self.blob(LAYER, layer) for layer in layers],
            }).encode()
            self.layers[machine] = layers
            self.manifests[digest(manifest)] = (MANIFEST, manifest)
            entries.append({"mediaType": MANIFEST, "digest": digest(manifest), "size": len(manifest),
                            "platform": {"os": "linux", "architecture": machine}})
        self.index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
        self.manifests["latest"] = self.manifests[digest(self.index)] = (INDEX, self.index)

    def blob(self, kind, data):
        self.blobs[digest(data)] = data
        return {"mediaType": kind, "digest": digest(data), "size": len(data)}

    def manifest(self):
        """The manifest for this machine, as an object that may be changed."""
        for entry in json.loads(self.index)["manifests"]:
            if entry["platform"]["architecture"] == MACHINE:
                return json.loads(self.manifests[entry["digest"]][1])
        raise KeyError(MACHINE)


class Answer:
    def __init__(self, directory, status, out, err):
        self.status, self.err, self.out = status, err, out
        self.lines = [json.loads(line) for line in out.splitlines()]
        self.last = self.lines[-1] if self.lines else {}
        self.result, self.error = self.last.get("result"), self.last.get("error", {})
        self.files = {name: open(os.path.join(directory, name), "rb").read() for name in os.listdir(directory)}

    def __str__(self):
        return f"status {self.status}, files {sorted(self.files)}, last {self.out.decode()[-600:]} {self.err.decode()[-600:]}"


class Puller:
    """Starts the program as nobody, with its descriptors."""

    def __init__(self, program, place):
        self.program, self.place, self.number = program, place, 0

    def directory(self):
        self.number += 1
        path = os.path.join(self.place, f"layers{self.number}")
        os.mkdir(path)
        os.chown(path, 65534, 65534)
        return path

    def start(self, directory, source=None):
        opened = 'exec "$0" 3<"$1"' + (' 4<"$2"' if source else "")
        return subprocess.Popen(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "bash", "-c", opened,
             self.program, directory, source or ""],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"http_proxy": "http://127.0.0.1:1"})

    def pull(self, directory=None, source=None, **request):
        directory = directory or self.directory()
        child = self.start(directory, source)
        out, err = child.communicate(json.dumps(request).encode(), 60)
        return Answer(directory, child.returncode, out, err)
