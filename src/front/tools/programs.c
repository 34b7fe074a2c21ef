/* The named programs of run_analysis. Those in analysis/ are built into this program. The folder in
 * the setting `analysis` is looked at first, so an operator can replace programs and add others. A
 * thread reads the folder's files for each call: however slow the disk is, no other request waits
 * for it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "front/tools/call.h"

#define PROGRAM_MAX (256u * 1024)
#define SUFFIX      ".py"

/* defined in embed.S */
extern const char sg_data_analysis[], sg_data_analysis_end[];
extern const char sg_tax_calculation[], sg_tax_calculation_end[];
extern const char sg_compliance_check[], sg_compliance_check_end[];

static const struct {
    const char *name, *from, *to;
} own[] = {
    {"data_analysis", sg_data_analysis, sg_data_analysis_end},
    {"tax_calculation", sg_tax_calculation, sg_tax_calculation_end},
    {"compliance_check", sg_compliance_check, sg_compliance_check_end},
};

struct load {
    uv_work_t work;
    char folder[SETTINGS_PATH_MAX], name[PROGRAM_NAME_MAX + 1];
    char *text;
    size_t len;
    int r;
    struct sg_error e;
    program_done done;
    void *arg;
};

/* -ENOENT: the folder has no program of that name. */
static int load_file(struct load *l)
{
    char path[SETTINGS_PATH_MAX + PROGRAM_NAME_MAX + 8];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s" SUFFIX, l->folder, l->name);
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    if (fd < 0) {
        int r = err_errno(&l->e, "open %s", path);
        l->e.kind = SG_ERR_INTERNAL; /* only the log may say where the folder is */
        return r;
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > PROGRAM_MAX)
        return err_set(&l->e, SG_ERR_INTERNAL, -EINVAL, "%s must be a file of 1 to %u bytes", path,
                       PROGRAM_MAX);
    int r = fd_read_all(fd, PROGRAM_MAX, &l->text, &l->len);
    return r < 0 ? err_set(&l->e, SG_ERR_INTERNAL, r, "%s cannot be read", path) : 0;
}

static void in_thread(uv_work_t *w)
{
    struct load *l = w->data;

    l->r = load_file(l);
}

static json_t *code_of(const struct load *l, int *r)
{
    for (size_t i = 0; *r == -ENOENT && i < ARRAY_SIZE(own); i++)
        if (strcmp(l->name, own[i].name) == 0) {
            *r = 0;
            return json_stringn(own[i].from, (size_t)(own[i].to - own[i].from));
        }
    return *r == 0 ? json_stringn(l->text, l->len) : NULL;
}

static void answer(struct load *l)
{
    int r = l->r;
    json_t *code = code_of(l, &r);

    if (r == -ENOENT)
        err_invalid(
            &l->e,
            "unknown analysisType '%s': use data_analysis, tax_calculation, compliance_check or "
            "custom",
            l->name);
    else if (r == 0 && !code)
        r = err_set(&l->e, SG_ERR_INTERNAL, -EILSEQ, "%s/%s" SUFFIX " is not UTF-8", l->folder,
                    l->name);
    l->done(l->arg, r, code, &l->e);
    free(l->text);
    free(l);
}

static void on_loaded(uv_work_t *w, int status)
{
    struct load *l = w->data;

    if (status < 0)
        l->r = err_set(&l->e, SG_ERR_INTERNAL, -EIO, "%s cannot be read", l->folder);
    answer(l);
}

void program_load(struct front *f, const char *name, program_done done, void *arg)
{
    struct load *l = NEW(struct load, .r = -ENOENT, .done = done, .arg = arg);

    l->work.data = l;
    snprintf(l->folder, sizeof(l->folder), "%s", f->settings.analysis);
    snprintf(l->name, sizeof(l->name), "%s", name);
    if (l->folder[0])
        uv_queue_work(f->loop, &l->work, in_thread, on_loaded);
    else
        answer(l);
}
