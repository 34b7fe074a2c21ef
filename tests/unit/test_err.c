#include "lib/base/err.h"
#include "tap.h"

TEST(set_fills_and_returns_the_code)
{
    struct sg_error e = {0};

    EXPECT(err_set(&e, SG_ERR_LIMIT, -ENOSPC, "slot %d of %s", 7, "pool") == -ENOSPC);
    EXPECT(e.kind == SG_ERR_LIMIT);
    EXPECT(e.code == -ENOSPC);
    EXPECT_STR(e.message, "slot 7 of pool");
}

TEST(null_error_is_allowed)
{
    errno = ENOENT;
    EXPECT(err_errno(NULL, "open '%s'", "x") == -ENOENT);
    EXPECT(err_set(NULL, SG_ERR_INVALID, -EINVAL, "no") == -EINVAL);
    EXPECT(err_wrap(NULL, -EIO, "context") == -EIO);
}

TEST(errno_gives_reason_kind_and_code)
{
    struct sg_error e = {0};

    errno = ENOENT;
    EXPECT(err_errno(&e, "open '%s'", "/no/such") == -ENOENT);
    EXPECT_STR(e.message, "open '/no/such': No such file or directory");
    EXPECT(e.kind == SG_ERR_NOT_FOUND);
    EXPECT(e.code == -ENOENT);
    EXPECT(errno == ENOENT);
}

TEST(errno_zero_is_still_an_error)
{
    struct sg_error e = {0};

    errno = 0;
    EXPECT(err_errno(&e, "odd") == -EIO);
    EXPECT(e.code == -EIO);
    errno = 0;
    EXPECT(err_errno(NULL, "odd") == -EIO);
}

TEST(message_stays_one_line)
{
    struct sg_error e = {0};

    errno = EACCES;
    err_errno(&e, "open '%s'", "a\nb\rc\td\x1b[2J\x7f");
    EXPECT_STR(e.message, "open 'a?b?c?d?[2J?': Permission denied");

    err_set(&e, SG_ERR_INVALID, -EINVAL, "bad\nname");
    EXPECT_STR(e.message, "bad?name");
    err_wrap(&e, -EINVAL, "mount\n1");
    EXPECT_STR(e.message, "mount?1: bad?name");
}

TEST(utf8_is_kept)
{
    struct sg_error e = {0};

    err_set(&e, SG_ERR_INVALID, -EINVAL, "gr\xc3\xbc\xc3\x9f'%s'", "\xe2\x82\xac");
    EXPECT_STR(e.message, "gr\xc3\xbc\xc3\x9f'\xe2\x82\xac'");
}

TEST(long_message_is_cut_and_terminated)
{
    struct sg_error e = {0};
    char name[2000];

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    err_set(&e, SG_ERR_INVALID, -ENAMETOOLONG, "%s", name);
    EXPECT(strlen(e.message) == sizeof(e.message) - 1);
    EXPECT(strspn(e.message, "n") == sizeof(e.message) - 1);
}

TEST(long_context_does_not_push_out_the_reason)
{
    struct sg_error e = {0};
    char name[2000];
    char reason[64];

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    snprintf(reason, sizeof(reason), ": %s", strerror(ENAMETOOLONG));
    errno = ENAMETOOLONG;
    EXPECT(err_errno(&e, "%s", name) == -ENAMETOOLONG);
    EXPECT(strlen(e.message) == sizeof(e.message) - 1);
    EXPECT_STR(e.message + strlen(e.message) - strlen(reason), reason);
}

/* Wherever the cut falls, the message ends with a whole character. */
TEST(cut_never_splits_a_character)
{
    static const char *const chars[] = {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};

    for (size_t c = 0; c < ARRAY_SIZE(chars); c++) {
        for (int shift = 0; shift < 4; shift++) {
            struct sg_error e = {0};
            char text[2000] = "xxx";
            size_t n = (size_t)shift, len = strlen(chars[c]);

            for (; n + len < sizeof(text); n += len)
                memcpy(text + n, chars[c], len);
            text[n] = '\0';
            err_set(&e, SG_ERR_INVALID, -EINVAL, "%s", text);

            size_t got = strlen(e.message);
            EXPECT(got > sizeof(e.message) - 1 - len);
            EXPECT((got - (size_t)shift) % len == 0);
            EXPECT(memcmp(e.message + got - len, chars[c], len) == 0);
        }
    }
}

TEST(wrap_prefixes_and_keeps_kind)
{
    struct sg_error e = {0};
    int r = err_set(&e, SG_ERR_DENIED, -EPERM, "not allowed");

    EXPECT(err_wrap(&e, r, "mount '%s'", "/etc") == -EPERM);
    EXPECT_STR(e.message, "mount '/etc': not allowed");
    EXPECT(e.kind == SG_ERR_DENIED && e.code == -EPERM);
    EXPECT(err_wrap(&e, r, "start sandbox") == -EPERM);
    EXPECT_STR(e.message, "start sandbox: mount '/etc': not allowed");
}

TEST(arguments_may_point_into_the_message)
{
    struct sg_error e = {0};

    err_set(&e, SG_ERR_INVALID, -EINVAL, "one");
    err_set(&e, SG_ERR_INVALID, -EINVAL, "two after %s", e.message);
    EXPECT_STR(e.message, "two after one");
    err_wrap(&e, -EINVAL, "[%s]", e.message);
    EXPECT_STR(e.message, "[two after one]: two after one");
}

TEST(wrap_of_a_full_message_is_cut_at_its_end)
{
    struct sg_error e = {0};
    char name[600];

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    err_set(&e, SG_ERR_INVALID, -EINVAL, "%s", name);
    err_wrap(&e, -EINVAL, "context");
    EXPECT(strncmp(e.message, "context: nnn", 12) == 0);
    EXPECT(strlen(e.message) == sizeof(e.message) - 1);
}

TEST(kinds_of_errnos)
{
    static const struct {
        int err;
        enum sg_error_kind kind;
    } cases[] = {
        {0, SG_ERR_NONE},
        {EINVAL, SG_ERR_INVALID},
        {ENAMETOOLONG, SG_ERR_INVALID},
        {ENOTDIR, SG_ERR_INVALID},
        {ENOENT, SG_ERR_NOT_FOUND},
        {EPERM, SG_ERR_DENIED},
        {EACCES, SG_ERR_DENIED},
        {EROFS, SG_ERR_DENIED},
        {ENOSYS, SG_ERR_UNSUPPORTED},
        {ENOSPC, SG_ERR_LIMIT},
        {EOPNOTSUPP, SG_ERR_UNSUPPORTED},
        {EDQUOT, SG_ERR_LIMIT},
        {EMFILE, SG_ERR_LIMIT},
        {EAGAIN, SG_ERR_LIMIT},
        {EFBIG, SG_ERR_LIMIT},
        {ENOMEM, SG_ERR_LIMIT},
        {EPIPE, SG_ERR_GONE},
        {ECONNRESET, SG_ERR_GONE},
        {EIO, SG_ERR_INTERNAL},
        {EFAULT, SG_ERR_INTERNAL},
        {4095, SG_ERR_INTERNAL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        EXPECT(err_kind_of(cases[i].err) == cases[i].kind);
}

TEST(what_is_in_the_way_is_nobodys_fault)
{
    static const struct {
        int err, now;
        enum sg_error_kind kind;
    } cases[] = {
        {EOVERFLOW, EBUSY, SG_ERR_GONE}, {ENOENT, EBUSY, SG_ERR_GONE},
        {EFBIG, EBUSY, SG_ERR_GONE},     {4095, EBUSY, SG_ERR_GONE},
        {ENOSPC, ENOSPC, SG_ERR_LIMIT},  {EMFILE, EMFILE, SG_ERR_LIMIT},
        {ENOMEM, ENOMEM, SG_ERR_LIMIT},  {EIO, EIO, SG_ERR_INTERNAL},
        {EROFS, EROFS, SG_ERR_INTERNAL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sg_error e = {0};
        int r = err_set(&e, SG_ERR_INTERNAL, -cases[i].err, "copy 'f'");

        EXPECT(err_in_the_way(&e, r) == -cases[i].now);
        EXPECT(e.code == -cases[i].now && e.kind == cases[i].kind);
        EXPECT_STR(e.message, "copy 'f'");
        EXPECT(err_in_the_way(NULL, r) == -cases[i].now);
    }
}

TAP_MAIN
