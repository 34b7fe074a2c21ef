/* Messages in protobuf: the first byte says which. What is taken is the same after it was written
 * in either form and read again. */
#include "rpc_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct sg_error e = {0};
    json_t *value = NULL;

    if (len == 0)
        return 0;
    size_t which = data[0] % ARRAY_SIZE(tables);
    const struct rpc_message *m = tables[which];
    if (rpc_decode(m, RPC_PROTO, data + 1, len - 1, &value, &e) < 0) {
        assert(e.kind == SG_ERR_INVALID && e.message[0]);
        return 0;
    }
    same(m, RPC_PROTO, value);
    if (which < TABLES_TIMELESS)
        same(m, RPC_JSON, value);
    else
        json_decref(again(m, RPC_JSON, value));
    json_decref(value);
    return 0;
}
