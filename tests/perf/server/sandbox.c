#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

void json_field(const char *json, const char *name, char *ret, size_t cap)
{
    char key[64];
    const char *p;

    snprintf(key, sizeof(key), "\"%s\":\"", name);
    p = strstr(json, key);
    if (!p)
        fail("read the answer: no field", name);
    p += strlen(key);
    snprintf(ret, cap, "%.*s", (int)strcspn(p, "\""), p);
}

void sandbox_create(int fd, const struct server *s, struct sandbox *ret)
{
    static _Thread_local struct answer a;

    call(fd, s, "POST", "/v2/sandboxes", "{\"templateID\":\"base\",\"timeout\":300}", 201, &a);
    json_field(a.body, "sandboxID", ret->id, sizeof(ret->id));
    json_field(a.body, "envdAccessToken", ret->token, sizeof(ret->token));
}

void sandbox_kill(int fd, const struct server *s, const struct sandbox *b)
{
    static _Thread_local struct answer a;
    char path[128];

    snprintf(path, sizeof(path), "/sandboxes/%s", b->id);
    call(fd, s, "DELETE", path, "", 204, &a);
}

void command_start(int fd, const struct sandbox *b, const char *command)
{
    char headers[512], body[1024];
    int len = snprintf(body + 5, sizeof(body) - 5,
                       "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"%s\"]},"
                       "\"stdin\":false}",
                       command);
    uint32_t size = htobe32((uint32_t)len);

    body[0] = 0;
    memcpy(body + 1, &size, sizeof(size));
    snprintf(headers, sizeof(headers),
             "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\n"
             "Connect-Protocol-Version: 1\r\nContent-Type: application/connect+json\r\n",
             b->id, b->token);
    request(fd, "POST", "/process.Process/Start", headers, body, (size_t)len + 5);
}

void command_run(int fd, const struct sandbox *b, const char *command)
{
    static _Thread_local struct answer a;

    command_start(fd, b, command);
    read_answer(fd, &a);
    /* Envelopes have NULs in their heads: look into all of it. */
    if (a.status != 200 || !memmem(a.body, a.len, "exit status 0", 13)) {
        fprintf(stderr, "load: command '%s': status %d, %zu bytes: ", command, a.status, a.len);
        fwrite(a.body, 1, a.len, stderr);
        exit(1);
    }
}
