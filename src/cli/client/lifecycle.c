/* sandglass kill, pause and resume: one call for each sandbox. */
#include "lib/command/ui.h"
#include "cli/client/api.h"
#include "cli/client/payload.h"
#include "cli/client/jr.h"
#include "cli/client/sandboxes.h"
#include "cli/client/show.h"

#define DEFAULT_TIMEOUT_S 300

struct lifecycle_options {
    struct client_common common;
    struct sandboxes_ids ids;
    uint64_t timeout_s;
    bool all, yes, quiet;
};

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct lifecycle_options *o = self;

    return sandboxes_add_id(&o->ids, arg, e);
}

static int check(void *self, char **rest UNUSED, struct sg_error *e)
{
    struct lifecycle_options *o = self;

    if (o->all && o->ids.n > 0)
        return err_invalid(e, "both --all and ids are given: give one");
    if (!o->all && o->ids.n == 0)
        return err_invalid(e, "no sandbox given: 'sandglass ps' lists them");
    return 0;
}

/* Adds the sandbox's id to an error message that does not contain it. */
static int name_sandbox(int r, const char *id, struct sg_error *e)
{
    return r < 0 && !strstr(e->message, id) ? err_wrap(e, r, "sandbox %s", id) : r;
}

/* ---- kill ------------------------------------------------------------------------------------ */

/* arg: a bool that says whether a sandbox that does not exist counts as ended. */
static int kill_one(struct client *c, const char *id, void *arg, struct sg_error *e)
{
    const bool *may_be_gone = arg;
    int r = api_call(c, "DELETE", NULL, NULL, e, "/sandboxes/%s", id);

    return r == -ENOENT && *may_be_gone ? 0 : name_sandbox(r, id, e);
}

static int kill_all(struct client *c, struct lifecycle_options *o, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *list = NULL;
    struct sandboxes_filter all = {0};
    int r = sandboxes_list(c, &all, &list, e);
    size_t n = json_array_size(list);

    if (r < 0 || n == 0)
        return r;
    if (!o->yes && !show_agreed("End %zu sandbox%s with all that is in %s?", n, n == 1 ? "" : "es",
                                n == 1 ? "it" : "them"))
        return CLIENT_EXIT_REFUSED;
    int status = 0;
    for (size_t i = 0; i < n; i++) {
        o->ids.n = 0;
        int failed = sandboxes_add_id(&o->ids, jr_text(json_array_get(list, i), "sandboxID"), e) < 0
                         ? client_fail(e)
                         : sandboxes_each(c, &o->ids, o->quiet, kill_one, &o->all);
        status = status ? status : failed;
    }
    return status;
}

static int kill_fn(struct client *c, void *self, struct sg_error *e)
{
    struct lifecycle_options *o = self;

    return o->all ? kill_all(c, o, e) : sandboxes_each(c, &o->ids, o->quiet, kill_one, &o->all);
}

static const struct cli_option kill_options[] = {
    {"all", 0, NULL, "all sandboxes of the server; asks on a terminal",
     CLI_FLAG(lifecycle_options, all)},
    {"yes", 'y', NULL, "do not ask", CLI_FLAG(lifecycle_options, yes)},
    {"quiet", 'q', NULL, "do not print the ids", CLI_FLAG(lifecycle_options, quiet)},
    CLIENT_OPTIONS,
};
const struct client_verb kill_verb = {
    .name = "kill",
    .usage = "[OPTION]... ID...\n[OPTION]... --all",
    .about = "Ends sandboxes, running or paused, and prints their ids.",
    .syntax = &(const struct cli_syntax){kill_options, ARRAY_SIZE(kill_options), positional, 0},
    .options_size = sizeof(struct lifecycle_options),
    .check = check,
    .fn = kill_fn,
};

/* ---- pause ----------------------------------------------------------------------------------- */

static int pause_one(struct client *c, const char *id, void *arg UNUSED, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body = {0};

    payload_texts(&body, NULL);
    return name_sandbox(api_call(c, "POST", &body, NULL, e, "/sandboxes/%s/pause", id), id, e);
}

static int pause_fn(struct client *c, void *self, struct sg_error *e UNUSED)
{
    struct lifecycle_options *o = self;

    return sandboxes_each(c, &o->ids, o->quiet, pause_one, NULL);
}

static const struct cli_option pause_options[] = {
    {"quiet", 'q', NULL, "do not print the ids", CLI_FLAG(lifecycle_options, quiet)},
    CLIENT_OPTIONS,
};
const struct client_verb pause_verb = {
    .name = "pause",
    .usage = "[OPTION]... ID...",
    .about = "Pauses sandboxes: their programs stop, and are kept until 'sandglass resume'. Prints "
             "their ids.",
    .syntax = &(const struct cli_syntax){pause_options, ARRAY_SIZE(pause_options), positional, 0},
    .options_size = sizeof(struct lifecycle_options),
    .check = check,
    .fn = pause_fn,
};

/* ---- resume ---------------------------------------------------------------------------------- */

static int resume_one(struct client *c, const char *id, void *arg, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body = {0};
    const uint64_t *timeout_s = arg;

    payload_timeout(&body, *timeout_s);
    int r = api_call(c, "POST", &body, NULL, e, "/v2/sandboxes/%s/connect", id);
    if (r == -ENOENT) /* an older server, or no such sandbox */
        r = api_call(c, "POST", &body, NULL, e, "/sandboxes/%s/connect", id);
    return name_sandbox(r, id, e);
}

static int resume_fn(struct client *c, void *self, struct sg_error *e UNUSED)
{
    struct lifecycle_options *o = self;

    if (!o->timeout_s)
        o->timeout_s = DEFAULT_TIMEOUT_S;
    return sandboxes_each(c, &o->ids, o->quiet, resume_one, &o->timeout_s);
}

static const struct cli_option resume_options[] = {
    {"timeout", 0, "TIME", "how long the sandboxes live from now on: 30s, 5m (default), 1h",
     CLI_AT(client_seconds, lifecycle_options, timeout_s)},
    {"quiet", 'q', NULL, "do not print the ids", CLI_FLAG(lifecycle_options, quiet)},
    CLIENT_OPTIONS,
};
const struct client_verb resume_verb = {
    .name = "resume",
    .usage = "[OPTION]... ID...",
    .about = "Resumes paused sandboxes, and prints their ids. A sandbox that runs already gets at "
             "least the\ngiven time.",
    .syntax = &(const struct cli_syntax){resume_options, ARRAY_SIZE(resume_options), positional, 0},
    .options_size = sizeof(struct lifecycle_options),
    .check = check,
    .fn = resume_fn,
};
