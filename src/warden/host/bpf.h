/* Instructions of BPF programs, and the system call. */
#pragma once

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INSN(c, d, s, o, i) \
    ((struct bpf_insn){     \
        .code = (c), .dst_reg = (d), .src_reg = (s), .off = (int16_t)(o), .imm = (i)})
#define MOV(dst, src)      INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define SET(dst, k)        INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, k)
#define AND(dst, k)        INSN(BPF_ALU | BPF_AND | BPF_K, dst, 0, 0, k)
#define CALL(f)            INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define JUMP(label)        INSN(BPF_JMP | BPF_JA, 0, 0, label, 0)
#define JEQ(reg, k, label) INSN(BPF_JMP32 | BPF_JEQ | BPF_K, reg, 0, label, (int32_t)(k))
#define JNE(reg, k, label) INSN(BPF_JMP32 | BPF_JNE | BPF_K, reg, 0, label, (int32_t)(k))
#define JNULL(reg, label)  INSN(BPF_JMP | BPF_JEQ | BPF_K, reg, 0, label, 0)
#define STORE(offset, reg) INSN(BPF_STX | BPF_W | BPF_MEM, BPF_REG_10, reg, offset, 0)
#define EXIT()             INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static inline int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}
