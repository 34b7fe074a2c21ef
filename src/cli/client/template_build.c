/* sandglass template build: a directory with a Dockerfile becomes a template.
 *
 *   Dockerfile --> recipe, files hashed --> POST template --> files that the server has not --> POST build
 *       --> status, again and again, until it is ready or has failed */
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>

#include "cli/client/context.h"
#include "cli/client/interrupt.h"
#include "cli/client/jr.h"
#include "cli/client/template_making.h"
#include "lib/base/fd.h"
#include "lib/command/exit_status.h"
#include "lib/command/ui.h"
#include "lib/text/parse.h"

struct directory {
    struct making m;
    const char *dir;
    struct context context;
    struct context_files *files; /* of each COPY */
};

/* ---- what is here ---------------------------------------------------------------------------- */

void template_name_of(const char *dir, char *ret, size_t cap)
{
    char real[PATH_MAX];
    size_t n = 0;

    if (!realpath(dir, real))
        snprintf(real, sizeof(real), "%s", dir);
    for (const char *p = basename(real); *p && n + 1 < cap; p++) {
        char c = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
        bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';

        if (good || n > 0)
            ret[n++] = good ? c : '-';
    }
    while (n > 0 && ret[n - 1] == '-')
        n--;
    ret[n] = '\0';
}

static int choose_name(struct making *m, const char *dir)
{
    if (m->o->name && strlen(m->o->name) > MAKING_NAME_MAX)
        return err_invalid(m->e, "--name '%.80s' is too long", m->o->name);
    if (m->o->name)
        snprintf(m->name, sizeof(m->name), "%s", m->o->name);
    else
        template_name_of(dir, m->name, sizeof(m->name));
    return m->name[0]
               ? 0
               : err_invalid(
                     m->e,
                     "the directory's name makes no name for a template: give one with --name");
}

static int read_recipe(struct making *m, const char *dir)
{
    const struct template_options *o = m->o;
    AUTO(free_p) char *text = NULL;
    const char *unused;
    size_t len;

    snprintf(m->file, sizeof(m->file), "%s%s", o->file ? o->file : dir,
             o->file ? "" : "/Dockerfile");
    int r = file_read(AT_FDCWD, m->file, DOCKERFILE_MAX, &text, &len);
    if (r < 0)
        return err_code(m->e, r, "cannot read '%.200s'", m->file);
    r = recipe_read(text, (const char *const *)o->build_args, o->n_build_args, &m->recipe, &unused,
                    m->e);
    if (r < 0)
        return err_wrap(m->e, r, "%.200s", m->file);
    if (unused)
        ui_note("--build-arg %.*s: no ARG of that name", (int)strcspn(unused, "="), unused);
    if (o->start) {
        free(m->recipe.start);
        m->recipe.start = xstrdup(o->start);
    }
    return 0;
}

static int read_files(struct directory *d)
{
    struct making *m = &d->m;
    const struct recipe *recipe = &m->recipe;
    char ignore[NAME_MAX + 1] = "";
    const char *slash = strrchr(m->file, '/');
    uint64_t bytes = 0;
    size_t n = 0;
    char size[32];

    if (recipe->n_copies == 0)
        return 0;
    snprintf(ignore, sizeof(ignore), "%.200s.dockerignore", slash ? slash + 1 : m->file);
    int r = context_open(d->dir, ignore, &d->context, m->e);
    d->files = xcalloc(recipe->n_copies, sizeof(*d->files));
    for (size_t i = 0; r == 0 && i < recipe->n_copies; i++) {
        const struct recipe_copy *copy = &recipe->copies[i];

        r = context_collect(&d->context, copy, &d->files[i], m->e);
        if (r < 0)
            return err_wrap(m->e, r, "%.200s", m->file);
        json_t *step = json_array_get(recipe->steps, copy->step);
        json_array_set_new(json_object_get(step, "args"), 0, json_string(d->files[i].source));
        json_object_set_new(step, "filesHash", json_string(d->files[i].hash));
        bytes += d->files[i].bytes;
        n += d->files[i].n;
    }
    if (r == 0)
        build_view_say(&m->view, "[internal] load build context: %zu files, %s", n,
                       format_size(bytes, size, sizeof(size)));
    return r;
}

static int upload(struct making *m, const struct context_files *f)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(close_p) int fd = -1;
    uint64_t size;
    char text[32];
    int r = making_ask_upload(m, f->hash, &answer);

    if (r < 0 || jr_flag(answer, "present"))
        return r;
    r = context_pack(f, &fd, &size, m->e);
    if (r < 0)
        return r;
    build_view_say(&m->view, "[internal] transfer files of line %u: %s", f->copy->line,
                   format_size(size, text, sizeof(text)));
    r = making_upload(m, answer, fd, (int64_t)size);
    return r < 0 ? err_wrap(m->e, r, "the files of line %u could not be sent", f->copy->line) : 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int make(struct directory *d)
{
    struct making *m = &d->m;
    int r = choose_name(m, d->dir);

    if (r == 0)
        r = read_recipe(m, d->dir);
    if (r < 0)
        return r;
    build_view_init(&m->view, &m->recipe, m->o->base.quiet);
    for (size_t i = 0; i < json_array_size(m->recipe.left_out); i++)
        build_view_say(&m->view, "%s has no meaning here and is left out",
                       json_string_value(json_array_get(m->recipe.left_out, i)));
    r = read_files(d);
    if (r == 0)
        r = making_begin(m);
    for (size_t i = 0; r == 0 && i < m->recipe.n_copies; i++)
        r = upload(m, &d->files[i]);
    if (r == 0)
        r = making_start(m);
    return r < 0 ? r : making_wait(m);
}

int template_build(struct client *c, void *options, struct sg_error *e)
{
    struct template_options *o = options;
    struct directory d = {
        .m = {.client = c, .o = o, .e = e}, .dir = o->base.args[0], .context.fd = -1};

    interrupt_watch();
    int r = make(&d);
    if (r == 0)
        r = making_show(&d.m);
    for (size_t i = 0; d.files && i < d.m.recipe.n_copies; i++)
        context_files_done(&d.files[i]);
    free(d.files);
    context_done(&d.context);
    making_done(&d.m);
    for (size_t i = 0; i < o->n_build_args; i++)
        free(o->build_args[i]);
    o->n_build_args = 0;
    return r;
}
