/* The command lines of `sandglass run` and `acp` and the two text formats it reads. The first byte
 * chooses; no file is opened. Beyond memory errors this checks what callers rely on. */
#include <assert.h>
#include <stdint.h>

#include "cli/local/acp_options.h"
#include "cli/local/policy_file.h"
#include "cli/local/run_options.h"

#define ARGS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const struct sg_error *e)
{
    assert(e->code < 0);
    assert(e->message[0] != '\0');
    assert(memchr(e->message, '\0', sizeof(e->message)));
}

static void check_options(const struct run_options *o)
{
    assert(o->cage.help || o->source != RUN_SOURCE_NONE);
    assert(o->cage.timeout_ms >= 1 && o->cage.timeout_ms <= 24ull * 3600 * 1000);
    assert(o->cage.limits.pids <= 32768);
    assert(!o->cage.limits.memory_bytes || o->cage.limits.memory_bytes >= 16u << 20);
    assert(o->output_limit <= 1u << 30);
    assert(!o->cage.cwd || o->cage.cwd[0] == '/');
    for (size_t i = 0; i < o->cage.n_mounts; i++)
        assert(o->cage.mounts[i].source[0] && o->cage.mounts[i].target[0] == '/');
    for (size_t i = 0; i < o->cage.env.n; i++)
        assert(strchr(o->cage.env.v[i], '='));
}

/* Arguments are separated by NUL bytes. */
static void fuzz_argv(char *text, size_t len)
{
    char verb[] = "run", *argv[ARGS_MAX + 2] = {verb};
    struct run_options o;
    struct sg_error e;
    int argc = 1;

    for (size_t i = 0; i < len && argc <= ARGS_MAX; i += strlen(text + i) + 1)
        argv[argc++] = text + i;
    if (run_options_parse(argc, argv, &o, &e) < 0) {
        check_error(&e);
        return;
    }
    check_options(&o);
    run_options_done(&o);
}

/* The same words, for the other verb. */
static void fuzz_acp(char *text, size_t len)
{
    char verb[] = "acp", *argv[ARGS_MAX + 2] = {verb};
    static struct acp_options o;
    struct sg_error e;
    int argc = 1;

    for (size_t i = 0; i < len && argc <= ARGS_MAX; i += strlen(text + i) + 1)
        argv[argc++] = text + i;
    if (acp_options_parse(argc, argv, &o, &e) < 0) {
        check_error(&e);
        return;
    }
    assert(o.cage.help || o.command[0]);
    for (size_t i = 0; i < o.n_secrets; i++)
        assert(o.secrets[i].name[0] && o.secrets[i].hosts[0]);
    acp_options_done(&o);
}

static void fuzz_env(char *text)
{
    struct env_list env = {0};
    struct sg_error e;

    if (env_list_parse(&env, "fuzz.env", text, &e) < 0)
        check_error(&e);
    for (size_t i = 0; i < env.n; i++)
        assert(strchr(env.v[i], '='));
    env_list_done(&env);
}

static void fuzz_policy(char *text)
{
    struct policy_file p = {0};
    struct sg_error e;

    if (policy_file_parse(&p, "fuzz.policy", text, &e) < 0)
        check_error(&e);
    for (size_t i = 0; i < p.n_roots; i++)
        assert(p.policy.mount_roots[i][0] == '/');
    policy_file_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    assert(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] == 'e')
        fuzz_env(text);
    else if (data[0] == 'p')
        fuzz_policy(text);
    else if (data[0] == 'c')
        fuzz_acp(text, size - 1);
    else
        fuzz_argv(text, size - 1);
    free(text);
    return 0;
}
