# case: A11
# title: userfaultfd
# users: user root
# control: seccomp
refused("userfaultfd(USER_MODE_ONLY)", 323, 1)
refused("userfaultfd()", 323, 0)
attempt("open /dev/userfaultfd", opens, "/dev/userfaultfd", os.O_RDWR)
done()
