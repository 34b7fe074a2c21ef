/* Output that was declared to be a table. Whatever it is, what comes of it is JSON: an array of
 * objects that have the same keys. */
#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "front/tools/parsed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct sg_error e = {0};

    strbuf_init(&out, 1u << 20);
    if (csv_to_json((const char *)data, len, &out, &e) < 0) {
        assert(e.message[0] && !strchr(e.message, '\n'));
        return 0;
    }
    json_t *v = json_loadb(out.buf, out.len, JSON_ALLOW_NUL, NULL);
    assert(json_is_array(v));
    for (size_t i = 0; i < json_array_size(v); i++)
        assert(json_object_size(json_array_get(v, i)) == json_object_size(json_array_get(v, 0)));
    json_decref(v);
    return 0;
}
