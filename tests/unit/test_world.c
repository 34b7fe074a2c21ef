/* Worlds: which layers change the /usr of one; names of things that stand on another. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "lib/base/fd.h"
#include "lib/base/ids.h"
#include "tap.h"
#include "warden/layers/world.h"

/* A layer in a directory of its own, with these directories; ends with NULL. */
static int layer(char dir[32], const char *const *paths)
{
    int fd;

    snprintf(dir, 32, "/var/tmp/test-world.XXXXXX");
    EXPECT(mkdtemp(dir) != NULL);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (; *paths; paths++)
        EXPECT(mkdirat(fd, *paths, 0755) == 0);
    return fd;
}

static void drop(int fd, const char *dir, const char *const *paths)
{
    size_t n = 0;

    while (paths[n])
        n++;
    while (n > 0)
        unlinkat(fd, paths[--n], AT_REMOVEDIR);
    close(fd);
    rmdir(dir);
}

static bool looks(bool (*look)(int at, const char *layer), const char *const *paths,
                  const char *opaque)
{
    char dir[32], path[64];
    int fd = layer(dir, paths);

    snprintf(path, sizeof(path), "%s/%s", dir, opaque ? opaque : "");
    if (opaque)
        EXPECT(setxattr(path, "user.overlay.opaque", "y", 1, 0) == 0);
    bool changed = look(fd, ".");
    drop(fd, dir, paths);
    return changed;
}

static bool changed_by(const char *const *paths, const char *opaque)
{
    return looks(world_is_changed_by, paths, opaque);
}

static bool packages_by(const char *const *paths, const char *opaque)
{
    return looks(world_packages_are_changed_by, paths, opaque);
}

#define PATHS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(layers_that_leave_usr_alone)
{
    EXPECT(!changed_by(PATHS("home"), NULL));
    EXPECT(!changed_by(PATHS("usr"), NULL));
    EXPECT(!changed_by(PATHS("usr", "usr/local", "usr/local/bin"), NULL));
}

TEST(layers_that_change_usr)
{
    EXPECT(changed_by(PATHS("usr", "usr/bin"), NULL));
    EXPECT(changed_by(PATHS("usr", "usr/local", "usr/x"), NULL));
    EXPECT(changed_by(PATHS("usr", "usr/local"), "usr"));
}

/* A whiteout, a link or a file in the place of /usr. */
TEST(layers_that_replace_usr)
{
    static const char *const none[] = {NULL};
    char dir[32];
    int fd = layer(dir, none);

    EXPECT(symlinkat("elsewhere", fd, "usr") == 0);
    EXPECT(world_is_changed_by(fd, "."));
    EXPECT(unlinkat(fd, "usr", 0) == 0);
    EXPECT(mkfifoat(fd, "usr", 0600) == 0);
    EXPECT(world_is_changed_by(fd, "."));
    EXPECT(unlinkat(fd, "usr", 0) == 0);
    drop(fd, dir, none);
}

/* The same in the place of /usr/local, on which a cover needs a directory. */
TEST(layers_that_replace_usr_local)
{
    static const char *const usr[] = {"usr", NULL};
    char dir[32];
    int fd = layer(dir, usr);

    EXPECT(symlinkat("elsewhere", fd, "usr/local") == 0);
    EXPECT(world_is_changed_by(fd, "."));
    EXPECT(unlinkat(fd, "usr/local", 0) == 0);
    EXPECT(mkfifoat(fd, "usr/local", 0600) == 0);
    EXPECT(world_is_changed_by(fd, "."));
    EXPECT(unlinkat(fd, "usr/local", 0) == 0);
    drop(fd, dir, usr);
}

#define LIB "usr", "usr/local", "usr/local/lib"

/* npm install -g makes a folder beside those of Python. */
TEST(layers_that_leave_pythons_packages_alone)
{
    EXPECT(!packages_by(PATHS("home"), NULL));
    EXPECT(!packages_by(PATHS("usr", "usr/local", "usr/local/bin"), NULL));
    EXPECT(!packages_by(PATHS(LIB, "usr/local/lib/node_modules"), NULL));
}

TEST(layers_that_change_pythons_packages)
{
    static const char *const none[] = {NULL}, *const local[] = {"usr", "usr/local", NULL};
    char dir[32], name[32];

    EXPECT(packages_by(PATHS(LIB, "usr/local/lib/python3.11"), NULL));
    EXPECT(packages_by(PATHS(LIB), "usr/local/lib"));
    EXPECT(packages_by(PATHS("usr", "usr/local"), "usr/local"));
    EXPECT(packages_by(PATHS(LIB), "usr/local"));
    int fd = layer(dir, local);
    EXPECT(symlinkat("elsewhere", fd, "usr/local/lib") == 0);
    EXPECT(world_packages_are_changed_by(fd, "."));
    EXPECT(unlinkat(fd, "usr/local/lib", 0) == 0);
    EXPECT(mkfifoat(fd, "usr/local/lib", 0600) == 0); /* as a whiteout is no directory */
    EXPECT(world_packages_are_changed_by(fd, "."));
    EXPECT(unlinkat(fd, "usr/local/lib", 0) == 0);
    drop(fd, dir, local);
    fd = layer(dir, PATHS(LIB));
    for (int i = 0; i < PACKAGES_NAMES; i++) { /* more than anybody looks at */
        snprintf(name, sizeof(name), "usr/local/lib/%d", i);
        EXPECT(mkdirat(fd, name, 0755) == 0);
    }
    EXPECT(world_packages_are_changed_by(fd, "."));
    for (int i = 0; i < PACKAGES_NAMES; i++) {
        snprintf(name, sizeof(name), "usr/local/lib/%d", i);
        EXPECT(unlinkat(fd, name, AT_REMOVEDIR) == 0);
    }
    drop(fd, dir, PATHS(LIB));
    fd = layer(dir, none);
    EXPECT(world_packages_are_changed_by(fd, "gone"));
    drop(fd, dir, none);
}

TEST(a_layer_that_is_not_there)
{
    EXPECT(world_is_changed_by(AT_FDCWD, "/nowhere/at/all"));
}

TEST(a_folder_that_is_no_world)
{
    static const char *const none[] = {NULL};
    struct sg_error e = {0};
    int mount = -1;
    char dir[32];
    int fd = layer(dir, none);

    EXPECT(world_mount(fd, &mount, &e) < 0);
    EXPECT(mount == -1 && e.message[0] != '\0');
    drop(fd, dir, none);
}

#define ID "abcdefghij0123456789"

TEST(names_on_others)
{
    EXPECT(id_valid_on(ID));
    EXPECT(id_valid_on(ID "." ID));
    EXPECT(!id_valid_on(ID "."));
    EXPECT(!id_valid_on(ID "." ID "x"));
    EXPECT(!id_valid_on(ID "." ID "." ID));
    EXPECT(!id_valid_on(ID "x"));
    EXPECT(!id_valid_on("." ID));
    EXPECT(!id_valid_on(""));
    EXPECT(!id_valid_on("short." ID));
}

TAP_MAIN
