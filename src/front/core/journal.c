#include "front/core/journal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "lib/log/log.h"

#define HEAD_MAGIC   0x73676a31u /* "sgj1" */
#define RECORD_MAGIC 0x7367656eu
#define HEAD_BYTES   4096u
#define LEAST_BYTES  (4u * 1024 * 1024) /* that are appended before the state is written anew */
#define PARTS        3

enum record_kind { RECORD_LOG, RECORD_METRIC, RECORD_ENDED };

struct head {
    uint64_t magic, start;
};

struct record {
    uint32_t magic, kind;
    uint32_t len; /* of what follows */
    char id[ID_LEN + 1];
};

struct line {
    int64_t ms;
    uint32_t level, fault, pid, stream;
};

/* How a sandbox ended; its log is in the records before. */
struct ending {
    int64_t ended_ms;
    char tenant[ID_LEN + 1];
    struct sandbox_end end;
};

/* What was read of a sandbox. */
struct found {
    struct map_node by_id;
    char id[ID_LEN + 1];
    struct sandbox_log log;
    struct sandbox_metrics metrics;
};

static struct {
    struct front *front;
    int fd; /* 0: there is none */
    bool writing;
    uint64_t start, size;
    uint64_t limit; /* of the size, beyond which the state is written anew */
    struct map found;
} journal;

static const char *const streams[] = {NULL, "stdout", "stderr", "pty"};

static uint32_t stream_number(const char *stream)
{
    for (uint32_t i = 1; stream && i < ARRAY_SIZE(streams); i++)
        if (strcmp(streams[i], stream) == 0)
            return i;
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void give_up(int error)
{
    log_line(LEVEL_WARN,
             "logs and metrics of sandboxes will not outlive this process: write the journal: %s",
             strerror(error));
    close_p(&journal.fd);
    journal.fd = 0;
}

static bool put(enum record_kind kind, const char *id, const void *data, size_t len,
                const void *more, size_t more_len)
{
    struct record r = {.magic = RECORD_MAGIC, .kind = kind, .len = (uint32_t)(len + more_len)};
    const struct iovec parts[PARTS] = {
        {&r, sizeof(r)}, {(void *)(uintptr_t)data, len}, {(void *)(uintptr_t)more, more_len}};
    ssize_t all = (ssize_t)(sizeof(r) + len + more_len);

    memcpy(r.id, id, strnlen(id, ID_LEN));
    ssize_t n = pwritev(journal.fd, parts, more_len > 0 ? PARTS : PARTS - 1, (off_t)journal.size);
    if (n != all) {
        give_up(n < 0 ? errno : ENOSPC);
        return false;
    }
    journal.size += (uint64_t)all;
    return true;
}

static bool put_line(const char *id, const struct log_entry *e)
{
    const struct line line = {.ms = e->ms,
                              .level = e->level,
                              .fault = e->fault,
                              .pid = e->pid,
                              .stream = stream_number(e->stream)};

    return put(RECORD_LOG, id, &line, sizeof(line), e->text, e->len);
}

static bool put_lines(const char *id, const struct sandbox_log *log)
{
    for (size_t i = 0; i < sandbox_log_count(log); i++)
        if (!put_line(id, sandbox_log_get(log, i)))
            return false;
    return true;
}

static bool put_ending(const struct ended_log *l)
{
    struct ending ending = {.ended_ms = l->ended_ms, .end = *l->end};

    memcpy(ending.tenant, l->tenant, strnlen(l->tenant, ID_LEN));
    return put(RECORD_ENDED, l->id, &ending, sizeof(ending), NULL, 0);
}

static bool put_ended(const struct ended_log *l, void *arg)
{
    bool *good = arg;

    *good = put_lines(l->id, l->log) && put_ending(l);
    return *good;
}

static bool put_state(void)
{
    bool good = true;

    ended_logs_each(put_ended, &good);
    SANDBOXES_EACH(b, journal.front) {
        if (!good)
            break;
        good = put_lines(b->id, &b->log);
        for (uint32_t i = 0; good && i < sandbox_metrics_count(&b->metrics); i++)
            good = put(RECORD_METRIC, b->id, sandbox_metrics_get(&b->metrics, i),
                       sizeof(struct metric), NULL, 0);
    }
    return good;
}

static void write_anew(void)
{
    struct head head = {.magic = HEAD_MAGIC, .start = journal.size};
    uint64_t hole = head.start / HEAD_BYTES * HEAD_BYTES;

    if (!put_state())
        return;
    if (pwrite(journal.fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head)) {
        give_up(errno);
        return;
    }
    journal.start = head.start;
    journal.limit = journal.size + (journal.size - journal.start) + LEAST_BYTES;
    if (hole > HEAD_BYTES)
        fallocate(journal.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, HEAD_BYTES,
                  (off_t)(hole - HEAD_BYTES));
}

static void wrote(void)
{
    if (journal.fd > 0 && journal.size > journal.limit)
        write_anew();
}

void journal_log(const struct sandbox_log *log, const struct log_entry *e)
{
    if (journal.fd > 0 && log->id[0] && put_line(log->id, e))
        wrote();
}

void journal_metric(const char *id, const struct metric *m)
{
    if (journal.fd > 0 && put(RECORD_METRIC, id, m, sizeof(*m), NULL, 0))
        wrote();
}

void journal_ended(const struct ended_log *ended)
{
    if (journal.fd > 0 && put_ending(ended))
        wrote();
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct found *find(const char *id)
{
    return MAP_FIND(struct found, x, &journal.found, hash_text(0, id), by_id,
                    strcmp(x->id, id) == 0);
}

static struct found *find_or_add(const char *id)
{
    struct found *x = find(id);

    if (x)
        return x;
    x = xcalloc(1, sizeof(*x));
    memcpy(x->id, id, sizeof(x->id));
    map_add(&journal.found, &x->by_id, hash_text(0, id));
    return x;
}

static void forget(struct found *x)
{
    map_remove(&journal.found, &x->by_id);
    sandbox_log_done(&x->log);
    sandbox_metrics_done(&x->metrics);
    free(x);
}

static void read_line(struct found *x, const char *data, size_t len)
{
    struct line line;

    if (len < sizeof(line))
        return;
    memcpy(&line, data, sizeof(line));
    if (line.level >= LOG_LEVEL_MAX_ || line.fault >= FAULT_MAX_ ||
        line.stream >= ARRAY_SIZE(streams))
        return;
    const struct log_entry head = {.ms = line.ms,
                                   .level = line.level,
                                   .fault = line.fault,
                                   .pid = line.pid,
                                   .stream = streams[line.stream]};
    sandbox_log_restore(&x->log, &head, data + sizeof(line), len - sizeof(line));
}

static void read_ending(struct found *x, const char *data, size_t len)
{
    struct ending ending;

    if (len != sizeof(ending))
        return;
    memcpy(&ending, data, sizeof(ending));
    ending.tenant[ID_LEN] = ending.end.detail[SANDBOX_END_DETAIL - 1] = '\0';
    if (id_valid(ending.tenant) && ending.end.why < END_MAX_)
        ended_logs_restore(ending.tenant, x->id, &ending.end, &x->log, ending.ended_ms);
    forget(x);
}

static void read_record(const struct record *r, const char *data)
{
    struct found *x = find_or_add(r->id);
    struct metric m;

    if (r->kind == RECORD_LOG) {
        read_line(x, data, r->len);
    } else if (r->kind == RECORD_METRIC && r->len == sizeof(m)) {
        memcpy(&m, data, sizeof(m));
        sandbox_metrics_restore(&x->metrics, &m);
    } else if (r->kind == RECORD_ENDED) {
        read_ending(x, data, r->len);
    }
}

/* Reads the records of `size` bytes. Returns where the last whole one ends: the one after it may have
 * been cut off by the end of its writer. */
static size_t read_records(const char *bytes, size_t size)
{
    struct record r;
    size_t at = 0;

    while (size - at >= sizeof(r)) {
        memcpy(&r, bytes + at, sizeof(r));
        if (r.magic != RECORD_MAGIC || r.len > size - at - sizeof(r) || !id_valid(r.id))
            break;
        read_record(&r, bytes + at + sizeof(r));
        at += sizeof(r) + r.len;
    }
    return at;
}

static int read_all(uint64_t size)
{
    uint64_t page = journal.start / HEAD_BYTES * HEAD_BYTES, skip = journal.start - page;
    void *map;

    if (journal.start < HEAD_BYTES || journal.start > size)
        return -EPROTO;
    journal.size = journal.start;
    if (journal.start == size)
        return 0;
    map = mmap(NULL, size - page, PROT_READ, MAP_SHARED, journal.fd, (off_t)page);
    if (map == MAP_FAILED)
        return -errno;
    journal.size += read_records((const char *)map + skip, size - journal.start);
    munmap(map, size - page);
    return 0;
}

static int open_it(void)
{
    struct head head = {.magic = HEAD_MAGIC, .start = HEAD_BYTES};
    struct stat st;

    if (fstat(journal.fd, &st) < 0)
        return -errno;
    journal.start = journal.size = HEAD_BYTES;
    if (st.st_size == 0)
        return pwrite(journal.fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) ? 0 : -EIO;
    if (pread(journal.fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        head.magic != HEAD_MAGIC)
        return -EPROTO;
    if (st.st_size <= (off_t)HEAD_BYTES) /* nothing but the head */
        return 0;
    journal.start = head.start;
    return read_all((uint64_t)st.st_size);
}

void journal_open(struct front *f, int fd)
{
    if (journal.fd > 0)
        close(journal.fd);
    journal.front = f;
    journal.fd = fd;
    int r = open_it();
    /* What is behind the last whole record would be read as one. */
    if (r == 0 && ftruncate(fd, (off_t)journal.size) < 0)
        r = -errno;
    journal.limit = journal.size + (journal.size - journal.start) + LEAST_BYTES;
    if (r < 0)
        give_up(-r);
}

void journal_give(const char *id, struct sandbox_log *log, struct sandbox_metrics *metrics)
{
    struct found *x = find(id);

    if (!x)
        return;
    sandbox_log_done(log);
    *log = x->log;
    memcpy(log->id, x->id, sizeof(log->id));
    x->log = (struct sandbox_log){.ring = NULL};
    if (metrics) {
        *metrics = x->metrics;
        x->metrics = (struct sandbox_metrics){.ring = NULL};
    }
    forget(x);
}

void journal_settle(void)
{
    MAP_EACH(struct found, x, &journal.found, by_id)
        forget(x);
    /* Fronts that are killed soon would let it grow. */
    if (journal.fd > 0 && journal.size - journal.start > LEAST_BYTES)
        write_anew();
}
