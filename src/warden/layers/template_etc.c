#include "warden/layers/template_etc.h"

#include "warden/host/netpath.h"

const struct template_dir template_dirs[] = {
    {"etc", 0755, 0, 0},
    {"etc/alternatives", 0755, 0, 0},
    {"etc/apt", 0755, 0, 0},
    {"etc/apt/apt.conf.d", 0755, 0, 0},
    {"etc/ld.so.conf.d", 0755, 0, 0},
    {"etc/pam.d", 0755, 0, 0},
    {"etc/skel", 0755, 0, 0},
    {"etc/ssl", 0755, 0, 0},
    {"etc/ssl/certs", 0755, 0, 0},
    {"dev", 0755, 0, 0},
    {"home", 0755, 0, 0},
    {"home/user", 0755, 1000, 1000},
    {"media", 0755, 0, 0},
    {"mnt", 0755, 0, 0},
    {"opt", 0755, 0, 0},
    {"proc", 0555, 0, 0},
    {"root", 0700, 0, 0},
    {"run", 0755, 0, 0},
    {"run/lock", 01777, 0, 0},
    {"run/shm", 01777, 0, 0},
    {"srv", 0755, 0, 0},
    {"sys", 0555, 0, 0},
    {"sys/devices", 0555, 0, 0},
    {"sys/devices/system", 0555, 0, 0},
    {"sys/devices/system/cpu", 0555, 0, 0},
    {"tmp", 01777, 0, 0},
    {"usr", 0755, 0, 0},
    {"usr/local", 0755, 0, 0},
    {"usr/local/bin", 0755, 0, 0},
    {"usr/local/etc", 0755, 0, 0},
    {"usr/local/games", 0755, 0, 0},
    {"usr/local/include", 0755, 0, 0},
    {"usr/local/lib", 0755, 0, 0},
    {"usr/local/sbin", 0755, 0, 0},
    {"usr/local/share", 0755, 0, 0},
    {"usr/local/src", 0755, 0, 0},
    {"var", 0755, 0, 0},
    {"var/cache", 0755, 0, 0},
    {"var/cache/apt", 0755, 0, 0},
    {"var/cache/apt/archives", 0755, 0, 0},
    {"var/lib", 0755, 0, 0},
    {"var/lib/dpkg", 0755, 0, 0},
    {"var/log", 0755, 0, 0},
    {"var/mail", 02775, 0, 8},
    {"var/spool", 0755, 0, 0},
    {"var/tmp", 01777, 0, 0},
};
const size_t template_n_dirs = ARRAY_SIZE(template_dirs);

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                             "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
                             "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
                             "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
                             "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
                             "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
                             "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
                             "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
                             "user:x:1000:1000:user:/home/user:/bin/bash\n"
                             "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";

static const char group[] = "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\n"
                            "disk:x:6:\nmail:x:8:\nman:x:12:\nsudo:x:27:user\nwww-data:x:33:\n"
                            "shadow:x:42:\nutmp:x:43:\nstaff:x:50:\nusers:x:100:\nuser:x:1000:\n"
                            "nogroup:x:65534:\n";

static const char shadow[] = "root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\n";

static const char hosts[] = "127.0.0.1\tlocalhost sandbox\n"
                            "::1\tlocalhost ip6-localhost ip6-loopback\n";

static const char nsswitch[] = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                               "networks: files\nprotocols: files\nservices: files\n";

/* Any address would do as name server: the guard answers queries to all of them (netpath.h).
 * Without a way out there is no route to it, and looking up a name fails at once. */
static const char resolv[] = "nameserver " NETPATH_NAMESERVER "\noptions timeout:5 attempts:2\n";

static const char profile[] =
    "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
    "if [ -n \"$BASH\" ]; then PS1='\\u@\\h:\\w\\$ '; [ -f ~/.bashrc ] && . ~/.bashrc; fi\n"
    "umask 022\n";

static const char bashrc[] = "[ -z \"$PS1\" ] && return\nPS1='\\u@\\h:\\w\\$ '\n"
                             "alias ls='ls --color=auto'\n";

/* set-uid has no effect in a sandbox, so nothing here can raise rights: only root may switch users,
 * as everywhere. */
static const char pam[] = "auth sufficient pam_rootok.so\nauth required pam_deny.so\n"
                          "account required pam_permit.so\nsession required pam_permit.so\n";

const struct template_file template_files[] = {
    {"etc/passwd", passwd, 0644, 0, 0},
    {"etc/group", group, 0644, 0, 0},
    {"etc/shadow", shadow, 0640, 0, 42},
    {"etc/hosts", hosts, 0644, 0, 0},
    {"etc/hostname", "sandbox\n", 0644, 0, 0},
    {"etc/nsswitch.conf", nsswitch, 0644, 0, 0},
    {"etc/resolv.conf", resolv, 0644, 0, 0},
    {"etc/host.conf", "multi on\n", 0644, 0, 0},
    {"etc/profile", profile, 0644, 0, 0},
    {"etc/bash.bashrc", bashrc, 0644, 0, 0},
    {"etc/environment", "", 0644, 0, 0},
    {"etc/fstab", "", 0644, 0, 0},
    {"etc/timezone", "Etc/UTC\n", 0644, 0, 0},
    {"etc/shells", "/bin/sh\n/bin/bash\n/bin/dash\n", 0644, 0, 0},
    {"etc/pam.d/su", pam, 0644, 0, 0},
    {"etc/pam.d/su-l", pam, 0644, 0, 0},
    {"etc/pam.d/runuser", pam, 0644, 0, 0},
    {"etc/pam.d/runuser-l", pam, 0644, 0, 0},
    {"etc/pam.d/other", pam, 0644, 0, 0},
    {"home/user/.bashrc", bashrc, 0644, 1000, 1000},
    {"home/user/.profile", "[ -f ~/.bashrc ] && . ~/.bashrc\n", 0644, 1000, 1000},
    {"root/.bashrc", bashrc, 0644, 0, 0},
    {"root/.profile", "[ -f ~/.bashrc ] && . ~/.bashrc\n", 0644, 0, 0},
    {"var/lib/dpkg/status", "", 0644, 0, 0},
};
const size_t template_n_files = ARRAY_SIZE(template_files);

const struct template_link template_links[] = {
    {"bin", "usr/bin"},
    {"sbin", "usr/sbin"},
    {"lib", "usr/lib"},
    {"lib32", "usr/lib32"},
    {"lib64", "usr/lib64"},
    {"libx32", "usr/libx32"},
    {"etc/os-release", "../usr/lib/os-release"},
    {"etc/localtime", "/usr/share/zoneinfo/Etc/UTC"},
    {"etc/mtab", "../proc/self/mounts"},
    {"var/run", "/run"},
    {"var/lock", "/run/lock"},
};
const size_t template_n_links = ARRAY_SIZE(template_links);

const char *const template_copies[] = {
    "/etc/alternatives",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/ImageMagick-*",
    "/etc/inputrc",
    "/etc/java-*",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/matplotlibrc",
    "/etc/mime.types",
    "/etc/perl",
    "/etc/protocols",
    "/etc/python3*",
    "/etc/R",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/possible",
    "/sys/devices/system/cpu/present",
};
const size_t template_n_copies = ARRAY_SIZE(template_copies);
