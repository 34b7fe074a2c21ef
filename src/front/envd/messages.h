/* The messages of process.Process and filesystem.Filesystem, with their numbers in protobuf. */
#pragma once

#include "lib/rpc/message.h"

/* process_messages.c */
extern const struct rpc_message process_config, start_request, stream_response, connect_request,
    list_response, send_input_request, stream_input_request, send_signal_request,
    close_stdin_request, update_request;

/* filesystem_messages.c */
extern const struct rpc_message path_request, entry_response, list_dir_request, list_dir_response,
    move_request, watch_request, watch_response, watcher_id_message, watcher_events;

/* The message without fields, the answer of many calls. */
extern const struct rpc_message empty_message;

/* FileType and EventType */
#define FILE_TYPE_FILE      1
#define FILE_TYPE_DIRECTORY 2
#define EVENT_TYPE_CREATE   1
#define EVENT_TYPE_WRITE    2
#define EVENT_TYPE_REMOVE   3
#define EVENT_TYPE_RENAME   4
#define EVENT_TYPE_CHMOD    5
