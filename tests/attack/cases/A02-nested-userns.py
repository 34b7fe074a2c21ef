# case: A02
# title: nested user namespaces
# users: user root
# control: seccomp,nested-ns
def raw():
    return 0 if S(272, CLONE_NEW["NEWUSER"])[0] == 0 else 1


if in_child(raw) == 0:
    pwned("unshare(CLONE_NEWUSER)")
else:
    denied("unshare(CLONE_NEWUSER)", S(272, CLONE_NEW["NEWUSER"])[1])
command("unshare -Ur", "unshare", "-U", "-r", "id")
command("unshare with all", "unshare", "-U", "-r", "-m", "-p", "-f", "true")
done()
