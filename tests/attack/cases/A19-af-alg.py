# case: A19
# title: AF_ALG
# users: user root
# options: --timeout 30s
# control: seccomp
for kind in (1, 2, 3, 5):
    refused(f"socket(AF_ALG, {kind})", 41, 38, kind, 0, ok=("EPERM",))
if not CONTROL:
    operations, _ = stress("--af-alg", "1", "-t", "1")
    if operations.get("af-alg", 0):
        pwned("stress-ng did AF_ALG operations")
done()
