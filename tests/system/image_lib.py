"""The workers of sandglass-image, mounts of what they write, and trees compared: for image.py."""
import ctypes
import hashlib
import os
import resource
import shlex
import stat
import struct
import subprocess

BLOCK = 4096
REPORT = struct.Struct("<IiiIQQQ32s32s32s256s")
LIBC = ctypes.CDLL(None, use_errno=True)
SYS_MOVE_MOUNT, SYS_FSOPEN, SYS_FSCONFIG, SYS_FSMOUNT = 429, 430, 431, 432
SET_FLAG, SET_STRING, CMD_CREATE = 0, 1, 6
CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x4000, 1 << 18, 2


class Answer:
    def __init__(self, process):
        self.status, self.error = process.returncode, process.stderr.decode("utf-8", "replace")
        fields = REPORT.unpack(process.stdout) if len(process.stdout) == REPORT.size else [0] * 11
        (self.magic, self.code, self.kind, self.left_out, self.entries, self.bytes, self.blocks, self.first, self.list,
         self.diff_id) = fields[:10]
        self.message = fields[10].split(b"\0")[0].decode() if fields[10] else ""


class Images:
    """Runs workers on files in one folder."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, arguments, files):
        """files: "0<name", "3>name"."""
        words = [shlex.quote(str(a)) for a in [self.program, *arguments]]
        for file in files:
            at = max(file.find("<"), file.find(">")) + 1
            words.append(file[:at] + shlex.quote(self.path(file[at:])))
        return Answer(subprocess.run(["bash", "-c", "exec " + " ".join(words)], capture_output=True, check=False))

    def unpack(self, layer, name, *limits):
        return self.run(["unpack", *limits], [f"0<{layer}", f"3>{name}.blob", f"4>{name}.list"])

    def write(self, names, meta):
        lists = [f"{4 + i}<{name}.list" for i, name in enumerate(names)]
        return self.run(["write", *self.blocks(names)], [f"3>{meta}", *lists])

    def check(self, names, meta):
        return self.run(["check", *self.blocks(names)], [f"0<{meta}"])

    def blocks(self, names):
        return [os.path.getsize(self.path(f"{name}.blob")) // BLOCK for name in names]

    def sha256(self, name):
        with open(self.path(name), "rb") as f:
            return hashlib.file_digest(f, "sha256").digest()

    def mount(self, meta, names, target):
        os.makedirs(target, exist_ok=True)
        mount(self.path(meta), [self.path(f"{name}.blob") for name in names], target)


# ---- mounts ---------------------------------------------------------------------------------------


def private_mounts():
    """From here on, mounts are this process's own."""
    call(LIBC.unshare(CLONE_NEWNS), "unshare")
    call(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "make mounts private")


def call(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def mount(meta, blobs, target):
    fs = call(LIBC.syscall(SYS_FSOPEN, b"erofs", 0), "fsopen")
    try:
        for key, value in [("source", meta), *[("device", blob) for blob in blobs]]:
            call(LIBC.syscall(SYS_FSCONFIG, fs, SET_STRING, key.encode(), value.encode(), 0), key)
        call(LIBC.syscall(SYS_FSCONFIG, fs, SET_FLAG, b"ro", None, 0), "ro")
        call(LIBC.syscall(SYS_FSCONFIG, fs, CMD_CREATE, None, None, 0), "mount the image")
        mounted = call(LIBC.syscall(SYS_FSMOUNT, fs, 0, 0), "fsmount")
        try:
            call(LIBC.syscall(SYS_MOVE_MOUNT, mounted, b"", -100, target.encode(), 4), "move_mount")
        finally:
            os.close(mounted)
    finally:
        os.close(fs)


def unmount(target):
    call(LIBC.umount2(target.encode(), MNT_DETACH), "umount")


# ---- trees ----------------------------------------------------------------------------------------


def look(path):
    """What is to be the same of a file."""
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    seen = {"mode": oct(st.st_mode), "owner": (st.st_uid, st.st_gid), "time": st.st_mtime_ns,
            "xattrs": {n: os.getxattr(path, n, follow_symlinks=False) for n in os.listxattr(path, follow_symlinks=False)
                       if n.startswith("user.") or n == "security.capability"}}
    if kind != stat.S_IFDIR:
        seen["links"] = st.st_nlink
        seen["size"] = st.st_size
    if kind == stat.S_IFLNK:
        seen["target"] = os.readlink(path)
    elif kind == stat.S_IFREG:
        with open(path, "rb") as f:
            seen["contents"] = hashlib.file_digest(f, "sha256").hexdigest()
    return seen


def tree(top):
    """path -> look, and the groups of paths that are one file."""
    found, inodes = {b"": look(top)}, {}
    top = os.fsencode(top)
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            relative = path[len(top) + 1:]
            found[relative] = look(path)
            inodes.setdefault(os.lstat(path).st_ino, set()).add(relative)
    return found, {frozenset(paths) for paths in inodes.values() if len(paths) > 1}


def differences(wanted, got):
    """Of two trees, in words; empty: there are none."""
    (a, same_a), (b, same_b) = tree(wanted), tree(got)
    told = [f"{path!r}: {'missing' if path in a else 'too much'}" for path in sorted(a.keys() ^ b.keys())]
    for path in sorted(a.keys() & b.keys()):
        told += [f"{path!r}: {key} is {b[path].get(key)!r}, not {a[path][key]!r}" for key in a[path]
                 if a[path][key] != b[path].get(key)]
    told += [f"not one file: {paths!r}" for paths in same_a ^ same_b]
    return told[:20]


def memory_of_children_mib():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
