# case: B02
# title: links in /proc lead nowhere else
# users: user root
# control: agent,caps
# control-user: root
root = os.stat("/")
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("root", "cwd", "exe"):
        path = f"/proc/{pid}/{name}"
        try:
            target = os.readlink(path)
        except OSError as e:
            denied(path, name_of(e))
            continue
        if pid == "1":
            pwned(f"{path} can be read: {target}")
        elif name == "root" and not os.path.samestat(os.stat(path), root):
            pwned(f"{path} is another root")
    try:
        fds = os.listdir(f"/proc/{pid}/fd")
    except OSError as e:
        denied(f"/proc/{pid}/fd", name_of(e))
        continue
    if pid == "1":
        pwned(f"the agent's descriptors can be listed: {fds}")
    for fd in fds:
        path = f"/proc/{pid}/fd/{fd}"
        try:
            st = os.stat(path)
        except OSError:
            continue
        # A directory or disk file that is open must be one that can be reached by name as well.
        target = os.readlink(path)
        if target.startswith("/") and not target.startswith(("/proc/", "/dev/")):
            try:
                if not os.path.samestat(st, os.stat(target)):
                    pwned(f"{path} is a {target} that is not ours")
            except FileNotFoundError:
                if not target.endswith(" (deleted)"):
                    pwned(f"{path} is {target}, which is not in the sandbox")
done()
