#include "cli/client/exec_control.h"

#include <signal.h>

#include "lib/command/terminal.h"
#include "lib/command/ui.h"
#include "cli/client/payload.h"

#define TYPED_EOF "\004" /* ^D: the only way to tell a terminal's program that its input is over */

void exec_control_init(struct exec_control *c, struct sandbox *sandbox, CURLM *multi, bool pty)
{
    *c = (struct exec_control){.sandbox = sandbox, .multi = multi, .pty = pty};
    c->easy = curl_easy_init();
    if (!c->easy)
        abort();
    strbuf_init(&c->input, EXEC_INPUT_MAX);
}

static void forget_call(struct exec_control *c)
{
    strbuf_done(&c->url);
    strbuf_done(&c->body);
    web_headers_done(&c->headers);
    web_reply_done(&c->reply);
    c->call = CALL_NONE;
}

void exec_control_done(struct exec_control *c)
{
    if (c->call != CALL_NONE)
        curl_multi_remove_handle(c->multi, c->easy);
    curl_easy_cleanup(c->easy);
    forget_call(c);
    strbuf_done(&c->input);
}

bool exec_control_wants_input(const struct exec_control *c)
{
    return c->pid && c->input.len == 0 && !c->close && !c->input_over;
}

static void begin(struct exec_control *c, enum exec_call call, const char *method)
{
    c->call = call;
    sandbox_api_url(c->sandbox, &c->url, method);
    c->headers = sandbox_headers(c->sandbox, "application/json");
    web_add_header(&c->headers, "Connect-Protocol-Version", "1");
    struct web_request q = {
        .method = "POST", .url = c->url.buf, .headers = c->headers, .body = &c->body};
    web_prepare_call(c->easy, &q, &c->reply);
    curl_multi_add_handle(c->multi, c->easy);
}

void exec_control_go_on(struct exec_control *c)
{
    uint16_t rows, cols;

    if (!c->pid || c->call != CALL_NONE)
        return;
    if (c->close && c->pty && c->input.len == 0 && !c->input_over) {
        strbuf_addstr(&c->input, TYPED_EOF);
        c->input_over = true; /* nothing follows ^D */
    }
    if (c->signal) {
        payload_signal(&c->body, c->pid, c->signal);
        c->signal = 0;
        begin(c, CALL_SIGNAL, "process.Process/SendSignal");
    } else if (c->resize) {
        terminal_size(&rows, &cols);
        payload_resize(&c->body, c->pid, rows, cols);
        c->resize = false;
        begin(c, CALL_RESIZE, "process.Process/Update");
    } else if (c->input.len > 0) {
        payload_input(&c->body, c->pid, c->pty, c->input.buf, c->input.len);
        strbuf_reset(&c->input);
        begin(c, CALL_INPUT, "process.Process/SendInput");
    } else if (c->close && !c->input_over) {
        payload_process(&c->body, c->pid);
        c->input_over = true;
        begin(c, CALL_CLOSE, "process.Process/CloseStdin");
    }
}

void exec_control_finished(struct exec_control *c, CURLcode code)
{
    struct sg_error e = {0};
    int r;

    curl_multi_remove_handle(c->multi, c->easy);
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &c->reply.status);
    r = web_result(c->easy, code, c->url.buf, &e);
    if (r == 0 && c->reply.status != 200)
        r = sandbox_refusal(c->sandbox, &c->reply, &e);
    /* The program may have ended, or closed its input, while input was on its way to it. So a
     * failure only means that the program takes no more input. */
    if (r < 0 && c->call == CALL_INPUT) {
        c->input_over = true;
        strbuf_reset(&c->input);
    }
    if (r == -ENOSYS && c->call == CALL_CLOSE)
        ui_note("this server cannot close the program's standard input");
    forget_call(c);
}
