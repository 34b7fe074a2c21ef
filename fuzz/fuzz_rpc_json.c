/* Messages in JSON: the first byte says which. What is taken is the same after it was written in
 * either form and read again. */
#include "rpc_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct sg_error e = {0};
    json_t *value = NULL;

    if (len == 0)
        return 0;
    const struct rpc_message *m = tables[data[0] % ARRAY_SIZE(tables)];
    if (rpc_decode(m, RPC_JSON, data + 1, len - 1, &value, &e) < 0) {
        assert(e.kind == SG_ERR_INVALID && e.message[0]);
        return 0;
    }
    same(m, RPC_PROTO, value);
    same(m, RPC_JSON, value);
    json_decref(value);
    return 0;
}
