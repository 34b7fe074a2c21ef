/* OP_FILE_UNPACK: where the files of an archive go, whose they are, and what is refused. */
#include "agent_files.h"
#include "tar_make.h"

/* Unpacks for a user; returns the status. */
static int unpack(struct agent_host *h, const char *user, const char *dest, const char *group,
                  uint32_t mode, uint32_t strip, const struct strbuf *tar)
{
    struct call c;
    bool never = false;

    call_open(h, &c, OP_FILE_UNPACK, "sssuu", user, dest, group, mode, strip);
    for (size_t at = 0; tar && at < tar->len && !c.ended;) {
        size_t n = chan_credit(c.stream);

        n = n < tar->len - at ? n : tar->len - at;
        n = n < FRAME_PAYLOAD_MAX ? n : FRAME_PAYLOAD_MAX;
        if (n > 0)
            chan_send(h->chan, c.stream, 0, tar->buf + at, n);
        at += n;
        host_wait(h, &never, n > 0 ? 0 : 5);
    }
    if (!c.ended)
        chan_eof(h->chan, c.stream);
    EXPECT(host_wait(h, &c.ended, AGENT_WAIT_MS));
    int status = c.status;
    snprintf(message, sizeof(message), "%s", c.message);
    call_done(&c);
    return status;
}

static void app(struct strbuf *tar)
{
    tar_made_add(tar, '5', "app/", "", 0750, "", 0);
    tar_made_file(tar, "app/main.py", 0644, "main");
    tar_made_add(tar, '5', "app/lib", "", 0700, "", 0);
    tar_made_file(tar, "app/lib/tool", 0755, "tool");
    tar_made_add(tar, '2', "app/link", "lib/tool", 0777, "", 0);
    tar_made_add(tar, '1', "app/hard", "app/main.py", 0644, "", 0);
    tar_made_end(tar);
}

TEST(a_directory_is_merged)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);
    struct agent_host h;

    host_start(&h);
    app(&tar);
    EXPECT(unpack(&h, "user", "/tmp/srv/app", "root", UNPACK_OWN_MODE, 1, &tar) == 0);
    EXPECT_STR(shell_says(&h, "root",
                          "cd /tmp/srv/app; stat -c '%n %a %u %g' . main.py lib lib/tool; "
                          "readlink link; stat -c %h main.py"),
               ". 750 1000 0\nmain.py 644 1000 0\nlib 700 1000 0\nlib/tool 755 1000 0\n"
               "lib/tool\n2\n");
    shell_says(&h, "root",
               "chmod 711 /tmp/srv/app/lib; echo kept > /tmp/srv/app/kept; echo old > "
               "/tmp/srv/app/main.py");
    EXPECT(unpack(&h, "root", "/tmp/srv/app/", "root", 0600, 1, &tar) == 0);
    EXPECT_STR(shell_says(&h, "root",
                          "cd /tmp/srv/app; stat -c '%n %a %u' . lib main.py; cat kept "
                          "main.py"),
               ". 750 1000\nlib 711 1000\nmain.py 600 0\nkept\nmain");
    host_stop(&h);
}

TEST(a_file_becomes_the_path_or_goes_into_it)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);
    struct agent_host h;

    host_start(&h);
    tar_made_file(&tar, "conf/a.txt", 0644, "a");
    EXPECT(unpack(&h, "user", "/home/user/x/b.txt", "user", UNPACK_OWN_MODE, 2, &tar) == 0);
    EXPECT(unpack(&h, "user", "/home/user/y/", "user", UNPACK_OWN_MODE, 2, &tar) == 0);
    EXPECT(unpack(&h, "user", "/home/user/x", "user", UNPACK_OWN_MODE, 2, &tar) == 0);
    EXPECT_STR(shell_says(&h, "user", "cd; find x y | sort; stat -c %u x"),
               "x\nx/a.txt\nx/b.txt\ny\ny/a.txt\n1000\n");
    EXPECT(unpack(&h, "user", "/home/user/empty/", "user", UNPACK_OWN_MODE, 0, NULL) == 0);
    EXPECT_STR(shell_says(&h, "user", "cd; stat -c '%F %u' empty"), "directory 1000\n");
    host_stop(&h);
}

TEST(links_at_the_target)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);
    struct agent_host h;

    host_start(&h);
    shell_says(&h, "root",
               "echo secret > /root/secret; mkdir -p /tmp/srv/d /tmp/srv/real; ln -s /root/secret "
               "/tmp/srv/d/f; ln -s /tmp/srv/real /tmp/srv/d/dir");
    tar_made_file(&tar, "s/f", 0644, "mine");
    tar_made_file(&tar, "s/dir/g", 0644, "there");
    EXPECT(unpack(&h, "user", "/tmp/srv/d/", "user", UNPACK_OWN_MODE, 1, &tar) == 0);
    EXPECT_STR(shell_says(&h, "root",
                          "cat /root/secret /tmp/srv/d/f /tmp/srv/real/g; stat -c %F /tmp/srv/d/f"),
               "secret\nminethereregular file\n");
    host_stop(&h);
}

TEST(names_that_lead_out)
{
    static const char *const bad[] = {"/etc/x", "s/../../etc/x", "..", "s/.."};
    struct agent_host h;

    host_start(&h);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);

        tar_made_file(&tar, bad[i], 0644, "x");
        EXPECT(unpack(&h, "root", "/tmp/srv/d/", "root", UNPACK_OWN_MODE, 1, &tar) == EINVAL);
        EXPECT(strstr(message, "absolute") || strstr(message, "out of it"));
    }
    AUTO(strbuf_done) struct strbuf hard = strbuf_upto(TAR_MADE_MAX);
    tar_made_add(&hard, '1', "s/h", "../../etc/shadow", 0644, "", 0);
    EXPECT(unpack(&h, "root", "/tmp/srv/d/", "root", UNPACK_OWN_MODE, 1, &hard) == EINVAL);
    EXPECT(unpack(&h, "no-one", "/tmp/srv/d/", "root", UNPACK_OWN_MODE, 1, &hard) == EUSERS);
    EXPECT(unpack(&h, "root", "/tmp/srv/d/", "no-one", UNPACK_OWN_MODE, 1, &hard) == EUSERS);
    EXPECT_STR(shell_says(&h, "root", "ls -A /tmp/srv/d; ls /etc/x 2>&1 | grep -c 'No such'"),
               "1\n");
    host_stop(&h);
}

TEST(not_whole)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);
    struct agent_host h;

    host_start(&h);
    app(&tar);
    tar.len = 700;
    EXPECT(unpack(&h, "user", "/tmp/srv/app/", "user", UNPACK_OWN_MODE, 1, &tar) == EINVAL);
    EXPECT(strstr(message, "ends in the middle"));
    host_stop(&h);
}

TAP_MAIN
