/* What the agent reads out of requests: arguments, variables, metadata, contexts. The first byte
 * chooses; the rest is the payload. Beyond memory errors this checks what the code behind relies
 * on. */
#include <assert.h>

#include "inside/agent/environ.h"
#include "inside/agent/kernels.h"
#include "inside/agent/meta.h"

static void check_error(int r, const struct sg_error *e)
{
    assert(r < 0 && e->code == r && e->message[0] != '\0');
}

static void fuzz_args(struct wire_reader *r, bool variables)
{
    struct strings s = {0};
    struct sg_error e = {0};
    int res = variables ? environ_read_variables(r, &s, &e) : environ_read_args(r, &s, &e);

    if (res < 0) {
        check_error(res, &e);
    } else {
        assert(s.n <= OPS_ARGS_MAX && s.v[s.n] == NULL);
        for (size_t i = 0; i < s.n; i++)
            assert(strlen(s.v[i]) < OPS_ARG_MAX && (!variables || strchr(s.v[i], '=')));
        if (variables)
            assert(environ_add_defaults(&s, agent_user_find("user"), "/", true, 2, &e) == 0);
    }
    strings_done(&s);
}

static void fuzz_meta(struct wire_reader *r)
{
    struct meta m;
    struct sg_error e = {0};
    int res = meta_read(r, &m, &e);
    size_t total = 0;

    if (res < 0) {
        check_error(res, &e);
        return;
    }
    assert(m.n <= FILE_META_KEYS_MAX);
    for (uint32_t i = 0; i < m.n; i++) {
        size_t len = strlen(m.v[i].key);

        assert(len > 0 && len <= FILE_META_KEY_MAX);
        total += len + strlen(m.v[i].value);
    }
    assert(total <= FILE_META_MAX);
}

static void fuzz_adopt(struct wire_reader *r)
{
    struct adopt_list l;
    struct sg_error e = {0};
    int res = adopt_read(r, &l, &e);

    if (res < 0) {
        check_error(res, &e);
        return;
    }
    assert(l.n <= KERNELS_MAX);
    for (size_t i = 0; i < l.n; i++) {
        struct strings s = {0};
        struct wire_reader env;

        assert(strlen(l.v[i].id) == KERNEL_ID_LEN && l.v[i].cwd[0] == '/');
        assert(!l.v[i].note || strlen(l.v[i].note) <= KERNEL_NOTE_MAX);
        wire_reader_init(&env, l.v[i].env.buf, l.v[i].env.len);
        assert(environ_read_variables(&env, &s, &e) == 0 && wire_done(&env));
        strings_done(&s);
    }
    adopt_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct wire_reader r;

    if (len == 0)
        return 0;
    wire_reader_init(&r, data + 1, len - 1);
    if (data[0] % 4 == 3)
        fuzz_adopt(&r);
    else if (data[0] % 4 == 2)
        fuzz_meta(&r);
    else
        fuzz_args(&r, data[0] % 4 == 1);
    return 0;
}
