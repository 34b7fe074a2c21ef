"""Layers into worlds, by the real program, and what Linux shows of them: the steps behind image.sh."""
import io
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time

from image_lib import BLOCK, Images, differences, memory_of_children_mib, mount, private_mounts, unmount

number = 0
PROGRAM, T = os.path.realpath(sys.argv[1]), os.path.join(sys.argv[2], "image")
XATTRS = ["--xattrs", "--xattrs-include=user.*", "--xattrs-include=security.capability"]


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail:
        for line in str(detail).splitlines():
            print(f"# {line}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)
    return ok


def tar(*arguments):
    subprocess.run(["tar", *map(str, arguments)], check=True, stderr=subprocess.DEVNULL)


def fresh(name):
    path = os.path.join(T, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def write_file(path, data, mode=0o644, owner=(0, 0), mtime_ns=1_500_000_000_123_456_789):
    with open(path, "wb") as f:
        f.write(data)
    os.chown(path, *owner)
    os.chmod(path, mode)
    os.utime(path, ns=(mtime_ns, mtime_ns))


# ---- trees to pack --------------------------------------------------------------------------------


def make_odd(top):
    """Files of every kind, size and name."""
    rng = random.Random(1)
    for size in (0, 1, 4095, 4096, 4097, 1_000_000):
        write_file(f"{top}/size-{size}", rng.randbytes(size), owner=(1000, 100))
    write_file(f"{top}/setuid", b"x", 0o4755)
    write_file(f"{top}/owners", b"", 0o000, (65534, 12345), -1_500_000_000)
    write_file(f"{top}/capable", b"#!/bin/sh\n", 0o755)
    os.setxattr(f"{top}/capable", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
    write_file(f"{top}/attributes", b"y")
    os.setxattr(f"{top}/attributes", "user.color", b"red")
    os.setxattr(f"{top}/attributes", "user.binary", bytes(range(256)) * 8)
    os.setxattr(f"{top}/attributes", "user.empty", b"")
    os.mkfifo(f"{top}/pipe", 0o600)
    os.mkdir(f"{top}/dir", 0o1777)
    os.setxattr(f"{top}/dir", "user.on", b"a directory")
    os.link(f"{top}/size-4097", f"{top}/dir/hard")
    os.link(f"{top}/size-4097", f"{top}/dir/harder")
    os.symlink("../size-1", f"{top}/dir/soft")
    os.symlink("t" * 4000, f"{top}/dir/far")
    os.link(f"{top}/dir/soft", f"{top}/dir/soft-too", follow_symlinks=False)
    write_file(os.fsencode(top) + b"/\xff\n\t name", b"z")
    write_file(f"{top}/{'n' * 255}", b"long")
    deep = top
    for i in range(15):
        deep += f"/{i}-{'d' * 60}"
        os.mkdir(deep)
    write_file(f"{deep}/deep", b"deep")
    os.mkdir(f"{top}/full")
    for i in range(700):  # more than one block
        write_file(f"{top}/full/{i * 7919 % 10007}", b"" if i % 3 else b"data")


def make_debian(name):
    """A root with a merged /usr, of files that are here."""
    parts = [p for p in ("bin", "sbin", "lib", "lib64", "usr/share/zoneinfo", "usr/lib/python3.11", "etc/alternatives")
             if os.path.lexists(f"/{p}")]
    folders = sorted({os.path.dirname(p) for p in parts} | {"usr"}, key=len)
    tar("-C", "/", "-cf", f"{T}/{name}", "--numeric-owner", "--exclude=__pycache__", "--no-recursion", *[f or "." for f in folders],
        "--recursion", *parts)


# ---- one layer ------------------------------------------------------------------------------------


def world(images, layers, meta):
    """Unpacks, writes, checks; the names of the layers, or None."""
    names = [layer.rsplit(".", 1)[0] for layer in layers]
    for layer, name in zip(layers, names):
        answer = images.unpack(layer, name)
        if not check(f"{layer} is unpacked", answer.status == 0, answer.error):
            return None
    for what, answer in (("written", images.write(names, meta)), ("checked", images.check(names, meta))):
        if not check(f"{meta} is {what}", answer.status == 0 and answer.error == "", answer.error):
            return None
    return names


def compare(images, layers, meta, expected):
    names = world(images, layers, meta)
    if not names:
        return
    images.mount(meta, names, f"{T}/mnt")
    told = differences(expected, f"{T}/mnt")
    unmount(f"{T}/mnt")
    check(f"{meta} shows what tar extracts", not told, "\n".join(told))


def one_layer(images):
    make_odd(fresh("odd"))
    for form in ("gnu", "posix"):
        attributes = XATTRS if form == "posix" else []
        tar("-C", f"{T}/odd", f"--format={form}", *attributes, "--numeric-owner", "-cf", f"{T}/odd-{form}.tar", ".")
        out = fresh("expected")
        tar("-C", out, *attributes, "--numeric-owner", "-xpf", f"{T}/odd-{form}.tar")
        compare(images, [f"odd-{form}.tar"], f"odd-{form}.meta", out)
    make_debian("debian.tar")
    out = fresh("expected")
    tar("-C", out, "--numeric-owner", "-xpf", f"{T}/debian.tar")
    with tarfile.open(f"{T}/debian.tar") as packed:  # tar lost them when it came back to a directory
        for folder in filter(tarfile.TarInfo.isdir, packed):
            os.utime(os.path.join(out, folder.name), (folder.mtime, folder.mtime))
    compare(images, ["debian.tar"], "debian.meta", out)


def reports(images):
    answer = images.unpack("odd-posix.tar", "again")
    size = os.path.getsize(f"{T}/odd-posix.tar")
    check("the report has the digests of what was written",
          answer.first == images.sha256("again.blob") and answer.list == images.sha256("again.list")
          and answer.diff_id == images.sha256("odd-posix.tar") and answer.bytes == size, vars(answer))
    check("the blob has its length in blocks", answer.blocks * BLOCK == os.path.getsize(f"{T}/again.blob"))
    subprocess.run(f"gzip -k odd-posix.tar; head -c 30000 odd-posix.tar | gzip >two.gz; tail -c +30001 odd-posix.tar | gzip >>two.gz",
                   shell=True, check=True, cwd=T)
    for packed in ("odd-posix.tar.gz", "two.gz"):
        other = images.unpack(packed, "packed")
        check(f"{packed} gives the same", (other.first, other.list, other.diff_id) == (answer.first, answer.list, answer.diff_id),
              other.error)
    first, second = images.write(["again"], "again.meta"), images.write(["again"], "again2.meta")
    check("the same lists give the same image", first.first == second.first == images.sha256("again2.meta"), first.error)


# ---- several layers -------------------------------------------------------------------------------


def add(archive, name, kind=tarfile.REGTYPE, data=b"", link="", mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname, info.mode, info.mtime = kind, len(data), link, mode, 1_400_000_000
    archive.addfile(info, io.BytesIO(data))


def layers(images):
    with tarfile.open(f"{T}/base.tar", "w") as t:
        for name in ("usr", "usr/lib", "etc", "etc/conf.d", "var", "var/cache", "gone", "turns"):
            add(t, name, tarfile.DIRTYPE, mode=0o755)
        add(t, "lib", tarfile.SYMTYPE, link="usr/lib")
        for name in ("usr/lib/libc", "etc/passwd", "etc/conf.d/a", "etc/conf.d/b", "var/cache/old", "gone/x", "turns/into", "file"):
            add(t, name, data=name.encode())
        add(t, "etc/hard", tarfile.LNKTYPE, link="etc/passwd")
    with tarfile.open(f"{T}/top.tar", "w") as t:
        add(t, "etc", tarfile.DIRTYPE, mode=0o700)
        add(t, "var/cache", tarfile.DIRTYPE, mode=0o755)
        add(t, "var/cache/new", data=b"new")
        add(t, "var/cache/.wh..wh..opq")  # after what it must not hide
        add(t, "etc/conf.d/.wh.a")
        add(t, ".wh.gone")
        add(t, "etc/passwd", data=b"another")
        add(t, "turns", data=b"a file")
        add(t, "file", tarfile.DIRTYPE, mode=0o755)
        add(t, "file/inside", data=b"inside")
        add(t, "usr/lib/libm", data=b"libm")
        add(t, "kept", tarfile.LNKTYPE, link="usr/lib/libc")
    names = world(images, ["base.tar", "top.tar"], "stack.meta")
    if not names:
        return
    images.mount("stack.meta", names, f"{T}/mnt")
    found = sorted(os.path.relpath(os.path.join(d, n), f"{T}/mnt") for d, ds, fs in os.walk(f"{T}/mnt") for n in ds + fs)
    check("layers are merged by name", found == [
        "etc", "etc/conf.d", "etc/conf.d/b", "etc/hard", "etc/passwd", "file", "file/inside", "kept", "lib", "turns", "usr",
        "usr/lib", "usr/lib/libc", "usr/lib/libm", "var", "var/cache", "var/cache/new"], found)

    def read(name):
        with open(f"{T}/mnt/{name}", "rb") as f:
            return f.read()
    check("contents come from each layer's blob", (read("etc/passwd"), read("etc/hard"), read("lib/libm"), read("kept"),
          read("turns")) == (b"another", b"etc/passwd", b"libm", b"usr/lib/libc", b"a file"))
    check("a directory takes the looks of the upper layer", os.stat(f"{T}/mnt/etc").st_mode & 0o777 == 0o700)
    unmount(f"{T}/mnt")
    answer = images.check(["top", "base"], "stack.meta")
    check("blobs in another order are refused", answer.status == 1 and "its file has" in answer.error, answer.error)


# ---- size -----------------------------------------------------------------------------------------


def large(images):
    with tarfile.open(f"{T}/many.tar", "w") as t:
        for i in range(100_000):
            add(t, f"many/{i * 7919 % 100_003:06}-{'n' * (i % 40)}")
    began = time.monotonic()
    names = world(images, ["many.tar"], "many.meta")
    took = time.monotonic() - began
    check("100,000 entries of one directory take seconds", took < 20, f"{took:.1f} s")
    check("a worker needs little memory", memory_of_children_mib() < 300, memory_of_children_mib())
    if not names:
        return
    images.mount("many.meta", names, f"{T}/mnt")
    listed = os.listdir(f"{T}/mnt/many")
    check("all of them are there, and found by their names", len(listed) == 100_000
          and all(os.path.isfile(f"{T}/mnt/many/{n}") for n in random.Random(2).sample(listed, 500)))
    unmount(f"{T}/mnt")


# ---- refusals -------------------------------------------------------------------------------------


def refused(images, what, layer, why, *limits):
    answer = images.unpack(layer, "refused", *limits)
    sizes = [os.path.getsize(f"{T}/refused.{end}") for end in ("blob", "list")]
    check(f"refused: {what}", answer.status == 1 and why in answer.error and answer.error.count("\n") == 1
          and answer.error == f"sandglass-image: {answer.message}\n" and answer.code < 0 and sizes == [0, 0],
          f"{answer.status} {answer.error} {sizes}")


def hostile(images):
    def make(name, *entries):
        with tarfile.open(f"{T}/hostile.tar", "w") as t:
            add(t, "fine", data=b"x" * 10_000)
            for entry in entries:
                add(t, name, *entry)
        return "hostile.tar"

    refused(images, "a name with ..", make("a/../../etc/passwd", ()), "'..' in it")
    refused(images, "a part of 256 bytes", make("n" * 256, ()), "a part of the name")
    refused(images, "a name of 5,000 bytes", make("n/" * 2500, ()), "more than 4095 bytes")
    refused(images, "too many directories", make("d/" * 1500, ()), "more than 1024 directories")
    refused(images, "too many entries", make("a", ()), "more than 1 entries", "entries=1")
    refused(images, "too many bytes", make("a", ()), "more than 2000 bytes", "bytes=2000")
    with open(f"{T}/hole", "wb") as f:
        f.truncate(10 << 20)
    for form in ("gnu", "posix"):
        tar("-C", T, f"--format={form}", "--sparse", "-cf", f"{T}/sparse.tar", "hole")
        refused(images, f"a sparse file, {form}", "sparse.tar", "sparse file")
    with open(f"{T}/odd-gnu.tar", "rb") as f:
        data = bytearray(f.read())
    for what, change, why in (("a cut layer", data[:len(data) // 2 + 100], "ends in the middle"),
                              ("a wrong checksum", bytes([data[0] ^ 1]) + data[1:], "checksum"),
                              ("no archive", os.urandom(5000), "no tar archive"), ("nothing", b"", "is empty")):
        with open(f"{T}/broken.tar", "wb") as f:
            f.write(change)
        refused(images, what, "broken.tar", why)
    subprocess.run("head -c 100000000 /dev/zero >hole; tar -cf - hole | gzip -9 >bomb.gz", shell=True, check=True, cwd=T)
    refused(images, "a bomb", "bomb.gz", "100 times as large", "ratio=100")
    images.unpack(make("b", (tarfile.LNKTYPE, b"", "not/there")), "hostile")
    answer = images.write(["hostile"], "hostile.meta")
    check("refused: a hard link to nothing", answer.status == 1 and "'not/there', which is not there" in answer.error
          and os.path.getsize(f"{T}/hostile.meta") == 0, answer.error)
    answer = images.run(["write", 99], ["3>hostile.meta", "4<base.list"])
    check("refused: a list with another blob", answer.status == 1 and "belongs to a blob of" in answer.error, answer.error)


def confined(images):
    """The worker has given up everything before it reads."""
    with subprocess.Popen(["bash", "-c", f"exec {images.program} unpack 3>{T}/c.blob 4>{T}/c.list"], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        status = {}
        for _ in range(200):
            with open(f"/proc/{worker.pid}/status", encoding="ascii") as f:
                status = dict(line.split(":", 1) for line in f.read().splitlines())
            if status["Seccomp"].strip() == "2":
                break
            time.sleep(0.02)
        check("a worker is confined before it reads", status["Seccomp"].strip() == "2" and status["NoNewPrivs"].strip() == "1"
              and int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0, status)
        worker.stdin.close()


def mutants(images):
    """What the checker takes, the kernel can walk."""
    names = ["base", "top"]
    with open(f"{T}/stack.meta", "rb") as f:
        image = f.read()
    rng = random.Random(3)
    places = [i for i in range(1024, len(image)) if image[i] and not 4096 <= i < 4096 + 64]
    taken = wrong = 0
    for at in rng.sample(places, min(600, len(places))):
        mutant = bytearray(image)
        mutant[at] ^= 1 << rng.randrange(8)
        with open(f"{T}/mutant.meta", "wb") as f:
            f.write(mutant)
        answer = images.check(names, "mutant.meta")
        if answer.status != 0:
            wrong += answer.status != 1 or answer.error.count("\n") != 1
            continue
        taken += 1
        mount(f"{T}/mutant.meta", [f"{T}/{n}.blob" for n in names], f"{T}/mnt")
        try:
            differences(f"{T}/mnt", f"{T}/mnt")
        finally:
            unmount(f"{T}/mnt")
    check("mutants are refused in a line, or Linux walks them to their end", wrong == 0 and taken > 0, f"{taken} taken, {wrong} wrong")


def main():
    fresh("mnt")
    private_mounts()
    images = Images(PROGRAM, T)
    for step in (one_layer, reports, layers, large, hostile, confined, mutants):
        step(images)


main()
