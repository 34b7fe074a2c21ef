# case: B08
# title: set-uid programs and file capabilities
# users: user root
# control: nnp,seccomp
# control-user: root
import struct

USER = 1000


def as_root(*argv):
    subprocess.run(argv if ROOT else ("sudo", *argv), check=True, stdin=subprocess.DEVNULL)


def look_at(path):
    """Starts it as an ordinary user and reads what it has become."""

    def drop():
        if ROOT:
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)

    p = subprocess.Popen([path, "10"], preexec_fn=drop)
    status = status_of(p.pid)
    p.kill()
    p.wait()
    if {*status["Uid"].split(), *status["Gid"].split()} != {str(USER)}:
        pwned(f"{path} runs with uids {status['Uid']}, gids {status['Gid']}")
    elif int(status["CapEff"], 16) or int(status["CapPrm"], 16):
        pwned(f"{path} has the capabilities {status['CapPrm']}")
    elif status["NoNewPrivs"] != "1":
        pwned("programs may gain privileges: no_new_privs is off")
    else:
        denied(path, "still an ordinary user")


for top in ("/tmp", "/dev/shm", "/usr/local/bin"):
    path = f"{top}/suid-sleep"
    as_root("cp", "/usr/bin/sleep", path)
    as_root("chown", "0:0", path)
    as_root("chmod", "6755", path)
    look_at(path)
    as_root("chmod", "755", path)
    net_raw = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
    try:
        os.setxattr(path, "security.capability", net_raw)
        look_at(path)
    except OSError as e:
        denied(f"capabilities on {path}", name_of(e))
done()
