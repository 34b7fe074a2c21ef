"""A small Debian as a tar file, of this machine's own packages: what a template of a whole root file system is tried with."""
import io
import os
import re
import stat
import subprocess
import tarfile

WANTED = ["apt", "passwd", "python3", "procps"]  # and the essential ones
DIRS = {"tmp": 0o1777, "var/tmp": 0o1777, "proc": 0o555, "sys": 0o555, "dev": 0o755, "root": 0o700, "home": 0o755, "run": 0o755,
        "var/lib/dpkg/info": 0o755, "var/lib/dpkg/updates": 0o755, "var/lib/dpkg/triggers": 0o755, "var/lib/apt/lists/partial": 0o755,
        "var/cache/apt/archives/partial": 0o755, "var/log/apt": 0o755, "etc/apt/sources.list.d": 0o755,
        "etc/apt/apt.conf.d": 0o755, "etc/apt/preferences.d": 0o755, "etc/apt/trusted.gpg.d": 0o755, "repo": 0o755, "usr/local": 0o755}
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
TEXTS = {"etc/passwd": "root:x:0:0:root:/root:/bin/bash\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
                       "user:x:1000:1000::/home/user:/bin/bash\npostgres:x:105:110::/var/tmp:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
         "etc/group": "root:x:0:\nshadow:x:42:\nuser:x:1000:\nnogroup:x:65534:\n",
         "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
         "etc/debian_version": "of the test\n",
         "etc/apt/sources.list": "deb [trusted=yes] file:/repo ./\n",
         "etc/apt/apt.conf.d/test": 'APT::Sandbox::User "root";\n',
         "marker": "a file of the world\n"}


def packages():
    """What the wanted packages need, and each one's paragraph of dpkg's database."""
    paragraphs, provides = {}, {}
    with open("/var/lib/dpkg/status", encoding="utf-8") as file:
        for text in file.read().split("\n\n"):
            fields = dict(re.findall(r"^(\S+): (.*)$", text, re.M))
            if fields.get("Status") == "install ok installed":
                paragraphs[fields["Package"]] = (text, fields)
                for name in re.findall(r"([\w.+-]+)(?: \(.*?\))?", fields.get("Provides", "")):
                    provides.setdefault(name, fields["Package"])
    essential = [name for name, (_, fields) in paragraphs.items() if fields.get("Essential") == "yes"]
    found, todo = {}, [[name] for name in WANTED + essential]
    while todo:
        here = [name if name in paragraphs else provides.get(name) for name in todo.pop()]
        name = next((name for name in here if name), None)
        if name is None or name in found:
            continue
        text, fields = paragraphs[name]
        found[name] = text
        for kind in ("Pre-Depends", "Depends"):
            todo += [re.findall(r"(?:^|\|)\s*([\w.+-]+)", choices) for choices in fields.get(kind, "").split(",")]
    return found


def files(names):
    listed = subprocess.run(["dpkg", "-L", *names], capture_output=True, text=True, check=True).stdout
    skip = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/")
    paths = {os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in listed.splitlines()
             if p.startswith("/") and p != "/." and not p.startswith(skip)}
    return sorted(p for p in paths if os.path.lexists(p) and p.lstrip("/") not in TEXTS)


def put(tar, name, mode, text=None, link=None, uid=0):
    info = tarfile.TarInfo(name)
    info.mode, info.uid, info.gid, info.mtime = mode, uid, uid, 1700000000
    info.type = tarfile.SYMTYPE if link else tarfile.REGTYPE if text is not None else tarfile.DIRTYPE
    info.linkname, data = link or "", (text or "").encode()
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def make(path):
    found = packages()
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for name in files(found):
            if stat.S_IFMT(os.lstat(name).st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                tar.add(name, recursive=False)
        for name, mode in DIRS.items():
            put(tar, name, mode)
        put(tar, "home/user", 0o755, uid=1000)
        for name, target in LINKS.items():
            put(tar, name, 0o777, link=target)
        for name, text in TEXTS.items():
            put(tar, name, 0o644, text)
        put(tar, "var/lib/dpkg/status", 0o644, "\n\n".join(found.values()) + "\n")
        put(tar, "usr/lib/os-release", 0o644, 'ID=world\nNAME="A world of the test"\n')
