/* Runs a fuzz target over the files of the given corpus directories: one TAP line for each
 * directory. A finding ends the program, as it does under the fuzzer. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "lib/base/fd.h"

#define INPUT_MAX (16u * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *dir, int dirfd, const char *name)
{
    AUTO(free_p) char *data = NULL;
    size_t len;
    int r = file_read(dirfd, name, INPUT_MAX, &data, &len);

    if (r < 0) {
        printf("# read '%s/%s': %s\n", dir, name, strerror(-r));
        return r;
    }
    /* Said first, so that the input is known when the target crashes on it. */
    printf("# %s/%s\n", dir, name);
    fflush(stdout);
    LLVMFuzzerTestOneInput((const uint8_t *)data, len);
    return 0;
}

/* Returns the number of inputs, or -errno. An empty corpus is an error: it would test nothing. */
static int replay_dir(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0, failed = 0;

    if (!d) {
        printf("# open '%s': %s\n", dir, strerror(errno));
        return -errno;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.')
            continue;
        n++;
        if (replay_file(dir, dirfd(d), e->d_name) < 0)
            failed++;
    }
    closedir(d);
    if (n == 0)
        printf("# '%s' holds no input\n", dir);
    return failed || n == 0 ? -EIO : n;
}

int main(int argc, char **argv)
{
    int bad = argc < 2;

    /* Even without any file the target must take the empty input. */
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        int n = replay_dir(argv[i]);
        printf("%s %d - replay %s (%d inputs)\n", n < 0 ? "not ok" : "ok", i, argv[i],
               n < 0 ? 0 : n);
        bad |= n < 0;
    }
    printf("1..%d\n", argc - 1);
    return bad;
}
