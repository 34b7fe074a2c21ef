#include "cli/client/exec_control.h"

#include <signal.h>

#include "lib/command/terminal.h"
#include "lib/command/ui.h"
#include "cli/client/payload.h"

#define TYPED_EOF "\004" /* ^D: the only way to tell a terminal's program that its input is over */

static void finished(void *arg, CURLcode code, const struct web_reply *reply)
{
    struct exec_control *c = arg;
    struct sg_error e = {0};
    int r = web_result(c->call.easy, code, c->call.url.buf, &e);

    if (r == 0 && reply->status != 200)
        r = sandbox_refusal(c->sandbox, reply, &e);
    /* The program may have ended, or closed its input, while input was on its way to it. So a
     * failure only means that the program takes no more input. */
    if (r < 0 && c->kind == CALL_INPUT) {
        c->input_over = true;
        strbuf_reset(&c->input);
    }
    if (r == -ENOSYS && c->kind == CALL_CLOSE)
        ui_note("this server cannot close the program's standard input");
}

void exec_control_init(struct exec_control *c, struct sandbox *sandbox, struct repl_watch *watch,
                       bool pty)
{
    *c = (struct exec_control){.sandbox = sandbox, .pty = pty};
    repl_call_init(&c->call, watch);
    c->call.finished = finished;
    c->call.arg = c;
    strbuf_init(&c->input, EXEC_INPUT_MAX);
}

void exec_control_done(struct exec_control *c)
{
    repl_call_done(&c->call);
    strbuf_done(&c->input);
}

bool exec_control_wants_input(const struct exec_control *c)
{
    return c->pid && c->input.len == 0 && !c->close && !c->input_over;
}

static void begin(struct exec_control *c, enum exec_call kind, const char *method,
                  struct strbuf *body)
{
    struct curl_slist *headers = sandbox_headers(c->sandbox, "application/json");
    struct strbuf url;

    c->kind = kind;
    sandbox_api_url(c->sandbox, &url, method);
    web_add_header(&headers, "Connect-Protocol-Version", "1");
    repl_call_post(&c->call, &url, body, &headers);
}

void exec_control_go_on(struct exec_control *c)
{
    struct strbuf body;
    uint16_t rows, cols;

    if (!c->pid || c->call.busy)
        return;
    if (c->close && c->pty && c->input.len == 0 && !c->input_over) {
        strbuf_addstr(&c->input, TYPED_EOF);
        c->input_over = true; /* nothing follows ^D */
    }
    if (c->signal) {
        payload_signal(&body, c->pid, c->signal);
        c->signal = 0;
        begin(c, CALL_SIGNAL, "process.Process/SendSignal", &body);
    } else if (c->resize) {
        terminal_size(&rows, &cols);
        payload_resize(&body, c->pid, rows, cols);
        c->resize = false;
        begin(c, CALL_RESIZE, "process.Process/Update", &body);
    } else if (c->input.len > 0) {
        payload_input(&body, c->pid, c->pty, c->input.buf, c->input.len);
        strbuf_reset(&c->input);
        begin(c, CALL_INPUT, "process.Process/SendInput", &body);
    } else if (c->close && !c->input_over) {
        payload_process(&body, c->pid);
        c->input_over = true;
        begin(c, CALL_CLOSE, "process.Process/CloseStdin", &body);
    }
}
