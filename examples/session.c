/* A sandbox that lives on: one program writes a file, a second one reads it and adds to it, and the
 * caller takes the result out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sandglass.h>

#define ANSWER_MAX (64u * 1024)

static int step(struct sg_sandbox *sandbox, const char *const *argv, struct sg_error *error)
{
    struct sg_exec exec = SG_EXEC_INIT;
    struct sg_result result;

    exec.argv = argv;
    int r = sg_sandbox_exec(sandbox, &exec, &result, error);
    if (r < 0)
        return r;
    fwrite(result.stdout_data, 1, result.stdout_len, stdout);
    fwrite(result.stderr_data, 1, result.stderr_len, stderr);
    sg_result_free(&result);
    return 0;
}

static int work(struct sg_sandbox *sandbox, struct sg_error *error)
{
    static const char *const first[] = {"sh", "-c", "seq 3 > numbers; echo written", NULL};
    static const char *const second[] = {
        "python3", "-c",
        "n = [int(line) for line in open('numbers')]\n"
        "open('answer', 'w').write(f'{n} add up to {sum(n)}\\n')\n",
        NULL};
    char *answer;
    size_t len;
    int r = step(sandbox, first, error);

    if (r == 0)
        r = step(sandbox, second, error);
    if (r == 0)
        r = sg_sandbox_read_file(sandbox, "user", "answer", ANSWER_MAX, &answer, &len, error);
    if (r < 0)
        return r;
    fwrite(answer, 1, len, stdout);
    free(answer);
    return 0;
}

int main(void)
{
    struct sg_options options = SG_OPTIONS_INIT;
    struct sg_engine *engine = NULL;
    struct sg_sandbox *sandbox = NULL;
    struct sg_error error;

    int r = sg_engine_open(1, &engine, &error);
    if (r == 0)
        r = sg_sandbox_open(engine, &options, &sandbox, &error);
    if (r == 0)
        r = work(sandbox, &error);
    /* The first error is the one to report; closing goes on regardless. */
    int closed = sg_sandbox_close(sandbox, r == 0 ? &error : NULL);
    sg_engine_close(engine);
    if (r < 0 || closed < 0) {
        fprintf(stderr, "session: %s\n", error.message);
        return 1;
    }
    return 0;
}
