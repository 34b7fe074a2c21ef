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

/* "NAME=VALUE" */
static void add_variable(json_t *envs, const json_t *word)
{
    const char *text = json_string_value(word), *equals = text ? strchr(text, '=') : NULL;

    if (equals && equals > text)
        json_object_setn_new(envs, text, (size_t)(equals - text), json_string(equals + 1));
}

json_t *defaults_of_image(const char *config)
{
    json_t *c = config ? json_loads(config, 0, NULL) : NULL, *envs = json_object(), *word;
    size_t i;

    json_array_foreach(json_object_get(c, "Env"), i, word)
    {
        add_variable(envs, word);
    }
    json_decref(c);
    return json_pack("{s:o}", "envs", envs);
}
