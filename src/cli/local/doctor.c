/* sandglass doctor: shows what this kernel and host offer, what is missing and how to fix it. */
#include "cli/local/doctor.h"

#include <stdio.h>

#include "lib/base/err.h"
#include "lib/text/json.h"
#include "cli/local/cli.h"
#include "lib/command/options.h"
#include "lib/command/ui.h"

static const struct check_group *const groups[] = {
    &doctor_host,    &doctor_namespaces, &doctor_filesystems, &doctor_confinement,
    &doctor_cgroups, &doctor_runtimes,   &doctor_server,
};

static const struct {
    const char *name, *colour;
} states[] = {
    [CHECK_OK] = {"ok", "\033[32m"},
    [CHECK_WARN] = {"warn", "\033[33m"},
    [CHECK_MISSING] = {"missing", "\033[1;31m"},
};
_Static_assert(ARRAY_SIZE(states) == CHECK_MAX_, "every state has a name");

/* ---- for people ------------------------------------------------------------------------------ */

static void print_check(const struct check *c, const struct check_result *r, bool colour)
{
    printf("  %s%-8s%s %-24s %s\n", colour ? states[r->state].colour : "", states[r->state].name,
           colour ? "\033[0m" : "", c->name, r->value);
    if (r->fix[0])
        printf("           %-24s -> %s\n", "", r->fix);
}

static void print_summary(const unsigned count[CHECK_MAX_])
{
    if (count[CHECK_MISSING])
        printf("\nSandboxes cannot run here: %u missing, %u to improve, %u fine.\n",
               count[CHECK_MISSING], count[CHECK_WARN], count[CHECK_OK]);
    else
        printf("\nSandboxes can run here: %u fine, %u to improve.\n", count[CHECK_OK],
               count[CHECK_WARN]);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void json_check(struct json *j, const char *group, const struct check *c,
                       const struct check_result *r)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "group"), group);
    jw_string(jw_key(j, "name"), c->name);
    jw_string(jw_key(j, "state"), states[r->state].name);
    jw_string(jw_key(j, "value"), r->value);
    jw_string(jw_key(j, "fix"), r->fix[0] ? r->fix : NULL);
    jw_object_end(j);
}

static void json_summary(struct json *j, const unsigned count[CHECK_MAX_])
{
    jw_object_begin(jw_key(j, "summary"));
    for (int i = 0; i < CHECK_MAX_; i++)
        jw_u64(jw_key(j, states[i].name), count[i]);
    jw_bool(jw_key(j, "can_run"), count[CHECK_MISSING] == 0);
    jw_object_end(j);
}

/* ---- the round ------------------------------------------------------------------------------- */

static void examine(const struct check_group *g, struct json *j, bool colour,
                    unsigned count[CHECK_MAX_])
{
    if (!j)
        printf("%s%s%s\n", colour ? "\033[1m" : "", g->title, colour ? "\033[0m" : "");
    for (size_t i = 0; i < g->n; i++) {
        struct check_result r = {.about = g->checks[i].about};

        g->checks[i].probe(&r);
        count[r.state]++;
        if (j)
            json_check(j, g->title, &g->checks[i], &r);
        else
            print_check(&g->checks[i], &r, colour);
    }
}

static int examine_all(bool as_json)
{
    unsigned count[CHECK_MAX_] = {0};
    bool colour = !as_json && ui_has_colour(STDOUT_FILENO);
    struct strbuf out;
    struct json j = {.out = &out};

    strbuf_init(&out, 256 * 1024);
    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "checks"));
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
        examine(groups[i], as_json ? &j : NULL, colour, count);
    jw_array_end(&j);
    json_summary(&j, count);
    jw_object_end(&j);
    if (as_json)
        puts(out.buf);
    else
        print_summary(count);
    strbuf_done(&out);
    return count[CHECK_MISSING] != 0;
}

/* ---- the verb -------------------------------------------------------------------------------- */

struct doctor_options {
    bool json, help, sweep, syscalls;
};

static const struct cli_option options[] = {
    {"json", 0, NULL, "print one JSON object", CLI_FLAG(doctor_options, json)},
    {"sweep", 0, NULL, "remove the remains of crashed runs, then examine",
     CLI_FLAG(doctor_options, sweep)},
    {"syscalls", 0, NULL, "print the system-call policy of sandboxes instead",
     CLI_FLAG(doctor_options, syscalls)},
    {"help", 'h', NULL, "show this text", CLI_FLAG(doctor_options, help)},
};
const struct cli_syntax doctor_syntax = {options, ARRAY_SIZE(options), NULL, 0};

static int print_syscalls(void)
{
    AUTO(free_p) char *text = sg_syscall_policy();

    fputs(text, stdout);
    return 0;
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_options o = {0};
    struct sg_error e;
    char **rest;

    if (cli_parse(&doctor_syntax, argc, argv, &o, &rest, &e) < 0)
        return ui_usage("doctor", e.message);
    if (o.syscalls && !o.help)
        return print_syscalls();
    if (o.sweep && !o.help && sg_host_sweep(&e) < 0)
        return ui_error("%s", e.message), 1;
    if (!o.help)
        return examine_all(o.json);
    printf("Usage: sandglass doctor [OPTION]...\n\n"
           "Shows what this kernel and host offer to sandboxes, what is missing and how to fix "
           "it.\n\n");
    cli_print_options(stdout, &doctor_syntax);
    printf("\nExit status: 0 if sandboxes can run here, 1 if something they need is missing.\n");
    return 0;
}
