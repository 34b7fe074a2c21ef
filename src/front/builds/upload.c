#include "front/builds/upload.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "front/core/reply.h"
#include "front/core/request_log.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/list.h"
#include "lib/text/parse.h"

#define DIR_NAME    "uploads"
#define SECRET_NAME "uploads"
#define SECRET_LEN  32
#define MAC_HEX     64
#define VALID_S     3600
#define KEPT_FACTOR 4 /* all archives of a tenant, in sizes of the largest one */
#define KEPT_MOST   2000

struct upload {
    struct list link; /* in all_coming */
    struct http_req *req;
    struct front *front;
    char tenant[ID_LEN + 1], hash[STORE_KEY_HEX + 1];
    struct store_upload info;
    EVP_MD_CTX *digest;
    int dir, fd;
    bool whole, answered;
};
static struct list all_coming;

bool upload_hash_valid(const char *hash)
{
    return strlen(hash) == STORE_KEY_HEX && strspn(hash, "0123456789abcdef") == STORE_KEY_HEX;
}

static void hex(const unsigned char *p, size_t len, char *ret)
{
    for (size_t i = 0; i < len; i++)
        snprintf(ret + 2 * i, 3, "%02x", p[i]);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static int sign(struct store *s, const char *tenant, const char *hash, const char *expires,
                char ret[MAC_HEX + 1], struct sg_error *e)
{
    unsigned char secret[SECRET_LEN], mac[MAC_HEX / 2];
    char text[ID_LEN + STORE_KEY_HEX + 32];
    unsigned len = sizeof(mac);
    int r = store_secret(s, SECRET_NAME, secret, sizeof(secret), e);

    if (r < 0)
        return r;
    int n = snprintf(text, sizeof(text), "%s/%s/%s", tenant, hash, expires);
    if (n < 0 || (size_t)n >= sizeof(text) ||
        !HMAC(EVP_sha256(), secret, sizeof(secret), (unsigned char *)text, (size_t)n, mac, &len))
        r = err_invalid(e, "the address cannot be signed");
    OPENSSL_cleanse(secret, sizeof(secret));
    hex(mac, sizeof(mac), ret);
    return r;
}

int upload_address(const struct http_req *req, const char *tenant, const char *hash,
                   char ret[UPLOAD_URL_MAX], struct sg_error *e)
{
    char expires[24], mac[MAC_HEX + 1];
    int r;

    snprintf(expires, sizeof(expires), "%lld", (long long)(clock_wall_ms() / 1000 + VALID_S));
    r = sign(front_of(req)->store, tenant, hash, expires, mac, e);
    if (r < 0)
        return r;
    int n = snprintf(ret, UPLOAD_URL_MAX, "%s://%s" UPLOAD_PREFIX "%s/%s?expires=%s&signature=%s",
                     req->tls ? "https" : "http", req->host, tenant, hash, expires, mac);
    return n > 0 && n < UPLOAD_URL_MAX ? 0 : err_invalid(e, "the Host header is too long");
}

/* Reads tenant and hash from the path, and checks the signature. */
static int admit(struct http_req *req, char tenant[ID_LEN + 1], char hash[STORE_KEY_HEX + 1])
{
    const char *p = req->path + strlen(UPLOAD_PREFIX);
    const char *expires = http_query_get(req, "expires"),
               *signature = http_query_get(req, "signature");
    char right[MAC_HEX + 1];
    uint64_t until;

    if (strlen(p) != ID_LEN + 1 + STORE_KEY_HEX || p[ID_LEN] != '/' || !expires || !signature ||
        strlen(signature) != MAC_HEX)
        return -EACCES;
    snprintf(tenant, ID_LEN + 1, "%.*s", ID_LEN, p);
    snprintf(hash, STORE_KEY_HEX + 1, "%s", p + ID_LEN + 1);
    if (!id_valid(tenant) || !upload_hash_valid(hash) ||
        parse_u64("expires", expires, 0, INT64_MAX / 1000, &until, NULL) < 0)
        return -EACCES;
    int r = sign(front_of(req)->store, tenant, hash, expires, right, NULL);
    if (r < 0)
        return r;
    if (CRYPTO_memcmp(right, signature, MAC_HEX) != 0)
        return -EACCES;
    return until < (uint64_t)(clock_wall_ms() / 1000) ? -EKEYEXPIRED : 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Opens the directory, and makes it if it is missing. */
static int open_dir(struct store *s, struct sg_error *e)
{
    AUTO(close_p) int own = store_dir(s, e);

    if (own < 0)
        return own;
    if (mkdirat(own, DIR_NAME, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "make the directory '%s'", DIR_NAME);
    int dir = openat(own, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? err_errno(e, "open the directory '%s'", DIR_NAME) : dir;
}

int upload_open(struct store *s, const struct store_upload *u)
{
    AUTO(close_p) int dir = open_dir(s, NULL);
    AUTO(close_p) int fd = -1;
    struct stat st;

    if (dir < 0)
        return dir;
    fd = openat(dir, u->file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    /* Nothing waits for the disk when an archive has come: a power cut may have taken a part. */
    return (uint64_t)st.st_size == u->bytes ? steal_fd(&fd) : -ENOENT;
}

static void remove_file(struct store *s, const char *file)
{
    AUTO(close_p) int dir = open_dir(s, NULL);

    if (dir >= 0 && file[0])
        unlinkat(dir, file, 0);
}

void uploads_tidy(struct front *f)
{
    int fd = open_dir(f->store, NULL);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d) {
        close_p(&fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(d));)
        if (id_valid(entry->d_name) && !store_upload_is_file(f->store, entry->d_name))
            unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
}

/* ---- a PUT ----------------------------------------------------------------------------------- */

static void on_close(struct http_req *req)
{
    struct upload *u = req->owner;

    list_remove(&u->link);
    if (!u->whole && u->fd >= 0)
        unlinkat(u->dir, u->info.file, 0);
    close_p(&u->fd);
    close_p(&u->dir);
    EVP_MD_CTX_free(u->digest);
    free(u);
}

static void too_long(struct upload *u)
{
    char text[128];

    snprintf(text, sizeof(text), "the archive has more than %llu MiB (build_upload_max)",
             (unsigned long long)(u->front->settings.build_upload_max >> 20));
    u->answered = true;
    reply_error(u->req, 413, "%s", text);
}

/* What comes is not yet among what is kept, and takes as much of the disk. */
static bool has_room(const struct upload *u, size_t len)
{
    uint64_t sum = len;

    LIST_EACH(const struct upload, at, &all_coming, link) {
        sum += strcmp(at->tenant, u->tenant) == 0 ? at->info.bytes : 0;
    }
    return sum <= u->front->settings.build_upload_max * KEPT_FACTOR;
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    struct upload *u = req->owner;

    if (u->answered)
        return;
    if (u->info.bytes + len > u->front->settings.build_upload_max) {
        too_long(u);
        return;
    }
    if (!has_room(u, len)) {
        u->answered = true;
        reply_error(req, 429, "Too many uploads of this tenant at a time: end some first");
        return;
    }
    u->info.bytes += len;
    if (EVP_DigestUpdate(u->digest, data, len) != 1 || fd_write_all(u->fd, data, len) < 0) {
        u->answered = true;
        reply_error(req, 507, "the archive cannot be stored: the server's disk may be full");
    }
}

static void make_room(struct upload *u)
{
    uint64_t max = u->front->settings.build_upload_max * KEPT_FACTOR;
    struct store_upload old;

    while (store_upload_trim(u->front->store, u->tenant, u->hash, max, KEPT_MOST, &old, NULL) == 1)
        remove_file(u->front->store, old.file);
}

static void on_body_end(struct http_req *req)
{
    unsigned char digest[STORE_KEY_HEX / 2];
    char replaced[ID_LEN + 1];
    struct upload *u = req->owner;
    struct sg_error e;

    if (u->answered)
        return;
    u->answered = true;
    EVP_DigestFinal_ex(u->digest, digest, NULL);
    hex(digest, sizeof(digest), u->info.digest);
    if (store_upload_add(u->front->store, u->tenant, u->hash, &u->info, replaced, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    u->whole = true;
    remove_file(u->front->store, replaced);
    make_room(u);
    http_reply(req, 200, NULL, "", 0);
}

static int begin(struct upload *u, struct sg_error *e)
{
    u->dir = open_dir(u->front->store, e);
    if (u->dir < 0)
        return u->dir;
    id_random(u->info.file);
    u->fd =
        openat(u->dir, u->info.file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (u->fd < 0)
        return err_errno(e, "make a file for an upload");
    u->digest = EVP_MD_CTX_new();
    if (!u->digest || EVP_DigestInit_ex(u->digest, EVP_sha256(), NULL) != 1)
        abort(); /* out of memory */
    list_push(&all_coming, &u->link);
    return 0;
}

void upload_request(struct http_req *req)
{
    struct upload *u = NEW(struct upload, .req = req, .front = front_of(req), .dir = -1, .fd = -1);
    struct sg_error e;
    int r = admit(req, u->tenant, u->hash);

    req->owner = u;
    req->on_close = on_close;
    if (req->method != HTTP_M_PUT) {
        http_add_header(req, "Allow", "PUT");
        reply_error(req, 405, "method %s is not allowed here; allowed: PUT", req->method_name);
        return;
    }
    if (r < 0) {
        reply_error(req, 403, "%s",
                    r == -EKEYEXPIRED ? "the address has expired: ask for another"
                                      : "the address is not valid: its signature is wrong");
        return;
    }
    request_log_about(req, u->tenant, NULL);
    if (!request_log_has_room(req))
        return;
    if (req->content_length > 0 &&
        (uint64_t)req->content_length > u->front->settings.build_upload_max) {
        too_long(u);
    } else if (begin(u, &e) < 0) {
        reply_sg_error(req, &e);
    } else {
        req->party = work_party_of(u->tenant);
        req->on_body = on_body;
        req->on_body_end = on_body_end;
        http_body_stream(req);
    }
}
