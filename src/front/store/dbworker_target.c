#include "front/store/dbworker_target.h"

#include <string.h>

#define PARAMETERS_MAX 64

/* Used where the operator did not say otherwise. They notice within seconds a peer that vanished.
 * Kerberos is used only if asked for, since it looks for tickets on disk. */
static const struct {
    const char *keyword, *value;
} defaults[] = {
    {"application_name", "sandglass"}, {"connect_timeout", "4"},     {"keepalives", "1"},
    {"keepalives_idle", "5"},          {"keepalives_interval", "2"}, {"keepalives_count", "3"},
    {"tcp_user_timeout", "5000"},      {"gssencmode", "disable"},
};

struct target {
    PQconninfoOption *options;
    const char *keywords[PARAMETERS_MAX + 1], *values[PARAMETERS_MAX + 1];
    size_t n;
};

static const char *option(const struct target *t, const char *keyword)
{
    for (const PQconninfoOption *o = t->options; o->keyword; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o->val;
    return NULL;
}

static void add(struct target *t, const char *keyword, const char *value)
{
    if (t->n == PARAMETERS_MAX)
        return;
    t->keywords[t->n] = keyword;
    t->values[t->n++] = value;
}

int target_new(const char *conninfo, struct target **ret, struct sg_error *e)
{
    char *why = NULL;
    struct target *t = xcalloc(1, sizeof(*t));

    /* libpq's message is dropped: it quotes the text, and the text may have a password. */
    t->options = PQconninfoParse(conninfo, &why);
    PQfreemem(why);
    const char *host = t->options ? option(t, "host") : NULL;
    if (!t->options || (host && strchr(host, '@'))) {
        target_free(t);
        return err_invalid(
            e, "the setting 'store' is not a connection string of PostgreSQL: write "
               "postgresql://USER:PASSWORD@HOST/DATABASE, with special characters of the "
               "password as %%XX");
    }
    for (const PQconninfoOption *o = t->options; o->keyword; o++)
        if (o->val && strcmp(o->keyword, "client_encoding") != 0)
            add(t, o->keyword, o->val);
    for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
        if (!option(t, defaults[i].keyword))
            add(t, defaults[i].keyword, defaults[i].value);
    add(t, "client_encoding", "UTF8");
    *ret = t;
    return 0;
}

void target_free(struct target *t)
{
    PQconninfoFree(t->options);
    free(t);
}

/* Drops notices, which libpq would print to standard error, where the log is. */
static void drop_notice(void *arg UNUSED, const char *message UNUSED)
{
}

PGconn *target_connect(const struct target *t)
{
    PGconn *pg = PQconnectdbParams(t->keywords, t->values, 0);

    if (pg)
        PQsetNoticeProcessor(pg, drop_notice, NULL);
    return pg;
}

static bool has_secret(const struct target *t, const char *line)
{
    static const char *const secrets[] = {"password", "sslpassword"};

    for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
        const char *secret = option(t, secrets[i]);

        if (secret && *secret && strstr(line, secret))
            return true;
    }
    return false;
}

void target_scrub(const struct target *t, const char *message, char *ret, size_t cap)
{
    size_t len = strcspn(message, "\n");

    snprintf(ret, cap, "%.*s", (int)(len < cap ? len : cap - 1), message);
    if (has_secret(t, ret))
        snprintf(ret, cap, "%s",
                 "the reason is not shown, because it contains the password of 'store'");
}
