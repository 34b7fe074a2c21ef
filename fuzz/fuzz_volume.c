/* What a volume's helper says, as the front reads it; what the front asks, as the helper checks it;
 * and paths of clients. The first byte says which. */
#include <assert.h>
#include <string.h>

#include "wire/volume.h"

static void take_records(const char *p, size_t len)
{
    while (len > 0) {
        struct volume_record r;
        struct volume_entry entry;
        struct volume_end end;
        const char *path, *target;
        int64_t n = volume_take(p, len, &r);

        if (n <= 0)
            return;
        assert((size_t)n <= len && (size_t)n == sizeof(r) + r.len);
        const char *payload = p + sizeof(r);
        if (volume_entry_read(payload, r.len, &entry, &path, &target) == 0) {
            assert(path >= payload && path + entry.path_len <= payload + r.len);
            assert(target + entry.target_len == payload + r.len && entry.path_len > 0);
        }
        if (volume_end_read(payload, r.len, &end) == 0)
            assert(end.code <= 0 && strlen(end.message) < sizeof(end.message));
        p += n;
        len -= (size_t)n;
    }
}

static void check_request(const char *p, size_t len)
{
    struct volume_request q;
    char path[VOLUME_PATH_MAX];

    if (len < sizeof(q))
        return;
    memcpy(&q, p, sizeof(q));
    if (q.path_len >= sizeof(path) || q.path_len > len - sizeof(q))
        return;
    memcpy(path, p + sizeof(q), q.path_len);
    path[q.path_len] = '\0';
    if (volume_request_sound(&q, path))
        assert(path[0] == '/' && strlen(path) == q.path_len && !strstr(path, "/../"));
}

/* A path that is in the one form stays as it is. */
static void normalise(const char *p, size_t len)
{
    char once[VOLUME_PATH_MAX], twice[VOLUME_PATH_MAX];

    if (volume_path(p, len, once) < 0)
        return;
    assert(once[0] == '/' && !strstr(once, "//") && !strstr(once, "/../") && !strstr(once, "/./"));
    assert(volume_path(once, strlen(once), twice) == 0 && strcmp(once, twice) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    void (*const what[])(const char *p, size_t len) = {take_records, check_request, normalise};

    if (len > 0)
        what[data[0] % ARRAY_SIZE(what)]((const char *)data + 1, len - 1);
    return 0;
}
