# case: A13
# title: kernel keyrings
# users: user root
# control: seccomp
refused("add_key", 248, b"user", b"sandglass-attack", b"v", 1, -3)
refused("request_key", 249, b"user", b"sandglass-attack", 0, -3)
refused("keyctl(get session keyring)", 250, 0, -3, 0)
refused("keyctl(join session keyring)", 250, 1, 0)
refused("keyctl(describe)", 250, 6, -4, 0, 0)
for path in ("/proc/keys", "/proc/key-users"):
    try:
        if open(path).read():
            pwned(f"{path} can be read")
    except OSError as e:
        denied(path, name_of(e))
done()
