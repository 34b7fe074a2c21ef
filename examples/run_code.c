/* Runs a few lines of Python in a sandbox and prints what came of it. */
#include <stdio.h>
#include <string.h>

#include <sandglass.h>

int main(void)
{
    static const char code[] = "import os\n"
                               "print('sum:', sum(range(101)))\n"
                               "print('user id:', os.getuid())\n";
    struct sg_run run = SG_RUN_INIT;
    struct sg_result result;
    struct sg_error error;

    run.options.limits.memory_bytes = 256ull << 20;
    run.exec.timeout_ms = 10000;
    if (sg_execute_code(code, strlen(code), SG_PYTHON, &run, &result, &error) < 0) {
        fprintf(stderr, "run_code: %s\n", error.message);
        return 1;
    }
    fwrite(result.stdout_data, 1, result.stdout_len, stdout);
    fwrite(result.stderr_data, 1, result.stderr_len, stderr);
    printf("status: %s, exit code: %d, limit: %s\n", sg_status_name(result.status),
           result.exit_code, result.limit ? sg_limit_name(result.limit) : "none");
    int failed = result.status != SG_STATUS_SUCCESS;
    sg_result_free(&result);
    return failed;
}
