#include "front/envd/messages.h"

const struct rpc_message empty_message = {.name = "Empty"};

/* ---- parts ----------------------------------------------------------------------------------- */

static const struct rpc_field size_fields[] = {
    {.name = "cols", .number = 1, .type = RPC_UINT32},
    {.name = "rows", .number = 2, .type = RPC_UINT32},
};
static const struct rpc_message pty_size = RPC_TABLE("PTY.Size", size_fields);

static const struct rpc_field pty_fields[] = {
    {.name = "size", .number = 1, .type = RPC_MESSAGE, .message = &pty_size},
};
static const struct rpc_message pty = RPC_TABLE("PTY", pty_fields);

static const struct rpc_field config_fields[] = {
    {.name = "cmd", .number = 1, .type = RPC_STRING},
    {.name = "args", .number = 2, .type = RPC_STRING, .label = RPC_REPEATED},
    {.name = "envs", .number = 3, .type = RPC_MAP},
    {.name = "cwd", .number = 4, .type = RPC_STRING, .label = RPC_OPTIONAL},
};
const struct rpc_message process_config = RPC_TABLE("ProcessConfig", config_fields);

static const struct rpc_field selector_fields[] = {
    {.name = "pid", .number = 1, .type = RPC_UINT32, .oneof = 1},
    {.name = "tag", .number = 2, .type = RPC_STRING, .oneof = 1},
};
static const struct rpc_message selector = RPC_TABLE("ProcessSelector", selector_fields);

static const struct rpc_field input_fields[] = {
    {.name = "stdin", .number = 1, .type = RPC_BYTES, .oneof = 1},
    {.name = "pty", .number = 2, .type = RPC_BYTES, .oneof = 1},
};
static const struct rpc_message process_input = RPC_TABLE("ProcessInput", input_fields);

/* ---- events ---------------------------------------------------------------------------------- */

static const struct rpc_field started_fields[] = {
    {.name = "pid", .number = 1, .type = RPC_UINT32},
};
static const struct rpc_message started_event = RPC_TABLE("StartEvent", started_fields);

static const struct rpc_field output_fields[] = {
    {.name = "stdout", .number = 1, .type = RPC_BYTES, .oneof = 1},
    {.name = "stderr", .number = 2, .type = RPC_BYTES, .oneof = 1},
    {.name = "pty", .number = 3, .type = RPC_BYTES, .oneof = 1},
};
static const struct rpc_message output_event = RPC_TABLE("DataEvent", output_fields);

static const struct rpc_field end_fields[] = {
    {.name = "exitCode", .number = 1, .type = RPC_SINT32},
    {.name = "exited", .number = 2, .type = RPC_BOOL},
    {.name = "status", .number = 3, .type = RPC_STRING},
    {.name = "error", .number = 4, .type = RPC_STRING, .label = RPC_OPTIONAL},
};
static const struct rpc_message end_event = RPC_TABLE("EndEvent", end_fields);

static const struct rpc_field event_fields[] = {
    {.name = "start", .number = 1, .type = RPC_MESSAGE, .oneof = 1, .message = &started_event},
    {.name = "data", .number = 2, .type = RPC_MESSAGE, .oneof = 1, .message = &output_event},
    {.name = "end", .number = 3, .type = RPC_MESSAGE, .oneof = 1, .message = &end_event},
    {.name = "keepalive", .number = 4, .type = RPC_MESSAGE, .oneof = 1, .message = &empty_message},
};
static const struct rpc_message process_event = RPC_TABLE("ProcessEvent", event_fields);

/* The answer of Start and of Connect. */
static const struct rpc_field stream_fields[] = {
    {.name = "event", .number = 1, .type = RPC_MESSAGE, .message = &process_event},
};
const struct rpc_message stream_response = RPC_TABLE("StartResponse", stream_fields);

/* ---- requests, and the answers that are not empty -------------------------------------------- */

static const struct rpc_field start_fields[] = {
    {.name = "process", .number = 1, .type = RPC_MESSAGE, .message = &process_config},
    {.name = "pty", .number = 2, .type = RPC_MESSAGE, .message = &pty},
    {.name = "tag", .number = 3, .type = RPC_STRING, .label = RPC_OPTIONAL},
    {.name = "stdin", .number = 4, .type = RPC_BOOL, .label = RPC_OPTIONAL},
};
const struct rpc_message start_request = RPC_TABLE("StartRequest", start_fields);

static const struct rpc_field connect_fields[] = {
    {.name = "process", .number = 1, .type = RPC_MESSAGE, .message = &selector},
};
const struct rpc_message connect_request = RPC_TABLE("ConnectRequest", connect_fields);
const struct rpc_message close_stdin_request = RPC_TABLE("CloseStdinRequest", connect_fields);

static const struct rpc_field info_fields[] = {
    {.name = "config", .number = 1, .type = RPC_MESSAGE, .message = &process_config},
    {.name = "pid", .number = 2, .type = RPC_UINT32},
    {.name = "tag", .number = 3, .type = RPC_STRING, .label = RPC_OPTIONAL},
};
static const struct rpc_message process_info = RPC_TABLE("ProcessInfo", info_fields);

static const struct rpc_field list_fields[] = {
    {.name = "processes",
     .number = 1,
     .type = RPC_MESSAGE,
     .label = RPC_REPEATED,
     .message = &process_info},
};
const struct rpc_message list_response = RPC_TABLE("ListResponse", list_fields);

static const struct rpc_field send_input_fields[] = {
    {.name = "process", .number = 1, .type = RPC_MESSAGE, .message = &selector},
    {.name = "input", .number = 2, .type = RPC_MESSAGE, .message = &process_input},
};
const struct rpc_message send_input_request = RPC_TABLE("SendInputRequest", send_input_fields);

static const struct rpc_field stream_data_fields[] = {
    {.name = "input", .number = 2, .type = RPC_MESSAGE, .message = &process_input},
};
static const struct rpc_message stream_data =
    RPC_TABLE("StreamInputRequest.DataEvent", stream_data_fields);

static const struct rpc_field stream_input_fields[] = {
    {.name = "start", .number = 1, .type = RPC_MESSAGE, .oneof = 1, .message = &connect_request},
    {.name = "data", .number = 2, .type = RPC_MESSAGE, .oneof = 1, .message = &stream_data},
    {.name = "keepalive", .number = 3, .type = RPC_MESSAGE, .oneof = 1, .message = &empty_message},
};
const struct rpc_message stream_input_request =
    RPC_TABLE("StreamInputRequest", stream_input_fields);

static const struct rpc_value signals[] = {
    {"SIGNAL_UNSPECIFIED", 0},
    {"SIGNAL_SIGKILL", 9},
    {"SIGNAL_SIGTERM", 15},
};
static const struct rpc_enum signal_values = {signals, ARRAY_SIZE(signals)};

static const struct rpc_field send_signal_fields[] = {
    {.name = "process", .number = 1, .type = RPC_MESSAGE, .message = &selector},
    {.name = "signal", .number = 2, .type = RPC_ENUM, .values = &signal_values},
};
const struct rpc_message send_signal_request = RPC_TABLE("SendSignalRequest", send_signal_fields);

static const struct rpc_field update_fields[] = {
    {.name = "process", .number = 1, .type = RPC_MESSAGE, .message = &selector},
    {.name = "pty", .number = 2, .type = RPC_MESSAGE, .message = &pty},
};
const struct rpc_message update_request = RPC_TABLE("UpdateRequest", update_fields);
