/* Names of images. What is taken has the characters that may stand in a URL, and nothing that leads
 * elsewhere. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "pull/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char text[1024];
    struct reference r = {0}, again = {0};
    struct sg_error e = {0};

    if (len >= sizeof(text))
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    if (reference_parse(text, &r, &e) < 0) {
        assert(e.message[0] && !strchr(e.message, '\n'));
        return 0;
    }
    assert(r.host[0] && r.path[0] && reference_host_valid(r.host, strlen(r.host)));
    assert(!strstr(r.path, "..") && r.path[0] != '/');
    for (const char *p = r.path; *p; p++)
        assert((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || strchr("._-/", *p));
    snprintf(text, sizeof(text), "%s/%s%s%s", r.host, r.path, r.tag[0] ? ":" : "@",
             reference_version(&r));
    if (strlen(r.host) + strlen(r.path) < REFERENCE_NAME_MAX &&
        strcspn(r.host, ".:") < strlen(r.host))
        assert(reference_parse(text, &again, &e) == 0 && strcmp(again.path, r.path) == 0 &&
               strcmp(again.host, r.host) == 0);
    return 0;
}
