#include "front/builds/account.h"

#include <stdio.h>

#include "front/core/shell.h"
#include "lib/channel/wire.h"

#define MAKE_MS 60000

/* With useradd, or by hand where an image has none. The id is never that of "user", which an image's own
 * files need not name. A group of the name may be there already. Nothing but the shell is needed to find
 * an id, so that what is missing is told by the program that is missing. */
static const char make[] =
    "at_end() {\n"
    "    text=$(<\"$1\")\n"
    "    { [ -z \"$text\" ] || printf '%s\\n' \"$text\"; printf '%s\\n' \"$2\"; } >\"$1\"\n"
    "}\n"
    "gid=\n"
    "while IFS=: read -r group _ n _; do [ \"$group\" != \"$name\" ] || gid=$n; done </etc/group\n"
    "if command -v useradd >/dev/null; then\n"
    "    if [ \"$gid\" ]; then set -- -g \"$gid\"; else set -- -U; fi\n"
    "    exec useradd -m -K UID_MIN=1001 -s /bin/bash \"$@\" \"$name\"\n"
    "fi\n"
    "set -e\n"
    "id=1001\n"
    "for file in /etc/passwd /etc/group; do\n"
    "    while IFS=: read -r _ _ n _; do\n"
    "        [[ $n =~ ^[0-9]{4,5}$ ]] && ((10#$n >= id && 10#$n < 60000)) && id=$((10#$n + 1))\n"
    "    done <$file\n"
    "done\n"
    "[ \"$gid\" ] || at_end /etc/group \"$name:x:$id:\"\n"
    "at_end /etc/passwd \"$name:*:$id:${gid:-$id}::/home/$name:/bin/bash\"\n"
    "mkdir -p \"/home/$name\"\n"
    "[ ! -d /etc/skel ] || cp -a /etc/skel/. \"/home/$name\"\n"
    "chown -R \"$id:${gid:-$id}\" \"/home/$name\"\n";

static void finish(struct account *a, int r, const char *home, const struct sg_error *e)
{
    a->done(a, r, home, a->made, e);
}

PRINTF(3, 4)
static void fail(struct account *a, int r, const char *fmt, ...)
{
    struct sg_error e;
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(&e, SG_ERR_INVALID, r, "%s", text);
    finish(a, r, "", &e);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void ignore_event(struct call *c UNUSED, uint8_t what UNUSED, const void *p UNUSED,
                         size_t len UNUSED)
{
}

static void on_make_data(struct call *c, uint8_t sub, const void *p, size_t len)
{
    struct account *a = c->owner;

    a->on_output(a->arg, sub == CHAN_STDERR, p, len);
    call_consumed(c, len);
}

static int ask(struct account *a, struct sg_error *e);

static void on_make_end(struct call *c, int status, const char *message, const void *result,
                        size_t len)
{
    struct account *a = c->owner;
    struct shell_end end = {.text = "malformed answer"};
    struct sg_error e;

    if (status == 0)
        shell_end_read(result, len, &end);
    if (status != 0 || end.text[0]) {
        fail(a, -EUSERS,
             "the sandbox has no user '%s', and making it failed: %s: make it in a step before "
             "this one, such as RUN as root",
             a->name, status ? message : end.text);
        return;
    }
    a->made = true;
    if (ask(a, &e) < 0)
        finish(a, e.code, "", &e);
}

static int begin_make(struct account *a, struct sg_error *e)
{
    char command[sizeof(make) + OPS_NAME_MAX + 8];
    struct shell sh = {.command = command, .user = "root", .cwd = "/", .timeout_ms = MAKE_MS};

    /* user_name_valid: no quotes are needed */
    snprintf(command, sizeof(command), "name=%s\n%s", a->name, make);
    a->call = (struct call){.owner = a,
                            .uncounted = true,
                            .on_event = ignore_event,
                            .on_data = on_make_data,
                            .on_end = on_make_end};
    return shell_begin(&a->call, a->sandbox, &sh, e);
}

/* ---- looking --------------------------------------------------------------------------------- */

static void on_user(struct call *c, int status, const char *message, const void *result, size_t len)
{
    struct account *a = c->owner;
    struct wire_reader r = wire_reader_of(result, len);
    const char *home = status == 0 ? wire_get_str(&r, OPS_PATH_MAX - 1) : "";
    struct sg_error e;

    if (status == 0 && wire_done(&r) && home[0] == '/') {
        finish(a, 0, home, NULL);
    } else if (status == EUSERS && a->make && !a->made) {
        if (begin_make(a, &e) < 0)
            finish(a, e.code, "", &e);
    } else {
        fail(a, status > 0 ? -status : -EPROTO, "%s",
             status == CALL_GONE ? "the sandbox is gone"
             : status            ? message
                                 : "the sandbox sent a malformed answer");
    }
}

static int ask(struct account *a, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(256);

    wire_put_str(&request, a->name);
    wire_put_str(&request, "");
    a->call = (struct call){.owner = a, .uncounted = true, .on_end = on_user};
    return call_begin(&a->call, a->sandbox, OP_USER, &request, e);
}

int account_begin(struct account *a, struct sg_error *e)
{
    a->made = false;
    return ask(a, e);
}

void account_cancel(struct account *a)
{
    call_cancel(&a->call);
}
