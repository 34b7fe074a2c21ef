/* What differs between files: those of a sandbox or of a snapshot, against those of a template or of
 * another snapshot. A files worker finds it out (wire/files.h), and its list is hostile: sandboxes chose
 * the names, and the worker has read what they wrote. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include "front/core/identity.h"
#include "front/core/lifecycle.h"
#include "front/core/warden.h"
#include "front/e2b/template.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"
#include "lib/base/fd.h"
#include "lib/text/base64.h"
#include "lib/text/parse.h"
#include "wire/files.h"

#define ANSWER_MAX   (FILES_DIFF_MAX * 7) /* a byte becomes \u00XX at most */
#define DIFFS_TENANT 4u                   /* of a tenant at a time: the warden has workers for 16 */

/* ---- the query ------------------------------------------------------------------------------- */

/* Finds the layer of a template or snapshot by name or id; "": it has none. what: it may be, for who
 * asked. */
static int find_layer(struct e2b_req *q, const char *what, const char *name, char ret[ID_LEN + 1],
                      struct sg_error *e)
{
    struct template_found found;
    struct template_ref ref;
    int r = template_ref_parse(name, &ref, e);

    if (r == 0)
        r = template_find(q->front->store, &q->tenant, &ref, &found, e);
    if (r == 0 && found.foreign && found.snapshot[0]) /* of whose files the tenant has a copy */
        r = store_copy_get(q->front->store, q->tenant.id, found.snapshot, ret, e);
    else if (r == 0)
        memcpy(ret, found.snapshot, sizeof(found.snapshot));
    if (r == -ENOENT)
        err_set(e, SG_ERR_NOT_FOUND, r, "There is no %s \"%.64s\"", what, name);
    return r;
}

/* The sandbox's template, as it is now. If it was deleted, or came with the server: what the sandbox
 * stands on. */
static int find_own(struct e2b_req *q, const struct sandbox *b, char ret[ID_LEN + 1],
                    struct sg_error *e)
{
    int r = template_is_builtin(b->spec.template_id)
                ? 0
                : find_layer(q, "template", b->spec.template_id, ret, e);

    return r == -ENOENT ? 0 : r;
}

static int make_order(struct e2b_req *q, const char *of, const char *against, struct order *o,
                      struct sg_error *e)
{
    char id[ID_LEN + 1];
    const struct sandbox *b =
        e2b_short_id(of, id) == 0 ? sandbox_get(q->front, q->tenant.id, id) : NULL;
    int r = 0;

    *o = (struct order){.op = ORDER_DIFF};
    if (b)
        memcpy(o->id, b->id, sizeof(o->id));
    else
        r = find_layer(q, "sandbox, snapshot or template", of, o->snapshot, e);
    if (r == 0 && !b && !o->snapshot[0])
        r = err_invalid(e, "'%.64s' comes with the server: name a sandbox or a snapshot", of);
    if (r == 0 && against)
        r = find_layer(q, "snapshot or template", against, o->against, e);
    else if (r == 0 && b)
        r = find_own(q, b, o->against, e);
    if (r == 0 && against && !o->against[0])
        r = err_invalid(e,
                        "'%.64s' comes with the server: leave 'against' out to compare with what "
                        "'%.64s' stands on",
                        against, of);
    return r;
}

/* The place after which to begin, as a memfd. */
static int make_list(struct e2b_req *q, struct sg_error *e)
{
    const char *cursor = check_query(q, "cursor");
    AUTO(close_p) int fd = memfd_create("diff", MFD_CLOEXEC);
    AUTO(strbuf_done) struct strbuf after = strbuf_upto(PATH_MAX);
    int r = fd < 0 ? -errno : 0;

    if (cursor && (base64_decode(&after, cursor, strlen(cursor)) < 0 || after.truncated ||
                   after.len == 0 || after.buf[0] != '/' || memchr(after.buf, '\0', after.len)))
        return err_invalid(e, "Invalid cursor: give the nextCursor of the page before");
    if (r == 0)
        r = fd_write_all(fd, after.buf, after.len);
    return r < 0 ? err_code(e, r, "make a list") : steal_fd(&fd);
}

/* ---- the answer ------------------------------------------------------------------------------ */

struct change {
    char kind, type;
    uint64_t size;
    const char *path;
};

static const char *word_of(char c, const char *letters, const char *const *words)
{
    const char *at = c ? strchr(letters, c) : NULL;

    return at ? words[at - letters] : NULL;
}

static const char *kind_of(char c)
{
    return word_of(c, "AMD", (const char *const[]){"added", "modified", "removed"});
}

static const char *type_of(char c)
{
    return word_of(c, "fdlo", (const char *const[]){"file", "directory", "symlink", "other"});
}

/* Reads "CT SIZE PATH" and its zero byte, and moves on. False: malformed. */
static bool read_change(const char **at, const char *end, struct change *ret)
{
    const char *stop = memchr(*at, '\0', (size_t)(end - *at)), *path;
    char size[24];

    if (!stop || stop - *at < 6 || (*at)[2] != ' ')
        return false;
    path = strchr(*at + 3, ' ');
    if (!path || path[1] != '/' || path - (*at + 3) >= (ptrdiff_t)sizeof(size))
        return false;
    snprintf(size, sizeof(size), "%.*s", (int)(path - (*at + 3)), *at + 3);
    *ret = (struct change){.kind = (*at)[0], .type = (*at)[1], .path = path + 1};
    *at = stop + 1;
    return kind_of(ret->kind) && type_of(ret->type) &&
           parse_u64("size", size, 0, INT64_MAX, &ret->size, NULL) == 0;
}

/* What the server itself puts into each sandbox (front/core/identity.c, inside/stage/boot_id.c). */
static bool is_ours(const char *path)
{
    static const char dir[] = IDENTITY_DIR;
    size_t len = strlen(dir);

    return strcmp(path, "/run/.boot_id") == 0 ||
           (strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/'));
}

static bool write_changes(struct json *j, const char *text, size_t len, const char **ret_last)
{
    const char *at = text + 2, *end = text + len;

    while (at < end) {
        struct change c;
        if (!read_change(&at, end, &c))
            return false;
        *ret_last = c.path;
        if (is_ours(c.path))
            continue;
        jw_object_begin(j);
        shape_text_key(j, "path", c.path);
        shape_text_key(j, "change", kind_of(c.kind));
        shape_text_key(j, "type", type_of(c.type));
        jw_u64(jw_key(j, "size"), c.size);
        jw_object_end(j);
    }
    return true;
}

static void reply_malformed(struct e2b_req *q)
{
    struct sg_error e;

    err_set(&e, SG_ERR_INTERNAL, -EBADMSG, "the list of changes is malformed");
    reply_sg_error(q->http, &e);
}

static void reply_changes(struct e2b_req *q, int list)
{
    AUTO(strbuf_done) struct strbuf cursor = strbuf_upto(2 * PATH_MAX);
    AUTO(free_p) char *text = NULL;
    const char *last = NULL;
    struct reply r;
    size_t len;

    if (lseek(list, 0, SEEK_SET) < 0 || fd_read_all(list, FILES_DIFF_MAX, &text, &len) < 0 ||
        len < 2) {
        reply_malformed(q);
        return;
    }
    struct json *j = reply_begin(&r, ANSWER_MAX);
    jw_array_begin(jw_key(j, "changes"));
    bool fine = write_changes(j, text, len, &last);
    jw_array_end(j);
    jw_bool(jw_key(j, "complete"), text[1] != 'l');
    if (fine && text[0] == 'm' && last)
        base64_encode(&cursor, last, strlen(last));
    shape_nullable_key(j, "nextCursor", cursor.len ? cursor.buf : "");
    if (fine) {
        reply_send(q, 200, &r);
        return;
    }
    strbuf_done(&r.text);
    reply_malformed(q);
}

struct asking {
    struct list link; /* in `all_asking` */
    struct e2b_req *q;
    char tenant[ID_LEN + 1];
    int list;
};

static struct list all_asking;

static int check_share(const char *tenant, struct sg_error *e)
{
    unsigned n = 0;

    LIST_EACH(const struct asking, a, &all_asking, link)
        n += strcmp(a->tenant, tenant) == 0;
    return n < DIFFS_TENANT ? 0
                            : err_set(e, SG_ERR_LIMIT, -EDQUOT,
                                      "%u comparisons of files of this tenant are under way: try "
                                      "again when one is done",
                                      n);
}

static void on_told(void *arg, const struct warden_answer *w)
{
    AUTO(free_p) struct asking *a = arg;
    AUTO(close_p) int list = a->list;

    list_remove(&a->link);
    if (!e2b_back(a->q))
        return;
    if (w->r < 0)
        reply_failed(a->q, w->r, &w->e);
    else
        reply_changes(a->q, list);
}

void v1_diff(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    const char *of = check_query(q, "of"), *against = check_query(q, "against");
    struct sg_error e = {0};
    struct order o;
    int list, copy;

    if (!of || !of[0])
        fields_invalid(&q->in, "'of' is missing: name a sandbox or a snapshot");
    if (against && !against[0])
        fields_invalid(&q->in, "'against' is empty: name a template or a snapshot");
    if (!e2b_read(q))
        return;
    int r = make_order(q, of, against, &o, &e);
    if (r == 0)
        r = check_share(q->tenant.id, &e);
    list = r < 0 ? -1 : make_list(q, &e);
    copy = list < 0 ? -1 : fcntl(list, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        if (list >= 0)
            err_errno(&e, "make a list");
        close_p(&list);
        reply_sg_error(req, &e);
        return;
    }
    struct asking *a = NEW(struct asking, .q = q, .list = list);
    memcpy(a->tenant, q->tenant.id, sizeof(a->tenant));
    list_append(&all_asking, &a->link);
    e2b_wait(q);
    warden_order(q->front, &o, copy, on_told, a);
}
