/* The header WWW-Authenticate, and the URL that a challenge names: whatever it is, no token is asked
 * for by http, of an address inside, or of another kind of URL. */
#include <assert.h>
#include <string.h>

#include "pull/challenge.h"
#include "lib/web/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO(url_done) struct url from = {0}, realm = {0};
    const struct vouchers none = {.as = "registry"};
    struct sg_error e = {0};
    struct challenge c;

    challenge_parse((const char *)data, len, &c);
    assert(memchr(c.realm, '\0', sizeof(c.realm)) && memchr(c.service, '\0', sizeof(c.service)));
    assert(!strchr(c.realm, '\n') && !strchr(c.service, '\r'));
    if (c.scheme != CHALLENGE_BEARER)
        return 0;
    assert(c.realm[0]);
    if (url_parse("https://registry.test/v2/", &from, &e) < 0)
        return 0;
    if (url_follow(&from, c.realm, &none, &realm, &e) < 0)
        assert(e.message[0] && !strchr(e.message, '\n'));
    else
        assert(!realm.plain && realm.host[0] && strcmp(realm.host, "127.0.0.1") != 0);
    return 0;
}
