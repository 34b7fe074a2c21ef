#include "front/core/defaults.h"

#include <stddef.h>
#include <string.h>

#include "lib/json/values.h"
#include "wire/agent.h"

const char *defaults_user(const json_t *defaults)
{
    return jr_text_or(defaults, "user", DEFAULTS_USER);
}

const char *defaults_home(const json_t *defaults)
{
    return jr_text(defaults, "home");
}

const char *defaults_workdir(const json_t *defaults)
{
    return jr_text(defaults, "workdir");
}

const char *defaults_start(const json_t *defaults)
{
    return jr_text_or(defaults, "startCmd", NULL);
}

const char *defaults_ready(const json_t *defaults)
{
    return jr_text_or(defaults, "readyCmd", NULL);
}

json_t *defaults_envs(const json_t *defaults)
{
    json_t *envs = json_object_get(defaults, "envs");

    return json_is_object(envs) ? envs : NULL;
}

bool user_name_valid(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return n > 0 && n <= OPS_NAME_MAX && name[n] == '\0' && name[0] != '-' && name[0] != '.';
}

json_t *defaults_load(const char *text)
{
    json_t *v = text && text[0] ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

    if (json_is_object(v))
        return v;
    json_decref(v);
    return NULL;
}
