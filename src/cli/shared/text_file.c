#include "cli/shared/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/text/parse.h"

static int too_large(const char *what, const char *name, const char *size, size_t max,
                     const char *hint, struct sg_error *e)
{
    char limit[32];

    return err_set(e, SG_ERR_INVALID, -EFBIG, "%s '%.128s' is %s, the limit is %s: %s", what, name,
                   size, format_size(max, limit, sizeof(limit)), hint);
}

/* Refuses, before anything is read, a directory and a file that is known to be too large. */
static int check_kind(const char *what, const char *name, int fd, size_t max, const char *hint,
                      struct sg_error *e)
{
    struct stat st;
    char size[32];

    if (fstat(fd, &st) < 0)
        return err_errno(e, "%s '%.128s'", what, name);
    if (S_ISDIR(st.st_mode))
        return err_set(e, SG_ERR_INVALID, -EISDIR, "%s '%.128s' is a directory: name a file", what,
                       name);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > max)
        return too_large(what, name, format_size((uint64_t)st.st_size, size, sizeof(size)), max,
                         hint, e);
    return 0;
}

int text_fd_load(const char *what, const char *name, int fd, size_t max, const char *hint,
                 char **ret, size_t *ret_len, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    size_t len;
    int r = check_kind(what, name, fd, max, hint, e);

    if (r < 0)
        return r;
    r = fd_read_all(fd, max, &text, &len);
    if (r == -EFBIG)
        return too_large(what, name, "too large", max, hint, e);
    if (r < 0)
        return err_code(e, r, "cannot read %s '%.128s'", what, name);
    const char *nul = memchr(text, '\0', len);
    if (nul)
        return err_invalid(e, "%s '%.128s' has a NUL byte at offset %zu: it must be text", what,
                           name, (size_t)(nul - text));
    *ret = steal_ptr(&text);
    *ret_len = len;
    return 0;
}

int text_file_load(const char *what, const char *path, size_t max, const char *hint, char **ret,
                   size_t *ret_len, struct sg_error *e)
{
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return err_set(e, err_kind_of(errno), -errno, "cannot open %s '%.128s': %s", what, path,
                       strerror(errno));
    return text_fd_load(what, path, fd, max, hint, ret, ret_len, e);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

char *text_next_line(char **cursor, unsigned *number)
{
    char *line = *cursor, *end;

    if (!line || !*line)
        return NULL;
    end = strchr(line, '\n');
    *cursor = end ? end + 1 : NULL;
    if (!end)
        end = line + strlen(line);
    while (end > line && is_blank(end[-1]))
        end--;
    *end = '\0';
    while (is_blank(*line))
        line++;
    ++*number;
    return line;
}
