/* The filesystem service and the door to both, as a client sees them, with a real agent behind. */
#include "front/envd/entry.h"
#include "envd_host.h"

#define FS(method) "/filesystem.Filesystem/" method

/* Runs a program in the sandbox and waits for its end. */
static void run(const char *script)
{
    AUTO(strbuf_done) struct strbuf body = {0};

    strbuf_init(&body, 65536);
    strbuf_addf(&body, "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-ec\",\"%s\"]}}", script);
    stream_begin(&client, "/process.Process/Start", body.buf);
    EXPECT(stream_ended(&client));
    EXPECT(has(&client, "exit status 0"));
}

TEST(stat_tells_everything)
{
    begin();
    run("cd /home/user; printf hello > f; chmod 640 f; touch -d @1714979289.5 f; ln -s f link; "
        "ln -s nowhere dangling; mkdir -m 1777 d; mkfifo pipe");
    expect_unary(FS("Stat"), "{\"path\":\"/home/user/f\"}", 200,
                 "{\"entry\":{\"name\":\"f\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/home/user/f\","
                 "\"size\":\"5\",\"mode\":416,\"permissions\":\"-rw-r-----\",\"owner\":\"user\","
                 "\"group\":\"user\",\"modifiedTime\":\"2024-05-06T07:08:09.500Z\"}}");
    expect_unary(FS("Stat"), "{\"path\":\"f\"}", 200, "\"path\":\"/home/user/f\"");
    expect_unary(FS("Stat"), "{\"path\":\"~/x/../f\"}", 200, "\"path\":\"/home/user/f\"");
    /* of a link: type and mode of what it leads to, its own permissions */
    expect_unary(FS("Stat"), "{\"path\":\"link\"}", 200,
                 "{\"entry\":{\"name\":\"link\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/home/user/"
                 "link\",\"size\":\"1\",\"mode\":416,\"permissions\":\"Lrwxrwxrwx\"");
    EXPECT(has(&client, "\"symlinkTarget\":\"/home/user/f\""));
    expect_unary(
        FS("Stat"), "{\"path\":\"dangling\"}", 200,
        "{\"name\":\"dangling\",\"path\":\"/home/user/dangling\",\"size\":\"7\",\"permissions\"");
    EXPECT(has(&client, "\"symlinkTarget\":\"/home/user/dangling\""));
    expect_unary(FS("Stat"), "{\"path\":\"d\"}", 200,
                 "\"type\":\"FILE_TYPE_DIRECTORY\",\"path\":\"/home/user/d\"");
    EXPECT(has(&client, "\"mode\":511,\"permissions\":\"dtrwxrwxrwx\""));
    expect_unary(FS("Stat"), "{\"path\":\"pipe\"}", 200, "{\"name\":\"pipe\",\"path\":");
    expect_unary(FS("Stat"), "{\"path\":\"/\"}", 200, "\"path\":\"/\"");
    expect_unary(FS("Stat"), "{\"path\":\"/none\"}", 404, "{\"code\":\"not_found\"");
    expect_unary(FS("Stat"), "{\"path\":\"f/below\"}", 404, "{\"code\":\"not_found\"");
    expect_unary(FS("Stat"), "{\"path\":\"~other/f\"}", 400, "{\"code\":\"invalid_argument\"");
    end();
}

TEST(names_that_are_no_text)
{
    begin();
    run("cd /home/user; mkdir m; touch m/$(printf '\\\\377')x \\\"m/a'b\\\"");
    expect_unary(FS("ListDir"), "{\"path\":\"m\"}", 200, "\"name\":\"a'b\"");
    EXPECT(has(&client, "\"name\":\"\xef\xbf\xbdx\""));
    end();
}

TEST(list_by_depth)
{
    begin();
    run("mkdir -p /tmp/l/b/c/d; touch /tmp/l/a /tmp/l/b/x; ln -s /tmp/l /tmp/s; ln -s loop "
        "/tmp/loop");
    expect_unary(FS("ListDir"), "{\"path\":\"/tmp/l\"}", 200, "{\"entries\":[{\"name\":\"a\"");
    EXPECT(client_count(&client, "\"name\":") == 2);
    expect_unary(FS("ListDir"), "{\"path\":\"/tmp/l/\",\"depth\":2}", 200,
                 "\"path\":\"/tmp/l/b/x\"");
    EXPECT(client_count(&client, "\"name\":") == 4);
    const char *order[] = {"\"/tmp/l/a\"", "\"/tmp/l/b\"", "\"/tmp/l/b/c\"", "\"/tmp/l/b/x\""};
    for (size_t i = 1; i < ARRAY_SIZE(order); i++)
        EXPECT(strstr(client.got.buf, order[i - 1]) < strstr(client.got.buf, order[i]));
    /* through a link: paths are told as they were asked for */
    expect_unary(FS("ListDir"), "{\"path\":\"/tmp/s\"}", 200, "\"path\":\"/tmp/s/a\"");
    expect_unary(FS("ListDir"), "{\"path\":\"/tmp/l/b/c/d\"}", 200, "{}");
    expect_unary(FS("ListDir"), "{\"path\":\"/tmp/l/a\"}", 400,
                 "path is not a directory: /tmp/l/a");
    expect_unary(FS("ListDir"), "{\"path\":\"/tmp/none\"}", 404, "not_found");
    expect_unary(FS("ListDir"), "{\"path\":\"/tmp/loop\"}", 400, "cyclic");
    run("mkdir -m 0 /tmp/closed");
    expect_unary(FS("ListDir"), "{\"path\":\"/tmp/closed\"}", 200, "{}");
    expect_unary(FS("ListDir"), "{\"path\":\"/proc/1\"}", 403, "permission_denied");
    end();
}

TEST(a_long_list_comes_whole)
{
    begin();
    run("mkdir /tmp/many; cd /tmp/many; seq 1 20000 | xargs touch");
    EXPECT(unary(FS("ListDir"), "{\"path\":\"/tmp/many\"}") == 200);
    EXPECT(client_count(&client, "\"name\":") == 20000);
    EXPECT(client.got.buf[client.got.len - 1] == '}');
    end();
}

TEST(directories_are_made_with_their_parents)
{
    begin();
    expect_unary(
        FS("MakeDir"), "{\"path\":\"a/b/c\"}", 200,
        "{\"entry\":{\"name\":\"c\",\"type\":\"FILE_TYPE_DIRECTORY\",\"path\":\"/home/user/a/b/"
        "c\"");
    EXPECT(has(&client, "\"permissions\":\"drwxr-xr-x\",\"owner\":\"user\""));
    expect_unary(
        FS("MakeDir"), "{\"path\":\"a/b/c\"}", 409,
        "{\"code\":\"already_exists\",\"message\":\"directory already exists: /home/user/a/b/"
        "c\"}");
    run("touch /home/user/f");
    expect_unary(FS("MakeDir"), "{\"path\":\"f\"}", 400, "it is not a directory");
    expect_unary(FS("MakeDir"), "{\"path\":\"/root/x\"}", 200, "\"owner\":\"user\"");
    end();
}

TEST(move_and_remove)
{
    begin();
    run("cd /home/user; echo x > f; mkdir -p d/e; touch d/e/g; ln -s d link");
    expect_unary(
        FS("Move"), "{\"source\":\"f\",\"destination\":\"new/place/f2\"}", 200,
        "{\"entry\":{\"name\":\"f2\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/home/user/new/place/"
        "f2\"");
    expect_unary(FS("Move"), "{\"source\":\"f\",\"destination\":\"g\"}", 404, "not_found");
    expect_unary(FS("Remove"), "{\"path\":\"link\"}", 200, "{}");
    expect_unary(FS("Stat"), "{\"path\":\"d/e/g\"}", 200, "\"name\":\"g\"");
    expect_unary(FS("Remove"), "{\"path\":\"d\"}", 200, "{}");
    expect_unary(FS("Remove"), "{\"path\":\"d\"}", 200, "{}"); /* gone is gone */
    expect_unary(FS("Stat"), "{\"path\":\"d\"}", 404, "not_found");
    end();
}

/* Not every kernel keeps attributes on the files of the test, so this is what an agent would say.
 */
TEST(metadata_is_told)
{
    AUTO(strbuf_done) struct strbuf s = {0};
    struct wire_reader r;

    strbuf_init(&s, 4096);
    wire_put_str(&s, "f");
    wire_put_str(&s, "/f");
    for (int i = 0; i < 4; i++)
        wire_put_u32(&s, i == 0 ? ENTRY_FILE : 0644);
    wire_put_str(&s, "user");
    wire_put_str(&s, "user");
    wire_put_u64(&s, 1);
    wire_put_u64(&s, 2);
    wire_put_str(&s, "");
    wire_put_str(&s, "");
    wire_put_u32(&s, 0);
    wire_put_u32(&s, 0);
    wire_put_u64(&s, 0);
    wire_put_u32(&s, 2);
    wire_put_str(&s, "a-key");
    wire_put_str(&s, "a value");
    wire_put_str(&s, "bad");
    wire_put_str(&s, "\xff");
    for (size_t len = 0; len <= s.len; len++) { /* and nothing of what is cut off */
        wire_reader_init(&r, s.buf, len);
        json_t *entry = entry_read(&r), *metadata = json_object_get(entry, "metadata");
        EXPECT((entry != NULL) == (len == s.len));
        if (entry) {
            EXPECT_STR(jr_text(metadata, "a-key"), "a value");
            EXPECT_STR(jr_text(metadata, "bad"), "\xef\xbf\xbd");
        }
        json_decref(entry);
    }
}

/* ---- watches --------------------------------------------------------------------------------- */

TEST(a_stream_of_changes)
{
    struct client watch;

    begin();
    client_open(&watch, &host);
    run("mkdir -p /home/user/w/old");
    stream_begin(&watch, FS("WatchDir"),
                 "{\"path\":\"w\",\"recursive\":true,\"includeEntry\":true}");
    EXPECT(client_wait(&watch, "{\"start\":{}}"));
    run("cd /home/user/w; echo 1 > f; chmod 600 f; mv f g; rm g");
    EXPECT(client_wait(&watch, "{\"filesystem\":{\"name\":\"g\",\"type\":\"EVENT_TYPE_REMOVE\"}}"));
    EXPECT(has(&watch, "{\"filesystem\":{\"name\":\"f\",\"type\":\"EVENT_TYPE_CREATE\""));
    EXPECT(has(&watch, "{\"name\":\"f\",\"type\":\"EVENT_TYPE_WRITE\""));
    EXPECT(has(&watch, "{\"name\":\"f\",\"type\":\"EVENT_TYPE_CHMOD\""));
    EXPECT(has(&watch, "{\"filesystem\":{\"name\":\"f\",\"type\":\"EVENT_TYPE_RENAME\"}}"));
    EXPECT(has(&watch, "{\"filesystem\":{\"name\":\"g\",\"type\":\"EVENT_TYPE_CREATE\""));
    /* a new directory is watched, too; not at once, so it is tried until it is */
    run("mkdir /home/user/w/new");
    for (int i = 0; i < 200 && client_count(&watch, "\"name\":\"new/in\"") == 0; i++) {
        run("echo 1 > /home/user/w/new/in");
        client_read(&watch, SIZE_MAX);
    }
    EXPECT(has(&watch, "\"name\":\"new/in\""));
    run("echo 2 > /home/user/w/old/in");
    EXPECT(client_wait(&watch, "{\"filesystem\":{\"name\":\"old/in\",\"type\":\"EVENT_TYPE_WRITE\","
                               "\"entry\":{\"name\":\"in\",\"type\":\"FILE_TYPE_FILE\",\"path\":"
                               "\"/home/user/w/old/in\""));
    client_close(&watch);
    end();
}

TEST(watches_that_cannot_be)
{
    begin();
    run("touch /home/user/f");
    stream_begin(&client, FS("WatchDir"), "{\"path\":\"none\"}");
    EXPECT(stream_ended(&client));
    EXPECT(has(&client,
               "{\"error\":{\"code\":\"not_found\",\"message\":\"path /home/user/none not found"));
    EXPECT(client_status(&client) == 200);
    stream_begin(&client, FS("WatchDir"), "{\"path\":\"f\"}");
    EXPECT(stream_ended(&client));
    EXPECT(has(&client, "{\"error\":{\"code\":\"invalid_argument\""));
    expect_unary(FS("CreateWatcher"), "{\"path\":\"none\"}", 404, "not_found");
    expect_unary(FS("CreateWatcher"), "{\"path\":\"f\"}", 400, "invalid_argument");
    expect_unary(FS("CreateWatcher"), "{\"path\":\"~x\"}", 400, "invalid_argument");
    expect_unary(FS("GetWatcherEvents"), "{\"watcherId\":\"wnone\"}", 404, "not_found");
    expect_unary(FS("RemoveWatcher"), "{}", 404, "not_found");
    end();
}

/* Makes a watcher; its id in a request. */
static void create_watcher(const char *body, char *ret, size_t cap)
{
    EXPECT(unary(FS("CreateWatcher"), body) == 200);
    snprintf(ret, cap, "%s", client.got.buf);
}

static bool events_come(const char *watcher, const char *text)
{
    uint64_t deadline = clock_ns() + WAIT_NS;

    while (clock_ns() < deadline)
        if (unary(FS("GetWatcherEvents"), watcher) != 200 || strstr(client.got.buf, text))
            return strstr(client.got.buf, text) != NULL;
    return false;
}

TEST(changes_that_wait_to_be_request_log_for)
{
    char id[128];

    begin();
    run("mkdir /home/user/w");
    create_watcher("{\"path\":\"w\"}", id, sizeof(id));
    EXPECT(strncmp(id, "{\"watcherId\":\"w", 15) == 0);
    expect_unary(FS("GetWatcherEvents"), id, 200, "{}");
    run("echo 1 > /home/user/w/f");
    EXPECT(unary(FS("GetWatcherEvents"), id) == 200);
    EXPECT(strstr(client.got.buf, "{\"events\":[{\"name\":\"f\",\"type\":\"EVENT_TYPE_CREATE\"}"));
    expect_unary(FS("GetWatcherEvents"), id, 200, "{}");
    /* a pause ends what the agent does for it; asking wakes it up */
    link_drop_calls(sandbox->link);
    expect_unary(FS("GetWatcherEvents"), id, 200, "{}");
    for (int i = 0; i < 20; i++)
        host_turn(&host);
    run("echo 1 > /home/user/w/g");
    EXPECT(events_come(id, "\"name\":\"g\""));
    expect_unary(FS("RemoveWatcher"), id, 200, "{}");
    expect_unary(FS("RemoveWatcher"), id, 404, "not_found");
    end();
}

TEST(watchers_are_bounded)
{
    char id[128];
    unsigned made = 0;

    begin();
    run("mkdir /home/user/w");
    create_watcher("{\"path\":\"w\"}", id, sizeof(id));
    while (made < 100 && unary(FS("CreateWatcher"), "{\"path\":\"w\"}") == 200)
        made++;
    EXPECT(made < 64 && strstr(client.got.buf, "resource_exhausted"));
    expect_unary(FS("RemoveWatcher"), id, 200, "{}");
    end();
}

TEST(changes_that_nobody_takes_are_bounded)
{
    char id[128];

    begin();
    run("mkdir /home/user/w");
    create_watcher("{\"path\":\"w\"}", id, sizeof(id));
    run("cd /home/user/w; seq 1 20000 | xargs touch; seq 1 20000 | xargs rm");
    expect_unary(FS("GetWatcherEvents"), id, 500, "some are lost");
    expect_unary(FS("RemoveWatcher"), id, 200, "{}");
    end();
}

/* ---- the door -------------------------------------------------------------------------------- */

static void expect_plain(const char *request, int status, const char *part)
{
    strbuf_reset(&client.got);
    client_send(&client, request);
    bool found = client_wait(&client, part);
    if (!found || client_status(&client) != status)
        printf("# %s -> %s\n", request, client.got.buf);
    EXPECT(found && client_status(&client) == status);
    for (int i = 0; i < 3; i++)
        host_turn(&host);
    client_read(&client, SIZE_MAX);
}

TEST(the_access_token)
{
    begin();
    snprintf(sandbox->spec.envd_token, sizeof(sandbox->spec.envd_token), "0123456789");
    expect_unary(
        FS("Stat"), "{\"path\":\"/\"}", 401,
        "{\"code\":401,\"message\":\"unauthorized access, please provide a valid access token "
        "or method signing if supported\"}");
    extra = "X-Access-Token: 0123456788\r\n";
    expect_unary(FS("Stat"), "{\"path\":\"/\"}", 401, "unauthorized");
    extra = "X-Access-Token: 01234567890\r\n";
    expect_unary(FS("Stat"), "{\"path\":\"/\"}", 401, "unauthorized");
    extra = "X-Access-Token: 0123456789\r\n";
    expect_unary(FS("Stat"), "{\"path\":\"/\"}", 200, "entry");
    extra = "";
    expect_plain("GET /health HTTP/1.1\r\nHost: x\r\n\r\n", 204, "\r\n\r\n");
    expect_plain("GET /envs HTTP/1.1\r\nHost: x\r\n\r\n", 401, "unauthorized access");
    expect_plain("POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 401,
                 "unauthorized");
    expect_plain("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 401, "unauthorized access");
    expect_plain("GET /files?path=/x HTTP/1.1\r\nHost: x\r\n\r\n", 401, "missing signature");
    end();
}

TEST(other_paths)
{
    begin();
    expect_plain("POST /init HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 404,
                 "\"path\":\"/init\",\"code\":404}");
    expect_plain("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 404, "{\"code\":404,");
    expect_plain("PUT /health HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405,
                 "{\"code\":405,");
    expect_plain("POST /files/compose HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 400,
                 "source_paths");
    expect_plain("GET /envs HTTP/1.1\r\nHost: x\r\n\r\n", 200, "\"GLOBAL\":\"1\"");
    expect_plain("OPTIONS /filesystem.Filesystem/Stat HTTP/1.1\r\nHost: x\r\nOrigin: http://o\r\n"
                 "Access-Control-Request-Method: POST\r\n\r\n",
                 204, "Access-Control-Allow-Origin: *\r\n");
    EXPECT(has(&client, "Access-Control-Allow-Headers: *, Authorization"));
    end();
}

TAP_MAIN
