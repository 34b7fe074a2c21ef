/* One-shot execution: a sandbox for one program, gone before the call returns. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/text/parse.h"
#include "engine/sandbox.h"

#define CODE_MAX (64u << 20)

/* The code or command of a one-shot run. */
struct job {
    const char *code; /* NULL: a command */
    size_t len;
    enum sg_language language;
    const struct sg_run *run;
};

static int run_job(struct sg_sandbox *s, const struct job *j, struct sg_result *ret,
                   struct sg_error *e)
{
    if (!j->code)
        return sg_sandbox_exec(s, &j->run->exec, ret, e);
    return sg_sandbox_run_code(s, j->code, j->len, j->language, &j->run->exec, ret, e);
}

static int execute(const struct job *j, struct sg_result *ret, struct sg_error *e)
{
    struct sg_engine *engine;
    struct sg_sandbox *s;
    struct sg_result result = {0};
    int r = policy_check(&j->run->options, e), closed;

    if (r == 0)
        r = sg_engine_open(1, &engine, e);
    if (r < 0)
        return r;
    r = sandbox_begin(engine, &j->run->options, &s, e);
    if (r == 0) {
        s->one_shot = true;
        r = run_job(s, j, &result, e);
        sandbox_leave(s);
    }
    /* The sandbox and the helper processes end together: one wait instead of three. */
    closed = engine_close(engine, r < 0 ? NULL : e);
    if (r == 0 && closed < 0) {
        sg_result_free(&result);
        r = closed;
    }
    if (r == 0)
        *ret = result;
    return r;
}

static int check_code(const char *code, size_t len, struct sg_error *e)
{
    char text[32];

    if (len > CODE_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "the code is %s: the limit is 64 MiB",
                       format_size(len, text, sizeof(text)));
    if (memchr(code, '\0', len))
        return err_invalid(e, "the code holds a NUL byte: it must be plain text");
    return 0;
}

int sg_execute_code(const char *code, size_t len, enum sg_language language,
                    const struct sg_run *run, struct sg_result *ret, struct sg_error *e)
{
    static const struct sg_run defaults = SG_RUN_INIT;
    struct job j = {.code = code, .len = len, .language = language, .run = run ? run : &defaults};
    int r = check_code(code, len, e);

    return r < 0 ? r : execute(&j, ret, e);
}

static int read_code(const char *path, char **ret, size_t *ret_len, struct sg_error *e)
{
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    char text[32];
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "cannot read '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_invalid(e, "'%s' is not a regular file", path);
    r = st.st_size > (off_t)CODE_MAX ? -EFBIG : fd_read_all(fd, CODE_MAX, ret, ret_len);
    if (r == -EFBIG)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "'%s' is %s: the limit for code is 64 MiB", path,
                       format_size((uint64_t)st.st_size, text, sizeof(text)));
    if (r < 0)
        return err_code(e, r, "cannot read '%s'", path);
    return 0;
}

int sg_execute_file(const char *path, enum sg_language language, const struct sg_run *run,
                    struct sg_result *ret, struct sg_error *e)
{
    AUTO(free_p) char *code = NULL;
    size_t len;
    int r = 0;

    if (language == SG_LANGUAGE_MAX_)
        r = sg_language_of_path(path, &language, e);
    if (r == 0)
        r = read_code(path, &code, &len, e);
    if (r < 0)
        return r;
    struct sg_run named = run ? *run : (struct sg_run)SG_RUN_INIT;
    named.exec.code_name = path;
    return sg_execute_code(code, len, language, &named, ret, e);
}

int sg_execute_command(const struct sg_run *run, struct sg_result *ret, struct sg_error *e)
{
    struct job j = {.run = run};

    return execute(&j, ret, e);
}
