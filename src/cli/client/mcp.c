/* sandglass mcp: offers the server's tools to a program that speaks MCP with its children. */
#include "lib/base/ids.h"
#include "lib/command/exit_status.h"
#include "cli/client/mcp_bridge.h"

#define NAME_MAX_ 256 /* bytes, the server's limit */

struct mcp_options {
    struct client_common common;
    const char *conversation, *path;
};

static int take_name(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    size_t len = strlen(value);

    if (len == 0 || len > NAME_MAX_)
        return err_invalid(e, "--%s: give 1 to %d bytes", o->name, NAME_MAX_);
    return cli_text(to, o, value, e);
}

static const struct cli_option options[] = {
    {"conversation", 'c', "ID",
     "the conversation (default: a new one, which ends with the program)",
     CLI_AT(take_name, mcp_options, conversation)},
    {"path", 'p', "ID", "the path of the conversation (default: main)",
     CLI_AT(take_name, mcp_options, path)},
    CLIENT_OPTIONS,
};

static int mcp_fn(struct client *c, void *self, struct sg_error *e UNUSED)
{
    const struct mcp_options *o = self;
    char own[] = "mcp-xxxxxxxxxxxxxxxxxxxx";
    struct mcp_bridge b = {.client = c,
                           .conversation = o->conversation ? o->conversation : own,
                           .path = o->path,
                           .own_conversation = !o->conversation};

    id_random(own + strlen("mcp-"));
    return mcp_bridge_run(&b);
}

/* Runs the bridge although there is no server: the program that started us shows its user what an
 * MCP server answers, but seldom what it prints. */
static int mcp_unready(const struct sg_error *e)
{
    struct mcp_bridge b = {.trouble = e->message};
    int status = mcp_bridge_run(&b);

    return status ? status : CLI_EXIT_USAGE;
}

const struct client_verb mcp_verb = {
    .name = "mcp",
    .usage = "[OPTION]...",
    .about =
        "Offers the tools of a server to a program that speaks the Model Context Protocol to its\n"
        "children, on standard input and output.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), NULL, 0},
    .options_size = sizeof(struct mcp_options),
    .fn = mcp_fn,
    .unready = mcp_unready,
};
