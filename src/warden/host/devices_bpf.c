#include "warden/host/devices_bpf.h"

#include <string.h>

#include "warden/host/bpf.h"

/* Registers: r1 context on entry; r2 access type, r3 major, r4 minor. */
#define LOAD(dst, field) \
    INSN(BPF_LDX | BPF_W | BPF_MEM, dst, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, field), 0)
#define RETURN(k) SET(BPF_REG_0, k), EXIT()

/* One program serves all groups; it stays loaded as long as this process runs. */
static int load_once(void)
{
    static int prog = -1;
    const struct bpf_insn program[] = {
        LOAD(BPF_REG_2, access_type),
        LOAD(BPF_REG_3, major),
        LOAD(BPF_REG_4, minor),
        AND(BPF_REG_2, 0xffff),
        JNE(BPF_REG_2, BPF_DEVCG_DEV_CHAR, 11), /* -> deny */
        JEQ(BPF_REG_3, 136, 12),                /* devpts -> allow */
        JNE(BPF_REG_3, 5, 2),                   /* -> major 1 */
        JEQ(BPF_REG_4, 0, 10),                  /* tty */
        JEQ(BPF_REG_4, 2, 9),                   /* ptmx */
        JNE(BPF_REG_3, 1, 6),                   /* -> deny */
        JEQ(BPF_REG_4, 3, 7),                   /* null */
        JEQ(BPF_REG_4, 5, 6),                   /* zero */
        JEQ(BPF_REG_4, 7, 5),                   /* full */
        JEQ(BPF_REG_4, 8, 4),                   /* random */
        JEQ(BPF_REG_4, 9, 3),                   /* urandom */
        JUMP(0),
        RETURN(0),
        RETURN(1),
    };
    union bpf_attr load = {.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
                           .insns = (uintptr_t)program,
                           .insn_cnt = ARRAY_SIZE(program),
                           .license = (uintptr_t) "Apache-2.0"};

    if (prog < 0)
        prog = bpf(BPF_PROG_LOAD, &load);
    return prog;
}

int devices_bpf_attach(int cgroup_fd, struct sg_error *e)
{
    union bpf_attr attach = {.attach_type = BPF_CGROUP_DEVICE};
    int prog = load_once();

    if (prog < 0)
        return err_errno(e, "load the device program");
    attach.target_fd = (uint32_t)cgroup_fd;
    attach.attach_bpf_fd = (uint32_t)prog;
    if (bpf(BPF_PROG_ATTACH, &attach) < 0)
        return err_errno(e, "attach the device program to the control group");
    return 0;
}
