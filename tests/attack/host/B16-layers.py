"""B16: hostile layers and images of file systems against the workers that make worlds of them.

Each attack is a layer. What the workers make of it is mounted and looked at; or they refuse it in one line, and leave nothing.
The control is GNU tar, which takes the same layer as it is: there the attack is seen to work. For images it is Linux, which
mounts what the checker refuses."""
import contextlib
import gzip
import io
import os
import resource
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [f"{HERE}/../lib", f"{HERE}/../../system"]
from host import check, finish  # noqa: E402
from image_lib import Images, mount, private_mounts, unmount  # noqa: E402
from program import SANDGLASS  # noqa: E402

PROGRAM = os.path.realpath(f"{os.path.dirname(SANDGLASS)}/../libexec/sandglass/sandglass-image")
LIMITS = ("entries=300000", "ratio=1000")
MANY = 200_000
TIME_S = 60  # for what takes seconds where nothing else runs


class Bed:
    """A folder with a canary, and workers in another one below it."""

    def __init__(self, top):
        self.top, self.canary = top, f"{top}/canary"
        for folder in (self.canary, f"{top}/work", f"{top}/work/mnt", f"{top}/plain"):
            os.mkdir(folder)
        self.images = Images(PROGRAM, f"{top}/work")
        self.reset()

    def reset(self):
        shutil.rmtree(self.canary)
        shutil.rmtree(f"{self.top}/plain")
        os.mkdir(f"{self.top}/plain")
        os.mkdir(self.canary)
        with open(f"{self.canary}/secret", "w", encoding="ascii") as file:
            file.write("secret")

    def touched(self):
        """Whether the canary is another."""
        with open(f"{self.canary}/secret", encoding="ascii") as file:
            return os.listdir(self.canary) != ["secret"] or file.read() != "secret" or os.stat(file.fileno()).st_nlink != 1

    def pack(self, entries):
        with tarfile.open(f"{self.top}/work/layer.tar", "w", format=tarfile.PAX_FORMAT) as tar:
            for name, fields in entries:
                info = tarfile.TarInfo(name)
                data = fields.get("data", b"")
                info.size, info.mode, info.mtime = len(data), fields.get("mode", 0o644), 1_600_000_000
                info.type, info.linkname = fields.get("type", tarfile.REGTYPE), fields.get("link", "")
                info.devmajor, info.devminor = fields.get("device", (0, 0))
                info.pax_headers = {f"SCHILY.xattr.{k}": v for k, v in fields.get("xattrs", {}).items()}
                tar.addfile(info, io.BytesIO(data))

    def plain_tar(self):
        """What a program that trusts the layer would do."""
        subprocess.run(["tar", "-P", "--xattrs", "--xattrs-include=*", "-xpf", f"{self.top}/work/layer.tar", "-C", f"{self.top}/plain"],
                       stderr=subprocess.DEVNULL, check=False)

    @contextlib.contextmanager
    def world(self, layer="layer.tar"):
        """The mounted world, and the refusal if there is none."""
        answer = self.images.unpack(layer, "one", *LIMITS)
        if answer.status == 0:
            answer = self.images.write(["one"], "one.meta")
        if answer.status == 0:
            answer = self.images.check(["one"], "one.meta")
        if answer.status != 0:
            yield None, answer
            return
        self.images.mount("one.meta", ["one"], f"{self.top}/work/mnt")
        try:
            yield f"{self.top}/work/mnt", answer
        finally:
            unmount(f"{self.top}/work/mnt")


def refusal(answer):
    """Complaints about an answer that is no clear refusal."""
    return [] if answer.status == 1 and answer.error.count("\n") == 1 else [f"status {answer.status}: {answer.error!r}"]


def walk(top):
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            yield os.path.join(folder, name)


def has(predicate):
    return lambda top: [f"it has {path}" for path in walk(top) if predicate(path)]


def is_special(path):
    return stat.S_ISCHR(os.lstat(path).st_mode) or stat.S_ISBLK(os.lstat(path).st_mode)


def has_hidden_attributes(path):
    return any(not n.startswith("user.") or n.startswith("user.overlay.") for n in os.listxattr(path, follow_symlinks=False)
               if n != "security.capability")


def shows_secret(path):
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return False
    with open(path, "rb") as file:
        return file.read(6) == b"secret"


DIR, SYM, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def layers(bed):
    """name -> entries, what is wrong with a world of them, whether plain tar was led astray."""
    out = bed.canary
    up = "../" * 20 + out.lstrip("/")
    astray = lambda: bed.touched()  # noqa: E731
    found = lambda wrong: lambda: bool(wrong(f"{bed.top}/plain"))  # noqa: E731
    nothing = has(lambda path: os.path.basename(path) == "planted" and os.path.realpath(path).startswith(out))
    special, hidden, secret = has(is_special), has(has_hidden_attributes), has(shows_secret)
    return {
        "a name with '..'": ([(f"{up}/planted", {"data": b"x"})], nothing, astray),
        "an absolute name": ([(f"{out}/planted", {"data": b"x"})], nothing, astray),
        "a file below a link that leads out": ([("d", {"type": SYM, "link": out}), ("d/planted", {"data": b"x"})], nothing, astray),
        "a hard link to an absolute name": ([("h", {"type": HARD, "link": f"{out}/secret"})], secret, astray),
        "a hard link through '..'": ([("h", {"type": HARD, "link": f"{up}/secret"})], secret, astray),
        "a hard link through a link": ([("d", {"type": SYM, "link": out}), ("h", {"type": HARD, "link": "d/secret"})], secret, astray),
        "a file in place of a directory that is a link": (
            [("d", {"type": SYM, "link": out}), ("d/secret", {"data": b"changed"})], secret, astray),
        "device nodes": ([("dev-mem", {"type": tarfile.CHRTYPE, "device": (1, 1), "mode": 0o666}),
                          ("dev-sda", {"type": tarfile.BLKTYPE, "device": (8, 0), "mode": 0o666})], special, found(special)),
        "attributes that the overlay obeys": ([("d", {"type": DIR, "mode": 0o755, "xattrs": {
            "trusted.overlay.opaque": "y", "trusted.overlay.redirect": "/etc", "user.overlay.redirect": "/etc"}}),
            ("d/f", {"xattrs": {"trusted.overlay.metacopy": ""}})], hidden, found(hidden)),
    }


def judged(bed):
    for what, (entries, wrong_with, led_astray) in layers(bed).items():
        bed.reset()
        bed.pack(entries)
        with bed.world() as (top, answer):
            wrong = wrong_with(top) if top else refusal(answer)
        if bed.touched():
            wrong.append("the host's files were touched")
        check(f"B16 {what}", wrong, "it is refused" if not top else "a world without it")
        bed.plain_tar()
        check(f"B16 control: {what} leads tar astray", [] if led_astray() else ["it does not: the attack shows nothing"])
    bed.reset()


def bounded(bed, what, layer="layer.tar", wrong_with=lambda top: [], is_refused=None):
    """Neither long nor large, whatever comes of it."""
    began = time.monotonic()
    with bed.world(layer) as (top, answer):
        wrong = wrong_with(top) if top else refusal(answer)
    took, mib = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if is_refused is not None and is_refused != (top is None):
        wrong.append("it is refused" if top is None else "it is not refused")
    wrong += [f"{took:.0f} s"] * (took > TIME_S) + [f"{mib:.0f} MiB"] * (mib > 400)
    check(f"B16 {what}", wrong, f"{took:.1f} s, {answer.error.strip()}")


def one_each(name):
    def wrong_with(top):
        with open(f"{top}/{name}", "rb") as file:
            return [] if os.listdir(top) == [name] and file.read() == b"last" else [f"{os.listdir(top)}"]
    return wrong_with


def bombs(bed):
    work = f"{bed.top}/work"
    bed.pack([("loop", {"type": SYM, "link": "loop"}), ("a", {"type": SYM, "link": "b/x"}), ("b", {"type": SYM, "link": "a/x"})])
    bounded(bed, "links that lead to themselves", is_refused=False)
    bed.pack([("a", {"type": HARD, "link": "b"}), ("b", {"type": HARD, "link": "a"})])
    bounded(bed, "hard links that lead to each other", is_refused=True)
    bed.pack([(f"d/{i}", {}) for i in range(MANY)])
    bounded(bed, f"a directory of {MANY} files", is_refused=False)
    bed.pack([(f"d/{i}", {}) for i in range(MANY * 2)])
    bounded(bed, "more files than a layer may have", is_refused=True)
    kinds = [{"data": b"first"}, {"type": DIR, "mode": 0o755}, {"type": SYM, "link": "x"}]
    bed.pack([("x", kinds[i % 3]) for i in range(30000)] + [("x", {"data": b"last"})])
    bounded(bed, "one name 30,001 times, of each kind", wrong_with=one_each("x"), is_refused=False)
    bed.pack([("zeros", {"data": bytes(200 << 20)})])
    with open(f"{work}/layer.tar", "rb") as tar, gzip.open(f"{work}/bomb.gz", "wb", 9) as packed:
        shutil.copyfileobj(tar, packed)
    bounded(bed, "200 MiB of zeros, packed", "bomb.gz", is_refused=True)
    os.unlink(f"{work}/bomb.gz")
    with open(f"{work}/hole", "wb") as hole:
        hole.truncate(1 << 40)
    subprocess.run(["tar", "--sparse", "-C", work, "-cf", f"{work}/sparse.tar", "hole"], check=True)
    bounded(bed, "a hole of 1 TiB", "sparse.tar", is_refused=True)
    os.unlink(f"{work}/hole")
    bed.pack([("d/" * 300 + "f", {"data": b"x" * 3000}), ("g", {"xattrs": {"user.a": "b" * 400}}), ("s", {"type": SYM, "link": "t" * 200})])
    with open(f"{work}/layer.tar", "rb") as file:
        whole = file.read()
    wrong = []
    for length in range(0, len(whole) - 1024, 512):
        for cut in (length, length + 200):
            with open(f"{work}/cut.tar", "wb") as file:
                file.write(whole[:cut])
            answer = bed.images.unpack("cut.tar", "one")
            if answer.status != 0:
                wrong += [f"cut at {cut}: {w}" for w in refusal(answer)]
                wrong += [f"cut at {cut}: something is left"] * any(os.path.getsize(f"{work}/one.{end}") for end in ("blob", "list"))
    check("B16 a layer that is cut anywhere", wrong)


def metas(bed):
    """Images that the writer did not write."""
    work, target = f"{bed.top}/work", f"{bed.top}/work/mnt"
    mode = stat.S_IFREG | 0o6751  # in no other inode
    bed.pack([("marked", {"mode": mode & 0o7777, "data": b"m" * 5000}), ("plain", {"data": b"p" * 9000})])
    with bed.world() as (top, answer):
        check("B16 the writer's own image is taken", [] if top else [answer.error])
    with open(f"{work}/one.meta", "rb") as file:
        meta = file.read()
    at = meta.index(mode.to_bytes(2, "little"))
    device = bytearray(meta)
    device[at:at + 2] = (stat.S_IFCHR | 0o666).to_bytes(2, "little")
    blob = os.path.getsize(f"{work}/one.blob") // 4096
    forged = {
        "a file that became a device": bytes(device),
        "one that is cut": meta[:len(meta) // 2],
        "one with more at its end": meta + bytes(4096),
        "one with nothing in it": bytes(len(meta)),
        "one with another magic number": meta[:1024] + b"\0" + meta[1025:],
        "the layer itself": open(f"{work}/layer.tar", "rb").read(),
    }
    for what, image in forged.items():
        with open(f"{work}/forged.meta", "wb") as file:
            file.write(image)
        check(f"B16 an image that is not the writer's: {what}", refusal(bed.images.check(["one"], "forged.meta")))
    answer = bed.images.run(["check", blob - 1], ["0<one.meta"])
    check("B16 an image for a blob of another length", refusal(answer))
    with open(f"{work}/forged.meta", "wb") as file:
        file.write(device)
    mount(f"{work}/forged.meta", [f"{work}/one.blob"], target)
    try:
        found = stat.S_ISCHR(os.lstat(f"{target}/marked").st_mode)
    finally:
        unmount(target)
    check("B16 control: Linux takes the image with the device", [] if found else ["it does not: the attack shows nothing"])


private_mounts()
with tempfile.TemporaryDirectory(prefix="sandglass-attack-", dir="/var/tmp") as top_folder:
    the_bed = Bed(top_folder)
    for step in (judged, bombs, metas):
        step(the_bed)
finish()
