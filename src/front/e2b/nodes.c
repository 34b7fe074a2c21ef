/* This server as E2B's only node: what it has, what of that sandboxes hold, and whether it takes
 * new ones (front/core/node.h). Other servers on the same database answer for themselves. */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "front/core/node.h"
#include "front/e2b/admin.h"
#include "front/e2b/request.h"
#include "front/e2b/shape.h"
#include "lib/base/clock.h"

#define ANSWER_MAX    (64u * 1024)
#define LOCAL_CLUSTER "00000000-0000-0000-0000-000000000000" /* as E2B names its own */
#define CPU_AGAIN_NS  1000000000ull

static const char *const statuses[NODE_STATUS_MAX_] = {
    [NODE_READY] = "ready", [NODE_DRAINING] = "draining", [NODE_STANDBY] = "standby"};

/* ---- the machine ----------------------------------------------------------------------------- */

/* The beginning of a file of /proc; "" if it cannot be read. */
static void read_proc(const char *path, char *ret, size_t cap)
{
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, ret, cap - 1);

    ret[n > 0 ? n : 0] = '\0';
}

/* A value of /proc/meminfo, in bytes or as a count; 0 if it is not there. */
static uint64_t meminfo(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    char unit[3] = "";
    unsigned long long n = 0;

    if (!at || sscanf(at + strlen(name), " %llu %2[kB]", &n, unit) < 1)
        return 0;
    return unit[0] ? n * 1024 : n;
}

/* How busy the processors were since this was asked for last; at first, since the machine's
 * start. */
static unsigned cpu_percent(void)
{
    static uint64_t busy_before, all_before, asked_ns;
    static unsigned percent;
    unsigned long long t[8] = {0}, all = 0;
    char text[256];

    if (asked_ns && clock_ns() - asked_ns < CPU_AGAIN_NS)
        return percent;
    read_proc("/proc/stat", text, sizeof(text));
    if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
               &t[4], &t[5], &t[6], &t[7]) != 8)
        return percent;
    for (size_t i = 0; i < ARRAY_SIZE(t); i++)
        all += t[i];
    uint64_t busy = all - t[3] - t[4]; /* without idle, and without waiting for a disk */
    if (all > all_before && busy >= busy_before)
        percent = (unsigned)((busy - busy_before) * 100 / (all - all_before));
    busy_before = busy;
    all_before = all;
    asked_ns = clock_ns();
    return percent;
}

static void write_machine(struct json *j)
{
    char family[16] = "", model[16] = "", name[49] = "";
    struct utsname u = {0};

#ifdef __x86_64__
    unsigned a, b, c, d, words[12];

    if (__get_cpuid(1, &a, &b, &c, &d)) {
        unsigned base = a >> 8 & 15;

        snprintf(family, sizeof(family), "%u", base == 15 ? base + (a >> 20 & 255) : base);
        snprintf(model, sizeof(model), "%u", (a >> 4 & 15) | (a >> 12 & 240));
    }
    if ((unsigned)__get_cpuid_max(0x80000000, NULL) >= 0x80000004) {
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002 + i, &words[i * 4], &words[i * 4 + 1], &words[i * 4 + 2],
                        &words[i * 4 + 3]);
        memcpy(name, words, sizeof(words));
    }
#endif
    uname(&u);
    jw_object_begin(jw_key(j, "machineInfo"));
    jw_string(jw_key(j, "cpuFamily"), family);
    jw_string(jw_key(j, "cpuModel"), model);
    jw_string(jw_key(j, "cpuModelName"), name + strspn(name, " "));
    jw_string(jw_key(j, "cpuArchitecture"), u.machine);
    jw_object_end(j);
}

/* The file system of the state directory, where this process is. */
static void write_disk(struct json *j)
{
    struct mntent at, *m;
    char here[4096], text[8192], best[4096] = "", device[256] = "", type[64] = "";
    struct statvfs st;
    FILE *f;

    if (statvfs(".", &st) < 0 || !getcwd(here, sizeof(here)) ||
        !(f = setmntent("/proc/self/mounts", "re")))
        return;
    while ((m = getmntent_r(f, &at, text, sizeof(text)))) {
        size_t len = strlen(m->mnt_dir);
        bool holds = strcmp(m->mnt_dir, "/") == 0 ||
                     (strncmp(here, m->mnt_dir, len) == 0 && strchr("/", here[len]));

        if (!holds || len < strlen(best) || len >= sizeof(best))
            continue;
        memcpy(best, m->mnt_dir, len + 1);
        snprintf(device, sizeof(device), "%s", m->mnt_fsname);
        snprintf(type, sizeof(type), "%s", m->mnt_type);
    }
    endmntent(f);
    jw_object_begin(j);
    jw_string(jw_key(j, "mountPoint"), best);
    jw_string(jw_key(j, "device"), device);
    jw_string(jw_key(j, "filesystemType"), type);
    jw_u64(jw_key(j, "usedBytes"), (st.f_blocks - st.f_bfree) * st.f_frsize);
    jw_u64(jw_key(j, "totalBytes"), st.f_blocks * st.f_frsize);
    jw_object_end(j);
}

/* ---- the node -------------------------------------------------------------------------------- */

struct held {
    uint64_t running, starting, cpus_milli, memory;
};

static struct held held_by_all(const struct front *f)
{
    struct held h = {0};

    SANDBOXES_EACH(b, f) {
        if (b->spec.standby || (b->state != SANDBOX_RUNNING && b->state != SANDBOX_STARTING))
            continue;
        h.running += b->state == SANDBOX_RUNNING;
        h.starting += b->state == SANDBOX_STARTING;
        h.cpus_milli += b->spec.limits.cpus_milli;
        h.memory += b->spec.limits.memory_bytes;
    }
    return h;
}

static void write_metrics(struct json *j, const struct held *h)
{
    char text[8192];

    read_proc("/proc/meminfo", text, sizeof(text));
    uint64_t total = meminfo(text, "MemTotal:"), available = meminfo(text, "MemAvailable:");
    uint64_t pages = meminfo(text, "HugePages_Total:"), spare = meminfo(text, "HugePages_Free:");
    jw_object_begin(jw_key(j, "metrics"));
    jw_u64(jw_key(j, "allocatedCPU"), (h->cpus_milli + 999) / 1000);
    jw_u64(jw_key(j, "cpuPercent"), cpu_percent());
    jw_i64(jw_key(j, "cpuCount"), sysconf(_SC_NPROCESSORS_ONLN));
    jw_u64(jw_key(j, "allocatedMemoryBytes"), h->memory);
    jw_u64(jw_key(j, "memoryUsedBytes"), total > available ? total - available : 0);
    jw_u64(jw_key(j, "memoryTotalBytes"), total);
    jw_u64(jw_key(j, "hugePagesTotal"), pages);
    jw_u64(jw_key(j, "hugePagesUsed"), pages > spare ? pages - spare : 0);
    jw_u64(jw_key(j, "hugePagesReserved"), meminfo(text, "HugePages_Rsvd:"));
    jw_u64(jw_key(j, "hugePageSizeBytes"), meminfo(text, "Hugepagesize:"));
    jw_array_begin(jw_key(j, "disks"));
    write_disk(j);
    jw_array_end(j);
    jw_object_end(j);
}

/* The id that contexts have of this server too, and one of this process. */
static int own_ids(struct front *f, char ret[ID_LEN + 1], const char **ret_instance,
                   struct sg_error *e)
{
    static char instance[ID_LEN + 1];
    unsigned char bytes[ID_LEN];
    int r = store_secret(f->store, "node", bytes, sizeof(bytes), e);

    if (r < 0)
        return r;
    id_from_bytes(bytes, ret);
    if (!instance[0])
        id_random(instance);
    *ret_instance = instance;
    return 0;
}

static int write_node(struct json *j, struct front *f, bool listed, struct sg_error *e)
{
    struct held h = held_by_all(f);
    const char *instance;
    char id[ID_LEN + 1];
    int r = own_ids(f, id, &instance, e);

    if (r < 0)
        return r;
    jw_string(jw_key(j, "id"), id);
    jw_string(jw_key(j, "serviceInstanceID"), instance);
    jw_string(jw_key(j, "clusterID"), LOCAL_CLUSTER);
    jw_string(jw_key(j, "version"), SG_VERSION);
    jw_string(jw_key(j, "commit"), "");
    jw_string(jw_key(j, "status"), statuses[node_status(f)]);
    shape_time_key(j, "statusChangedAt", node_status_since_ms());
    jw_u64(jw_key(j, "sandboxCount"), h.running);
    if (listed)
        jw_u64(jw_key(j, "sandboxStartingCount"), h.starting);
    jw_u64(jw_key(j, "createSuccesses"), f->creates);
    jw_u64(jw_key(j, "createFails"), f->creates_failed);
    write_machine(j);
    write_metrics(j, &h);
    return 0;
}

/* Whether the request is about this cluster, which is the only one. */
static bool is_here(const char *cluster)
{
    return !cluster || strcmp(cluster, LOCAL_CLUSTER) == 0;
}

void nodes_list(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};
    struct sg_error e;
    int r = 0;

    jw_array_begin(&j);
    if (is_here(http_query_get(req, "clusterID"))) {
        jw_object_begin(&j);
        r = write_node(&j, front_of(req), true, &e);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    if (r < 0)
        reply_sg_error(req, &e);
    else
        reply_json(req, 200, &out);
}

/* Whether the path names this server. False: answered. */
static bool is_named(struct e2b_req *q, const char *cluster)
{
    const char *instance;
    char id[ID_LEN + 1];
    struct sg_error e;

    if (own_ids(q->front, id, &instance, &e) < 0)
        reply_sg_error(q->http, &e);
    else if (!is_here(cluster) || strcmp(q->http->params[0], id) != 0)
        reply_error(q->http, 404, "Node not found");
    else
        return true;
    return false;
}

void node_get(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sg_error e;
    struct reply r;

    if (!is_named(q, http_query_get(req, "clusterID")))
        return;
    if (write_node(reply_begin(&r, ANSWER_MAX), q->front, false, &e) == 0) {
        reply_send(q, 200, &r);
        return;
    }
    strbuf_done(&r.text);
    reply_sg_error(req, &e);
}

void node_change(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    const char *cluster = field_text(&q->in, "clusterID", 64, NULL);
    const char *text = field_text(&q->in, "status", 64, "");
    enum node_status status = NODE_READY;
    struct sg_error e;

    while (status < NODE_STATUS_MAX_ && strcmp(statuses[status], text) != 0)
        status++;
    if (status == NODE_STATUS_MAX_)
        field_wrong(&q->in, "'status' can be set to ready, draining and standby");
    if (!e2b_read(q) || !is_named(q, cluster))
        return;
    if (node_set_status(q->front, status, &e) < 0)
        reply_sg_error(req, &e);
    else
        reply_empty(req, 204);
}
