#!/usr/bin/python3 -B
"""Makes what the registries have: a package for pip, one for npm, a repository for git.

    packages.py BED-DIRECTORY
"""
import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile

DIRECTORY = sys.argv[1]
NAME, VERSION = "bedpkg", "1.0.0"
SAYS = "hello from the test bed"


def write(path, data):
    path = f"{DIRECTORY}/{path}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def wheel():
    info = f"{NAME}-{VERSION}.dist-info"
    files = {f"{NAME}/__init__.py": f"SAYS = {SAYS!r}\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: bed\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}\n")
    files[f"{info}/RECORD"] = "".join(lines) + f"{info}/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for path, text in files.items():
            z.writestr(path, text)
    return out.getvalue()


def pypi():
    data, file = wheel(), f"{NAME}-{VERSION}-py3-none-any.whl"
    digest = hashlib.sha256(data).hexdigest()
    page = "<!DOCTYPE html><html><body>{}</body></html>\n"
    write(f"www/pypi.test/files/{file}", data)
    write("www/pypi.test/simple/index.html", page.format(f'<a href="{NAME}/">{NAME}</a>'))
    write(f"www/pypi.test/simple/{NAME}/index.html",
          page.format(f'<a href="../../files/{file}#sha256={digest}">{file}</a>'))


def tarball():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for path, text in (("package.json", json.dumps({"name": NAME, "version": VERSION, "main": "index.js"})),
                           ("index.js", f"exports.says = {json.dumps(SAYS)}\n")):
            member = tarfile.TarInfo(f"package/{path}")
            member.size, member.mode = len(text), 0o644
            t.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def npm():
    data = tarball()
    file = f"{NAME}/-/{NAME}-{VERSION}.tgz"
    write(f"www/npm.test/{file}", data)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    one = {"name": NAME, "version": VERSION, "main": "index.js",
           "dist": {"tarball": f"https://npm.test/{file}", "integrity": integrity,
                    "shasum": hashlib.sha1(data).hexdigest()}}
    write(f"www/npm.test/{NAME}/index.html", json.dumps(
        {"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: one}}))


def git():
    """One commit, and pushes are taken."""
    bare, work = f"{DIRECTORY}/git/hello.git", f"{DIRECTORY}/git/work"
    env = {"PATH": os.environ["PATH"], "HOME": DIRECTORY, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=bed", "-c", "user.email=bed@test", "-c", "init.defaultBranch=main"]

    def run(*args, cwd=DIRECTORY):
        subprocess.run(["git", *identity, *args], cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL)

    write("git/work/hello.txt", SAYS + "\n")
    run("init", "--quiet", work)
    run("add", ".", cwd=work)
    run("commit", "--quiet", "--message", "hello", cwd=work)
    run("clone", "--quiet", "--bare", work, bare)
    run("config", "http.receivepack", "true", cwd=bare)


for make in (pypi, npm, git):
    make()
