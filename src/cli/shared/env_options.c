#include "cli/shared/env_options.h"

#include "cli/shared/text_file.h"

int env_option(void *to, const struct cli_option *o UNUSED, const char *value, struct sg_error *e)
{
    return env_list_set_or_copy(to, "--env", value, e);
}

int env_file_option(void *to, const struct cli_option *o UNUSED, const char *value,
                    struct sg_error *e)
{
    struct env_files *files = to;

    if (files->n == ENV_FILES_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--env-file: more than %d files", ENV_FILES_MAX);
    files->at[files->n++] = value;
    return 0;
}

int env_load(const struct env_files *files, const struct env_list *own, const char *hint,
             struct env_list *ret, struct sg_error *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < files->n; i++) {
        AUTO(free_p) char *text = NULL;
        size_t len;

        r = text_file_load("environment file", files->at[i], ENV_FILE_MAX, hint, &text, &len, e);
        if (r == 0)
            r = env_list_parse(ret, files->at[i], text, e);
    }
    for (size_t i = 0; r == 0 && i < own->n; i++)
        r = env_list_set(ret, "--env", own->v[i], e);
    return r;
}
