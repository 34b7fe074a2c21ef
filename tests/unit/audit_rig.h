/* A record in a directory of its own, and a knife for it. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/audit/audit.h"
#include "lib/base/fd.h"
#include "tap.h"

#define TENANT_A  "aaaaaaaaaaaaaaaaaaaa"
#define TENANT_B  "bbbbbbbbbbbbbbbbbbbb"
#define SANDBOX_A "sandboxaaaaaaaaaaaaa"
#define SANDBOX_B "sandboxbbbbbbbbbbbbb"

struct audit_rig {
    char path[64];
    int dir;
    struct audit_log *log;
    struct audit_limits limits;
    bool tenants; /* records are of two; else of none */
};

static inline void rig_reopen(struct audit_rig *r)
{
    struct sg_error e = {0};

    audit_close(r->log);
    r->log = NULL;
    if (audit_open(r->dir, &r->limits, &r->log, &e) < 0)
        printf("# %s\n", e.message);
    EXPECT(r->log != NULL);
}

static inline void rig_begin(struct audit_rig *r)
{
    *r = (struct audit_rig){.path = "/tmp/sandglass-audit.XXXXXX",
                            .limits = {.file_bytes = 64u << 20, .files = 16}};
    if (!mkdtemp(r->path))
        abort();
    r->dir = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rig_reopen(r);
}

static inline void rig_close(struct audit_rig *r)
{
    audit_close(r->log);
    r->log = NULL;
}

static inline void rig_empty(int dir)
{
    DIR *d = fdopendir(dir);
    struct dirent *f;

    while (d && (f = readdir(d))) {
        if (unlinkat(dir, f->d_name, 0) == 0 || f->d_name[0] == '.')
            continue;
        rig_empty(openat(dir, f->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        unlinkat(dir, f->d_name, AT_REMOVEDIR);
    }
    closedir(d);
}

static inline void rig_end(struct audit_rig *r)
{
    rig_close(r);
    rig_empty(r->dir);
    rmdir(r->path);
}

/* n records, numbered in their ports. */
static inline void rig_write(struct audit_rig *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[64];
        struct audit_record rec = {.kind = i % 2 ? "dns" : "flow",
                                   .tenant = !r->tenants ? NULL
                                             : i % 3     ? TENANT_A
                                                         : TENANT_B,
                                   .sandbox = i % 3 ? SANDBOX_A : SANDBOX_B,
                                   .name = name,
                                   .address = "93.184.216.34",
                                   .port = (uint16_t)(i + 1),
                                   .protocol = "tcp",
                                   .verdict = i % 4 ? "allow" : "deny",
                                   .rule = "allow a.test",
                                   .up = i,
                                   .policy = "9f86d081884c7d65"};

        snprintf(name, sizeof(name), "n%u.a.test", i % 7);
        audit_write(r->log, &rec);
    }
    EXPECT(audit_flush(r->log) == 0);
}

static inline const char *rig_file(unsigned number)
{
    static char name[32];

    snprintf(name, sizeof(name), "audit-%06u.jsonl", number);
    return name;
}

/* A whole file. */
static inline char *rig_load(struct audit_rig *r, unsigned number, size_t *ret_len)
{
    char *text = NULL;

    EXPECT(file_read(r->dir, rig_file(number), 64u << 20, &text, ret_len) == 0);
    return text ? text : xstrdup("");
}

static inline void rig_save(struct audit_rig *r, unsigned number, const char *text, size_t len)
{
    AUTO(close_p) int fd = openat(r->dir, rig_file(number), O_WRONLY | O_TRUNC | O_CREAT, 0600);

    EXPECT(fd >= 0 && fd_write_all(fd, text, len) == 0);
}

/* The line with a number, counted from 1, in [*ret, *ret + *ret_len), newline included. */
static inline char *rig_line(char *text, unsigned line, size_t *ret_len)
{
    for (; line > 1; line--)
        text = strchr(text, '\n') + 1;
    *ret_len = (size_t)(strchr(text, '\n') + 1 - text);
    return text;
}

static inline int rig_verify(struct audit_rig *r, const char *head, struct audit_report *ret)
{
    struct sg_error e = {0};
    int v = audit_verify(r->dir, NULL, head, ret, &e);

    if (v < 0 && v != -EBADMSG)
        printf("# %s\n", e.message);
    return v;
}

/* Verifying fails at exactly that record. */
static inline void rig_expect_broken(struct audit_rig *r, uint64_t seq, const char *why)
{
    struct audit_report report;
    int v = rig_verify(r, NULL, &report);

    if (v != -EBADMSG || report.bad_seq != seq || !strstr(report.message, why))
        printf("# %d at %llu: %s\n", v, (unsigned long long)report.bad_seq, report.message);
    EXPECT(v == -EBADMSG);
    EXPECT(report.bad_seq == seq);
    EXPECT(strstr(report.message, why) != NULL);
}
