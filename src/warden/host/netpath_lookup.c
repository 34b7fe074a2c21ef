/* The BPF program that brings all that a sandbox sends to the guard's sockets. */
#include <arpa/inet.h>

#include "warden/host/bpf.h"
#include "warden/host/netlink.h"
#include "warden/host/netpath_impl.h"

#define LOAD(dst, field) \
    INSN(BPF_LDX | BPF_W | BPF_MEM, dst, BPF_REG_6, offsetof(struct bpf_sk_lookup, field), 0)
#define LABEL(name) INSN(0, 0, 0, name, 0)

/* Jump targets. An instruction with a label has code 0 and marks a place in the program; a jump has
 * the label in place of its offset. link_program puts the offsets in. */
enum label { L_NONE, L_IPV4, L_NOT_ONE, L_NOT_OWN, L_ASSIGN, L_LOOK, L_DROP, L_PASS, L_MAX_ };

static bool is_jump(const struct bpf_insn *i)
{
    uint8_t class = BPF_CLASS(i->code), op = BPF_OP(i->code);

    return (class == BPF_JMP || class == BPF_JMP32) && op != BPF_CALL && op != BPF_EXIT;
}

/* Returns the number of instructions without labels. A two-slot load has a second slot whose code
 * is 0 too; its offset is L_NONE. */
static uint32_t link_program(const struct bpf_insn *from, size_t n, struct bpf_insn *to)
{
    int place[L_MAX_] = {0};
    int len = 0;

    for (size_t i = 0; i < n; i++) {
        if (from[i].code == 0 && from[i].off != L_NONE)
            place[from[i].off] = len;
        else
            to[len++] = from[i];
    }
    for (int i = 0; i < len; i++)
        if (is_jump(&to[i]))
            to[i].off = (int16_t)(place[to[i].off] - i - 1);
    return (uint32_t)len;
}

/* r6 is the context, r7 the socket. */
void netpath_lookup(struct netpath_plan *ret)
{
    const uint32_t *own6 = netpath_own6.s6_addr32;
    const struct bpf_insn source[] = {
        MOV(BPF_REG_6, BPF_REG_1),
        LOAD(BPF_REG_2, family),
        JEQ(BPF_REG_2, AF_INET, L_IPV4),
        JNE(BPF_REG_2, AF_INET6, L_DROP),
        LOAD(BPF_REG_2, local_ip6[0]),
        LOAD(BPF_REG_3, local_ip6[1]),
        LOAD(BPF_REG_4, local_ip6[2]),
        LOAD(BPF_REG_5, local_ip6[3]),
        JNE(BPF_REG_2, own6[0], L_NOT_OWN),
        JNE(BPF_REG_3, own6[1], L_NOT_OWN),
        JNE(BPF_REG_4, own6[2], L_NOT_OWN),
        JEQ(BPF_REG_5, own6[3], L_PASS),
        LABEL(L_NOT_OWN),
        JNE(BPF_REG_2, 0, L_ASSIGN),
        JNE(BPF_REG_3, 0, L_ASSIGN),
        JNE(BPF_REG_4, 0, L_NOT_ONE),
        JEQ(BPF_REG_5, htonl(1), L_PASS), /* ::1 */
        LABEL(L_NOT_ONE),
        JNE(BPF_REG_4, htonl(0xffff), L_ASSIGN),
        AND(BPF_REG_5, (int32_t)htonl(0xff000000)),
        JEQ(BPF_REG_5, htonl(0x7f000000), L_PASS), /* ::ffff:127.0.0.0/104 */
        JUMP(L_ASSIGN),
        LABEL(L_IPV4),
        LOAD(BPF_REG_2, local_ip4),
        JEQ(BPF_REG_2, htonl(NETPATH_OWN4), L_PASS),
        AND(BPF_REG_2, (int32_t)htonl(0xff000000)),
        JEQ(BPF_REG_2, htonl(0x7f000000), L_PASS), /* 127.0.0.0/8 */
        LABEL(L_ASSIGN),
        SET(BPF_REG_2, LOOKUP_TCP),
        LOAD(BPF_REG_3, protocol),
        JEQ(BPF_REG_3, IPPROTO_TCP, L_LOOK),
        SET(BPF_REG_2, LOOKUP_UDP),
        LABEL(L_LOOK),
        STORE(-4, BPF_REG_2),
        INSN(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, 0),
        INSN(0, 0, 0, L_NONE, 0),
        MOV(BPF_REG_2, BPF_REG_10),
        INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
        CALL(BPF_FUNC_map_lookup_elem),
        JNULL(BPF_REG_0, L_DROP),
        MOV(BPF_REG_7, BPF_REG_0),
        MOV(BPF_REG_1, BPF_REG_6),
        MOV(BPF_REG_2, BPF_REG_7),
        SET(BPF_REG_3, 0),
        CALL(BPF_FUNC_sk_assign),
        MOV(BPF_REG_8, BPF_REG_0),
        MOV(BPF_REG_1, BPF_REG_7),
        CALL(BPF_FUNC_sk_release),
        JEQ(BPF_REG_8, 0, L_PASS),
        LABEL(L_DROP),
        SET(BPF_REG_0, SK_DROP),
        EXIT(),
        LABEL(L_PASS),
        SET(BPF_REG_0, SK_PASS),
        EXIT(),
    };
    _Static_assert(ARRAY_SIZE(source) <= LOOKUP_MAX, "there is room for the program");

    ret->n_lookup = link_program(source, ARRAY_SIZE(source), ret->lookup);
    while (ret->lookup[ret->map].code != (BPF_LD | BPF_IMM | BPF_DW))
        ret->map++;
}
