/* The messages that clients send and get, for the fuzz targets of both of their forms. */
#pragma once

#include <assert.h>

#include "front/envd/messages.h"

static const struct rpc_message *const tables[] = {
    &start_request,
    &stream_response,
    &connect_request,
    &list_response,
    &path_request,
    &send_input_request,
    &send_signal_request,
    &update_request,
    &watch_request,
    &stream_input_request,
    &list_dir_request,
    &move_request,
    &watcher_id_message,
    /* from here on with times, of which protobuf has more than text */
    &entry_response,
    &list_dir_response,
    &watch_response,
    &watcher_events,
};
#define TABLES_TIMELESS 13

/* The message again, through a form of it. */
static inline json_t *again(const struct rpc_message *m, enum rpc_codec codec, json_t *value)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    json_t *ret = NULL;

    strbuf_init(&out, 64u << 20);
    rpc_encode(m, codec, value, &out);
    assert(!out.truncated);
    if (rpc_decode(m, codec, out.buf, out.len, &ret, NULL) < 0)
        return NULL;
    return ret;
}

static inline void same(const struct rpc_message *m, enum rpc_codec codec, json_t *value)
{
    json_t *copy = again(m, codec, value);

    assert(copy && json_equal(copy, value));
    json_decref(copy);
}
