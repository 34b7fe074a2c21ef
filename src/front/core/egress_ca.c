/* Puts the certificate of a sandbox's own CA where programs inside look for it. */
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "lib/channel/wire.h"
#include "front/core/call.h"
#include "front/core/egress.h"
#include "front/core/guard.h"

#define BUNDLE       "/etc/ssl/certs/ca-certificates.crt"
#define CERTIFICATES "/etc/ssl/certs/"
#define BESIDE       "/usr/local/share/ca-certificates/sandglass-egress.crt"
#define BEGIN_MARK   "# sandglass egress CA: begin\n"
#define END_MARK     "# sandglass egress CA: end\n"
#define BUNDLE_MAX   (4u * 1024 * 1024)
#define PEM_MAX      8192

struct install {
    struct sandbox *sandbox;
    void (*done)(void *arg);
    void *arg;
    char pem[PEM_MAX];
    char hash[16];
    struct strbuf bundle;
    struct call read;
    size_t writing; /* how many files are being written */
};

json_t *egress_envs(const struct sandbox_spec *s)
{
    if (json_object_size(json_object_get(s->network, "rules")) == 0 &&
        json_array_size(s->secrets) == 0)
        return NULL;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "SSL_CERT_FILE", BUNDLE,
                     "REQUESTS_CA_BUNDLE", BUNDLE, "CURL_CA_BUNDLE", BUNDLE, "GIT_SSL_CAINFO",
                     BUNDLE, "PIP_CERT", BUNDLE, "NODE_EXTRA_CA_CERTS", BESIDE);
}

static void install_end(struct install *i)
{
    void (*done)(void *arg) = i->done;
    void *arg = i->arg;

    strbuf_done(&i->bundle);
    sandbox_unref(i->sandbox);
    free(i);
    done(arg);
}

static void complain(struct install *i, const char *what)
{
    sandbox_log_add(&i->sandbox->log, LOG_WARN, FAULT_INFRASTRUCTURE, 0,
                    "The certificate for inspected traffic could not be installed: %s", what);
}

/* ---- writing --------------------------------------------------------------------------------- */

struct pouring {
    struct call call;
    struct install *install;
    char *text;
};

static void on_written(struct call *c, int status, const char *message, const void *result UNUSED,
                       size_t len UNUSED)
{
    struct pouring *p = CONTAINER_OF(c, struct pouring, call);
    struct install *i = p->install;

    if (status != 0)
        complain(i, status > 0 ? message : "the sandbox has ended");
    free(p->text);
    free(p);
    if (--i->writing == 0)
        install_end(i);
}

/* Takes text over. */
static void write_file(struct install *i, const char *path, char *text)
{
    struct pouring *p = NEW(struct pouring, .install = i, .text = text);

    p->call = (struct call){.uncounted = true, .on_end = on_written};
    i->writing++;
    if (call_write_file(&p->call, i->sandbox, "root", path, 0644, text, strlen(text), NULL) < 0) {
        i->writing--;
        free(p->text);
        free(p);
    }
}

/* Cuts out the certificate of an earlier policy, or of the sandbox that this one was copied
 * from. */
static void cut_old(struct strbuf *bundle)
{
    char *begin = strstr(bundle->buf, BEGIN_MARK), *end;

    if (!begin)
        return;
    end = strstr(begin, END_MARK);
    end = end ? end + strlen(END_MARK) : bundle->buf + bundle->len;
    memmove(begin, end, (size_t)(bundle->buf + bundle->len - end) + 1);
    bundle->len -= (size_t)(end - begin);
}

static void write_all(struct install *i)
{
    char hashed[64];

    cut_old(&i->bundle);
    strbuf_addf(&i->bundle, "%s%s%s", BEGIN_MARK, i->pem, END_MARK);
    snprintf(hashed, sizeof(hashed), CERTIFICATES "%s.0", i->hash);
    i->writing = 1; /* one more, until all writes are begun */
    sandbox_cork(i->sandbox);
    if (!i->bundle.truncated)
        write_file(i, BUNDLE, strbuf_detach(&i->bundle, NULL));
    write_file(i, BESIDE, xstrdup(i->pem));
    write_file(i, hashed, xstrdup(i->pem));
    sandbox_uncork(i->sandbox);
    if (--i->writing == 0)
        install_end(i);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void on_bundle_data(struct call *c, uint8_t sub UNUSED, const void *p, size_t len)
{
    struct install *i = CONTAINER_OF(c, struct install, read);

    strbuf_add(&i->bundle, p, len);
    call_consumed(c, len);
}

static void on_bundle(struct call *c, int status, const char *message UNUSED,
                      const void *result UNUSED, size_t len UNUSED)
{
    struct install *i = CONTAINER_OF(c, struct install, read);

    if (status == CALL_GONE) {
        install_end(i);
        return;
    }
    if (status != 0) /* there is no bundle: ours begins one */
        strbuf_reset(&i->bundle);
    write_all(i);
}

static void read_bundle(struct install *i)
{
    AUTO(strbuf_done) struct strbuf q = strbuf_upto(1024);

    wire_put_str(&q, "root");
    wire_put_str(&q, BUNDLE);
    wire_put_u64(&q, 0);
    wire_put_u64(&q, BUNDLE_MAX);
    strbuf_init(&i->bundle, BUNDLE_MAX + PEM_MAX);
    i->read = (struct call){.uncounted = true, .on_data = on_bundle_data, .on_end = on_bundle};
    if (call_begin(&i->read, i->sandbox, OP_FILE_READ, &q, NULL) < 0) {
        complain(i, "the sandbox has ended");
        install_end(i);
    }
}

/* ---- asking the guard ------------------------------------------------------------------------ */

static void on_certificate(void *arg, int r, const void *payload, size_t len, int fd)
{
    struct install *i = arg;
    json_t *answer = r == 0 ? json_loadb(payload, len, 0, NULL) : NULL;
    const char *pem = jr_text_or(answer, "pem", NULL);
    const char *hash = jr_text_or(answer, "hash", NULL);

    close_p(&fd);
    if (!pem || !hash || strlen(pem) >= sizeof(i->pem) || strlen(hash) >= sizeof(i->hash)) {
        complain(i, r == -EAGAIN ? "the guard is not running" : "the guard could not make it");
        json_decref(answer);
        install_end(i);
        return;
    }
    snprintf(i->pem, sizeof(i->pem), "%s", pem);
    snprintf(i->hash, sizeof(i->hash), "%s", hash);
    json_decref(answer);
    read_bundle(i);
}

static json_t *inspected_names(const struct sandbox_spec *s)
{
    json_t *names = json_array(), *rules = json_object_get(s->network, "rules"), *entry, *host;
    const char *domain;
    size_t i, k;

    json_object_foreach(rules, domain, entry) json_array_append_new(names, json_string(domain));
    json_array_foreach(s->secrets, i, entry)
        json_array_foreach(json_object_get(entry, "hosts"), k, host) json_array_append(names, host);
    return names;
}

void egress_install(struct sandbox *b, void (*done)(void *arg), void *arg)
{
    json_t *names = inspected_names(&b->spec);

    if (json_array_size(names) == 0) {
        json_decref(names);
        done(arg);
        return;
    }
    json_t *question = json_pack("{s:o}", "names", names);
    char *text = json_dumps(question, JSON_COMPACT);
    json_decref(question);
    struct install *i = NEW(struct install, .sandbox = sandbox_ref(b), .done = done, .arg = arg);
    guard_ask(b->front, ASK_CA, b->spec.tenant, b->id, text, strlen(text), on_certificate, i);
    free(text);
}
