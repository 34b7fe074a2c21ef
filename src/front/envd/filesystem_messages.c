#include "front/envd/messages.h"

static const struct rpc_value file_types[] = {
    {"FILE_TYPE_UNSPECIFIED", 0},
    {"FILE_TYPE_FILE", FILE_TYPE_FILE},
    {"FILE_TYPE_DIRECTORY", FILE_TYPE_DIRECTORY},
    {"FILE_TYPE_SYMLINK", 3},
};
static const struct rpc_enum file_type_values = {file_types, ARRAY_SIZE(file_types)};

static const struct rpc_field entry_fields[] = {
    {.name = "name", .number = 1, .type = RPC_STRING},
    {.name = "type", .number = 2, .type = RPC_ENUM, .values = &file_type_values},
    {.name = "path", .number = 3, .type = RPC_STRING},
    {.name = "size", .number = 4, .type = RPC_INT64},
    {.name = "mode", .number = 5, .type = RPC_UINT32},
    {.name = "permissions", .number = 6, .type = RPC_STRING},
    {.name = "owner", .number = 7, .type = RPC_STRING},
    {.name = "group", .number = 8, .type = RPC_STRING},
    {.name = "modifiedTime", .number = 9, .type = RPC_MESSAGE, .message = &rpc_timestamp},
    {.name = "symlinkTarget", .number = 10, .type = RPC_STRING, .label = RPC_OPTIONAL},
    {.name = "metadata", .number = 11, .type = RPC_MAP},
};
static const struct rpc_message entry_info = RPC_TABLE("EntryInfo", entry_fields);

/* The request of Stat, MakeDir and Remove. */
static const struct rpc_field path_fields[] = {
    {.name = "path", .number = 1, .type = RPC_STRING},
};
const struct rpc_message path_request = RPC_TABLE("StatRequest", path_fields);

/* The answer of Stat, MakeDir and Move. */
static const struct rpc_field entry_response_fields[] = {
    {.name = "entry", .number = 1, .type = RPC_MESSAGE, .message = &entry_info},
};
const struct rpc_message entry_response = RPC_TABLE("StatResponse", entry_response_fields);

static const struct rpc_field list_dir_fields[] = {
    {.name = "path", .number = 1, .type = RPC_STRING},
    {.name = "depth", .number = 2, .type = RPC_UINT32},
};
const struct rpc_message list_dir_request = RPC_TABLE("ListDirRequest", list_dir_fields);

static const struct rpc_field list_dir_response_fields[] = {
    {.name = "entries",
     .number = 1,
     .type = RPC_MESSAGE,
     .label = RPC_REPEATED,
     .message = &entry_info},
};
const struct rpc_message list_dir_response = RPC_TABLE("ListDirResponse", list_dir_response_fields);

static const struct rpc_field move_fields[] = {
    {.name = "source", .number = 1, .type = RPC_STRING},
    {.name = "destination", .number = 2, .type = RPC_STRING},
};
const struct rpc_message move_request = RPC_TABLE("MoveRequest", move_fields);

/* ---- watches --------------------------------------------------------------------------------- */

/* The request of WatchDir and CreateWatcher. */
static const struct rpc_field watch_fields[] = {
    {.name = "path", .number = 1, .type = RPC_STRING},
    {.name = "recursive", .number = 2, .type = RPC_BOOL},
    {.name = "includeEntry", .number = 3, .type = RPC_BOOL},
    {.name = "allowNetworkMounts", .number = 4, .type = RPC_BOOL},
};
const struct rpc_message watch_request = RPC_TABLE("WatchDirRequest", watch_fields);

static const struct rpc_value event_types[] = {
    {"EVENT_TYPE_UNSPECIFIED", 0},
    {"EVENT_TYPE_CREATE", EVENT_TYPE_CREATE},
    {"EVENT_TYPE_WRITE", EVENT_TYPE_WRITE},
    {"EVENT_TYPE_REMOVE", EVENT_TYPE_REMOVE},
    {"EVENT_TYPE_RENAME", EVENT_TYPE_RENAME},
    {"EVENT_TYPE_CHMOD", EVENT_TYPE_CHMOD},
};
static const struct rpc_enum event_type_values = {event_types, ARRAY_SIZE(event_types)};

static const struct rpc_field event_fields[] = {
    {.name = "name", .number = 1, .type = RPC_STRING},
    {.name = "type", .number = 2, .type = RPC_ENUM, .values = &event_type_values},
    {.name = "entry", .number = 3, .type = RPC_MESSAGE, .message = &entry_info},
};
static const struct rpc_message filesystem_event = RPC_TABLE("FilesystemEvent", event_fields);

static const struct rpc_field watch_response_fields[] = {
    {.name = "start", .number = 1, .type = RPC_MESSAGE, .oneof = 1, .message = &empty_message},
    {.name = "filesystem",
     .number = 2,
     .type = RPC_MESSAGE,
     .oneof = 1,
     .message = &filesystem_event},
    {.name = "keepalive", .number = 3, .type = RPC_MESSAGE, .oneof = 1, .message = &empty_message},
};
const struct rpc_message watch_response = RPC_TABLE("WatchDirResponse", watch_response_fields);

/* The answer of CreateWatcher; the request of GetWatcherEvents and RemoveWatcher. */
static const struct rpc_field watcher_id_fields[] = {
    {.name = "watcherId", .number = 1, .type = RPC_STRING},
};
const struct rpc_message watcher_id_message = RPC_TABLE("CreateWatcherResponse", watcher_id_fields);

static const struct rpc_field watcher_events_fields[] = {
    {.name = "events",
     .number = 1,
     .type = RPC_MESSAGE,
     .label = RPC_REPEATED,
     .message = &filesystem_event},
};
const struct rpc_message watcher_events =
    RPC_TABLE("GetWatcherEventsResponse", watcher_events_fields);
