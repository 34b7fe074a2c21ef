"""Volumes as archives: the steps behind volumes.sh."""
import glob
import io
import json
import os
import re
import subprocess
import sys
import tarfile

from server_client import Client, Server, until

MIB = 1 << 20
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail != "":
        print(f"# {str(detail)[:3000]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def volume(server, *words, given=b""):
    env = {**os.environ, "E2B_API_KEY": server.key, "E2B_API_URL": f"http://127.0.0.1:{server.port}"}
    return subprocess.run([server.program, "volume", *words], env=env, capture_output=True, input=given, timeout=120, check=False)


def names(server):
    return sorted(volume(server, "ls", "-q").stdout.decode().split())


def one_line(ran):
    return ran.stderr.decode().count("\n") == 1 and not ran.stdout


def mounted(client, name, **fields):
    return client.create(volumeMounts=[{"name": name, "path": "/mnt/data"}], **fields)


# ---- there and back ------------------------------------------------------------------------------------------

FILL = ("cd /mnt/data && mkdir -p deep/er empty && echo content > deep/er/file && chmod 640 deep/er/file"
        " && touch -d 2001-02-03T04:05:06Z deep/er/file && ln -s er/file deep/link && ln -s /etc/passwd out && ln -s nowhere gone"
        " && ln deep/er/file deep/hard && mkfifo pipe && printf 'a\\nb' > 'odd \"name\"' && chmod 1777 empty"
        " && long=$(printf 'n%.0s' $(seq 200)) && mkdir $long && echo x > $long/$long && : > none && head -c 300000 /dev/urandom > large")
LOOK = ("cd /mnt/data && find . -not -name pipe -not -type d -printf '%P %y %m %U %G %n %s %Ts %l\\n' | sort;"
        " find . -mindepth 1 -type d -printf '%P %m %U %G\\n' | sort; find . -type f -exec sha256sum {} + | sort")


def there_and_back(server, client, folder):
    check("a volume is made", volume(server, "create", "data").returncode == 0 and names(server) == ["data"], names(server))
    writer = mounted(client, "data")
    status, _ = client.run(writer, FILL)
    check("and filled", status == 0)
    ran = volume(server, "export", "data")
    archive = ran.stdout
    check("it is exported", ran.returncode == 0 and not ran.stderr, ran.stderr)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        entries = {m.name: m for m in tar.getmembers()}
    file = entries["./deep/er/file"]
    hard = entries["./deep/hard"]
    check("with modes, owners and times", (file.mode, file.uid, file.gid, int(file.mtime)) == (0o640, 1000, 1000, 981173106), (file.mode, file.uid, file.gid, file.mtime))
    check("with links of both kinds", (file.islnk() or hard.islnk()) and entries["./out"].linkname == "/etc/passwd", list(entries))
    check("without pipes", "./pipe" not in entries)
    before = client.run(writer, LOOK)
    ran = volume(server, "import", "copy", given=archive)
    check("it is imported, and its id is told", ran.returncode == 0 and re.fullmatch(rb"[a-z0-9]{20}\n", ran.stdout), ran)
    after = client.run(mounted(client, "copy"), LOOK)
    check("all is as it was", before == after and before[0] == 0 and "deep/hard f 640 1000 1000 2" in before[1], f"{before}\n{after}")
    with open(f"{folder}/archive.tar", "wb") as out:
        out.write(archive)
    ran = volume(server, "import", "--json", "third", f"{folder}/archive.tar")
    made = json.loads(ran.stdout) if ran.returncode == 0 else {}
    check("from a file too; the token is not shown", made.get("name") == "third" and "token" not in made, ran)
    ran = volume(server, "export", made.get("volumeID", "-"))
    check("a volume is found by its id too, and gives the same again", sorted_archive(ran.stdout) == sorted_archive(archive))
    check("volumes are removed, by name or id", volume(server, "rm", "third", "copy").returncode == 1
          and names(server) == ["copy", "data"], names(server))
    return archive


def sorted_archive(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return sorted((m.name.split("/")[-1], m.mode, m.uid, m.type if not (m.islnk() or m.isfile()) else b"", m.linkname if m.issym()
                       else "") for m in tar.getmembers())


def foreign(server, client):
    """Archives of other programs, in each of their forms."""
    for form in ("gnu", "ustar", "pax"):
        made = subprocess.run(
            ["bash", "-c", f"d=$(mktemp -d) && cd $d && umask 022 && mkdir -p a/{'b' * 90}/{'c' * 90} && echo x > a/{'b' * 90}/{'c' * 90}/f"
             f" && tar --owner=1000 --group=1000 --format={form} -cf - . && rm -r $d"], capture_output=True, check=True).stdout
        ran = volume(server, "import", f"form-{form}", given=made)
        check(f"an archive of tar --format={form}", ran.returncode == 0, ran)
        sandbox = mounted(client, f"form-{form}")
        said = client.run(sandbox, f"cat /mnt/data/a/{'b' * 90}/{'c' * 90}/f && touch /mnt/data/new && stat -c %a /mnt/data")
        check("... has its files, and the top can be written as before", said == (0, "x\n777\n"), said)


# ---- archives that are refused -------------------------------------------------------------------------------


def entry(name, kind=tarfile.REGTYPE, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.uid, info.gid = kind, len(data), 1000, 1000
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def packed(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def hostile():
    first = entry("first", data=b"1")
    link = entry("way", tarfile.SYMTYPE, linkname="/etc")
    yield "an absolute name", packed(first, entry("/etc/cron.d/x")), "is an absolute path"
    yield "a name that leads up", packed(first, entry("a/../../x")), "leads out of it"
    yield "a link that is led through", packed(link, entry("way/passwd", data=b"x")), "leads through a link"
    yield "a link in the way of a directory", packed(link, entry("way", tarfile.DIRTYPE), entry("way/x")), "leads through a link"
    yield "a hard link out", packed(first, entry("x", tarfile.LNKTYPE, linkname="../../front/server.db")), "leads out of it"
    yield "a hard link to a host's file", packed(first, entry("x", tarfile.LNKTYPE, linkname="/etc/shadow")), "is an absolute path"
    yield "a hard link through a link", packed(link, entry("x", tarfile.LNKTYPE, linkname="way/passwd")), "leads through a link"
    yield "a hard link to nothing", packed(first, entry("x", tarfile.LNKTYPE, linkname="later")), "which is not before it"
    for kind, what in ((tarfile.CHRTYPE, "a device"), (tarfile.BLKTYPE, "a disk"), (tarfile.FIFOTYPE, "a pipe")):
        yield what, packed(first, entry("x", kind)), "is no file, directory or link"
    yield "a file in the place of a directory", packed(entry("d", tarfile.DIRTYPE), entry("d")), "takes the place of a directory"
    yield "too deep a path", packed(entry("/".join("d" * 1500))), "too deep"
    yield "more than the volume holds", packed(first, entry("x", data=bytes(9 * MIB))), "is full: .*may hold 8 MiB"
    yield "too many entries", packed(*(entry(f"n{i}") for i in range(9000))), "is full: .*may hold 8 MiB"
    yield "an archive that is cut off", packed(first, entry("x", data=bytes(MIB)))[:700000], "ends in the middle"
    yield "an archive that ends between two entries", packed(first, entry("x"))[:1536], "is cut off"
    yield "nothing", b"", "is cut off"
    yield "something else", b"no archive at all\n" * 1000, "malformed"


def refused(server):
    before, kept = names(server), set(glob.glob(f"{server.state}/volumes/*/*"))
    for what, archive, words in hostile():
        ran = volume(server, "import", "hostile", given=archive)
        said = ran.stderr.decode()
        check(f"refused: {what}", ran.returncode == 1 and one_line(ran) and re.search(words, said) and "no volume was made" in said, ran)
        check("... and nothing of it is there", names(server) == before, names(server))
    left = until(lambda: set(glob.glob(f"{server.state}/volumes/*/*")) <= kept)
    check("on disk neither", left, glob.glob(f"{server.state}/volumes/*/*"))


def harmless(server, client):
    """What looks hostile, and is only kept."""
    archive = packed(entry("tool", data=b"#!/bin/sh\n", mode=0o6755), entry("other", data=b"1", uid=4000000, gid=70000),
                     entry("up", tarfile.SYMTYPE, linkname="../../../etc/shadow"), entry("twice", data=b"1"), entry("twice", data=b"2"))
    ran = volume(server, "import", "harmless", given=archive)
    check("set-id bits, large owners and links as texts are no error", ran.returncode == 0, ran)
    said = client.run(mounted(client, "harmless"),
                      "cd /mnt/data; stat -c '%a %u %g' tool other; readlink up; cat twice; ls -A | wc -l")
    check("bits are taken away, owners nobody's, links texts, and the last of a name counts",
          said == (0, "755 1000 1000\n644 65534 65534\n../../../etc/shadow\n24\n"), said)


# ---- the server's side ---------------------------------------------------------------------------------------


def over_http(server, client):
    status, made = client.api("POST", "/volumes", {"name": "http"})
    path = f"/volumecontent/{made['volumeID']}/tar?path=/"
    bearer = {"Authorization": f"Bearer {made['token']}"}
    check("an archive needs the volume's token", [client.raw(method, path, b"" if method == "PUT" else None,
                                                             {"X-API-Key": server.key})[0] for method in ("GET", "PUT")] == [401, 401])
    status, _ = client.raw("PUT", path, packed(entry("a", data=b"1"), entry("d/b", data=b"2")), bearer)
    check("one is unpacked", status == 204, status)
    status, said = client.raw("PUT", path, packed(entry("c", data=b"3"), entry("d/x", data=b"4")), bearer)
    check("into a volume with a file of that name it is not", status == 409 and b"'d' is there already" in said
          and b"nothing of it was kept" in said, said)
    status, said = client.raw("GET", path, None, bearer)
    check("and nothing of it is there", [n for n, *_ in sorted_archive(said)] == [".", "a", "b", "d"], sorted_archive(said))
    status, _ = client.raw("PUT", path[:-1] + "/d", packed(entry("c", data=b"3")), bearer)
    status, said = client.raw("GET", path[:-1] + "/d", None, bearer)
    check("a directory of it is one too", [n for n, *_ in sorted_archive(said)] == [".", "b", "c"], sorted_archive(said))
    status, said = client.raw("GET", path[:-1] + "/nowhere", None, bearer)
    check("and must be there", status == 404, said)


def mistakes(server):
    ran = volume(server, "export", "nowhere")
    check("a volume that is not there", ran.returncode == 1 and one_line(ran) and b"there is no volume 'nowhere'" in ran.stderr, ran)
    ran = volume(server, "import", "data", given=packed(entry("x")))
    check("a name that is taken", ran.returncode == 1 and one_line(ran) and b"already exists" in ran.stderr, ran)
    ran = volume(server, "import", "a/b", given=b"")
    check("a name that is none", ran.returncode == 2 and b"is no name of a volume" in ran.stderr, ran)
    ran = volume(server, "import", "new", "/nowhere.tar")
    check("a file that is not there", ran.returncode == 1 and b"cannot read '/nowhere.tar'" in ran.stderr and "new" not in names(server), ran)


def main():
    program, folder = sys.argv[1:]
    server = Server(program, f"{folder}/state", "--volume-size", "8M")
    server.start()
    try:
        client = Client(server, 60)
        there_and_back(server, client, folder)
        foreign(server, client)
        refused(server)
        harmless(server, client)
        over_http(server, client)
        mistakes(server)
    finally:
        status = server.stop()
    check("the server ends", status == 0)
    print(f"# steps {number}")


main()
