#include "cli/local/cage_inputs.h"

#include "cli/local/server_settings.h"
#include "warden/server.h"

#define ENV_HINT "split it, or pass the values in a file with --mount"

/* The operator's rules for all traffic (where names are looked up, what nobody may reach) hold for
 * these sandboxes too. They are in the server's settings, so those are read here. */
static int load_guard(const struct cage_options *o, struct cage_inputs *in, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(SETTINGS_TEXT_MAX);
    AUTO(serve_texts_done) struct serve_texts texts = {0};
    struct settings given, used;
    int r;

    if (o->network.mode == SG_NETWORK_BLOCK)
        return 0;
    r = server_settings(&given, e);
    if (r < 0)
        return r;
    given.sanitise_patterns[0] = given.tls_cert[0] = '\0'; /* for servers only */
    r = serve_texts_read(&given, &texts, e);
    if (r < 0)
        return r;
    settings_init(&used);
    used.log = SETTINGS_LOG_TEXT; /* people read it, on the program's standard error */
    used.log_level = LEVEL_ERROR;
    for (enum setting k = 0; k < SETTING_MAX_; k++)
        if (strncmp(setting_info(k)->key, "egress_", strlen("egress_")) == 0)
            settings_copy(&used, &given, k);
    settings_print(&used, &text);
    in->guard_settings = strbuf_detach(&text, NULL);
    in->guard_roots = steal_ptr(&texts.roots.text);
    in->guard_program = given.guard_program[0] ? xstrdup(given.guard_program) : NULL;
    return 0;
}

int cage_inputs_load(const struct cage_options *o, struct cage_inputs *ret, struct sg_error *e)
{
    /* Filled in place and not copied afterwards: the policy points into itself. */
    *ret = (struct cage_inputs){0};
    int r = policy_file_load(&ret->policy, o->policy, e);

    if (r == 0)
        r = env_load(&o->env_files, &o->env, ENV_HINT, &ret->env, e);
    return r < 0 ? r : load_guard(o, ret, e);
}

void cage_inputs_done(struct cage_inputs *in)
{
    free(in->guard_settings);
    free(in->guard_program);
    free(in->guard_roots);
    env_list_done(&in->env);
    policy_file_done(&in->policy);
    *in = (struct cage_inputs){0};
}

void cage_fill_options(const struct cage_options *o, const struct cage_inputs *in,
                       struct sg_options *ret)
{
    ret->limits = o->limits;
    ret->network = o->network.mode;
    ret->network_allow = o->network.allow;
    ret->network_deny = o->network.deny;
    ret->guard_program = in->guard_program;
    ret->guard_settings = in->guard_settings;
    ret->guard_roots = in->guard_roots;
    ret->mounts = o->mounts;
    ret->n_mounts = o->n_mounts;
    ret->mount_owner = o->user && strcmp(o->user, "root") == 0 ? "root" : NULL;
    ret->policy = &in->policy.policy;
    ret->approved = o->approve;
    ret->hostname = o->hostname;
}
