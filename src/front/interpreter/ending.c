#include "front/interpreter/ending.h"

#include <string.h>

#include "front/core/sandbox_end.h"
#include "lib/base/signame.h"
#include "lib/channel/wire.h"

#define GONE ": a new one takes its place, and the variables are gone"

bool ending_read(const void *result, size_t len, struct ending *ret)
{
    struct wire_reader r = wire_reader_of(result, len);

    uint32_t how = wire_get_u32(&r), code = wire_get_u32(&r), timed_out = wire_get_u32(&r);
    uint64_t memory_limit = wire_get_u64(&r);
    if (!wire_done(&r) || how >= KERNEL_END_MAX_)
        return false;
    *ret = (struct ending){
        .how = how, .code = code, .timed_out = timed_out != 0, .memory_limit = memory_limit};
    return true;
}

unsigned ending_code(const struct ending *end)
{
    bool told = end->how == KERNEL_DIED || end->how == KERNEL_DONE;

    return end->status == 0 && told && end->code != KERNEL_CODE_UNKNOWN ? end->code & 0xff : 0;
}

static void say_died(struct strbuf *value, uint32_t code, uint64_t memory_limit)
{
    char text[MEMORY_LIMIT_TEXT];
    const char *signal = code > 128 && code < 192 ? signal_name((int)code - 128) : "?";

    if (memory_limit) {
        strbuf_addf(value, "the kernel was %s" GONE, memory_limit_text(memory_limit, 0, text));
        return;
    }
    strbuf_addstr(value, "the kernel ended");
    if (code != KERNEL_CODE_UNKNOWN)
        strbuf_addf(value, " (exit status %u", code);
    if (strcmp(signal, "?") != 0)
        strbuf_addf(value, ": SIG%s%s", signal,
                    strcmp(signal, "KILL") == 0 ? ", as when memory runs out" : "");
    strbuf_addstr(value, code != KERNEL_CODE_UNKNOWN ? ")" GONE : GONE);
}

static const char *say(const struct ending *end, const char *message, struct strbuf *value)
{
    static const struct {
        const char *name, *value;
    } texts[] = {
        [KERNEL_DONE] = {"", ""},
        [KERNEL_DIED] = {"UnexpectedEndOfExecution", ""},
        [KERNEL_RESTARTED] = {"ContextRestarting",
                              "the context was restarted: its variables are gone"},
        [KERNEL_REMOVED] = {"ContextRemoved", "the context was removed"},
        [KERNEL_STUCK] =
            {"ExecutionInterrupted",
             "the cell did not stop when it was interrupted, and its kernel was killed" GONE},
        [KERNEL_BROKE] = {"KernelProtocolError",
                          "the kernel broke its protocol and was killed" GONE},
    };
    _Static_assert(ARRAY_SIZE(texts) == KERNEL_END_MAX_, "a text for each");

    if (end->status != 0) {
        strbuf_addstr(value, message);
        return "ExecutionFailed";
    }
    strbuf_addstr(value, texts[end->how].value);
    if (end->how == KERNEL_DIED)
        say_died(value, end->code, end->memory_limit);
    return texts[end->how].name;
}

static void put(struct strbuf *s, const char *text)
{
    strbuf_reset(s);
    strbuf_addstr(s, text);
}

bool ending_error(const struct ending *end, const char *message, uint64_t timeout_ms,
                  struct results *r)
{
    AUTO(strbuf_done) struct strbuf value = strbuf_upto(RESULT_ERROR);
    bool timed_out = end->status == 0 && end->timed_out;

    if (end->status == 0 && end->how == KERNEL_DONE && !timed_out)
        return r->failed;
    if (timed_out)
        strbuf_addf(&value, "the cell was interrupted after %g s%s", (double)timeout_ms / 1000,
                    end->how == KERNEL_DONE ? "" : "; ");
    const char *name = say(end, message, &value);
    put(&r->error[ERROR_NAME], timed_out ? "TimeoutError" : name);
    put(&r->error[ERROR_VALUE], value.buf);
    /* The traceback of an interrupted cell shows where it was. For a kernel that is gone it is no
     * help. */
    if (end->status != 0 || end->how != KERNEL_DONE)
        strbuf_reset(&r->error[ERROR_TRACEBACK]);
    return true;
}
