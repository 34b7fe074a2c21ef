/* Layers of a root overlay on mounts that are kept attached, as a server needs it before Linux 6.15. */
#include "layer_stack_bed.h"

#include <dirent.h>

#include "warden/layers/attach.h"

TAP_MAIN

/* Mounts that are kept, by the folders for them. */
static size_t kept(void)
{
    DIR *d = opendir("/run/sandglass/mounts");
    size_t n = 0;

    while (d && readdir(d))
        n++;
    closedir(d);
    return n - 2; /* . and .. */
}

TEST(roots_over_stacks_are_made_of_kept_mounts)
{
    struct sg_error e = {0};
    struct bed b;
    struct sandbox x;

    EXPECT(attach_active() || attach_begin(true, &e) == 0);
    EXPECT(attach_active());
    bed_begin(&b);
    sandbox_begin(&x, &b, NULL, NULL);
    EXPECT(kept() == 2);
    for (unsigned i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        inside(true);
        put_text(x.root, name, name);
        inside(false);
        sandbox_freeze(&x, &b, NULL);
    }
    EXPECT(holds(x.root, "f0", "f0"));
    EXPECT(holds(x.root, "f4", "f4"));
    EXPECT(kept() == 2);
    sandbox_end(&x);
    EXPECT(kept() == 1);
    bed_end(&b);
    EXPECT(kept() == 0);
}

TEST(one_that_is_not_kept_is_let_go_without_harm)
{
    struct scratch *s = NULL;
    bool attaches = attach_active() || attach_begin(true, NULL) == 0;
    AUTO(close_p) int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    EXPECT(attaches);
    EXPECT(scratch_make(1u << 20, 100, &s, NULL) == 0);
    EXPECT(kept() == 1);
    attach_let_go(-1);
    EXPECT(attach_keep(dir, NULL) < 0);
    EXPECT(kept() == 1);
    scratch_release(s);
    EXPECT(kept() == 0);
}
