/* sandglass template import: an image in an archive, as `docker save` writes it, becomes a template. The
 * archive is sent as it is read, and the server takes it apart. */
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "cli/client/interrupt.h"
#include "cli/client/jr.h"
#include "cli/client/template_making.h"
#include "lib/base/fd.h"
#include "lib/text/parse.h"

#define HASH_BYTES 32

static int open_archive(const char *file, int *ret_fd, int64_t *ret_size, struct sg_error *e)
{
    bool piped = strcmp(file, "-") == 0;
    AUTO(close_p)
    int fd = piped ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(file, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "cannot read '%.200s'", file);
    if (S_ISDIR(st.st_mode))
        return err_invalid(e, "'%.200s' is a directory: 'sandglass template build' takes those",
                           file);
    if (piped && isatty(fd))
        return err_invalid(
            e,
            "standard input is a terminal: docker save IMAGE | sandglass template import NAME -");
    *ret_size = S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == 0 ? (int64_t)st.st_size : -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}

/* The server looks at the bytes; the hash only finds them again. So it need not be one, and what comes
 * through a pipe is sent without being kept here. */
static int choose_hash(char ret[2 * HASH_BYTES + 1], struct sg_error *e)
{
    unsigned char bytes[HASH_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return err_errno(e, "draw a name for the archive");
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* A recipe of one line: the image. What it says of variables, directory and user holds. */
static void fill_recipe(struct recipe *r, const char *hash, const char *start)
{
    r->from = NULL;
    if (asprintf(&r->from, "upload:%s", hash) < 0)
        abort();
    r->steps = json_array();
    r->left_out = json_array();
    r->vertices = xcalloc(1, sizeof(*r->vertices));
    r->vertices[0].text = xstrdup("FROM the archive");
    r->n_vertices = r->cap_vertices = 1;
    if (start)
        r->start = xstrdup(start);
}

static int send_archive(struct making *m, const char *hash, int fd, int64_t size)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    char text[32];
    int r = making_ask_upload(m, hash, &answer);

    if (r < 0)
        return r;
    build_view_say(&m->view, "[internal] transfer the image%s%s", size < 0 ? "" : ": ",
                   size < 0 ? "" : format_size((uint64_t)size, text, sizeof(text)));
    r = making_upload(m, answer, fd, size);
    return r < 0 ? err_wrap(m->e, r, "the image could not be sent") : 0;
}

static int make(struct making *m, const char *file)
{
    char hash[2 * HASH_BYTES + 1];
    AUTO(close_p) int fd = -1;
    int64_t size = -1;
    int r = open_archive(file, &fd, &size, m->e);

    if (r == 0)
        r = choose_hash(hash, m->e);
    if (r < 0)
        return r;
    fill_recipe(&m->recipe, hash, m->o->start);
    build_view_init(&m->view, &m->recipe, m->o->base.quiet);
    r = making_begin(m);
    if (r == 0)
        r = send_archive(m, hash, fd, size);
    if (r == 0)
        r = making_start(m);
    return r < 0 ? r : making_wait(m);
}

int template_import(struct client *c, void *options, struct sg_error *e)
{
    const struct template_options *o = options;
    struct making m = {.client = c, .o = o, .e = e};
    const char *name = o->base.args[0];

    if (strlen(name) > MAKING_NAME_MAX || strchr(name, ':'))
        return err_invalid(e, "'%.80s' is no name for a template%s", name,
                           strchr(name, ':') ? ": give the tag with --tag" : ": it is too long");
    snprintf(m.name, sizeof(m.name), "%s", name);
    interrupt_watch();
    int r = make(&m, o->base.n_args > 1 ? o->base.args[1] : "-");
    if (r == 0)
        r = making_show(&m);
    making_done(&m);
    return r;
}
