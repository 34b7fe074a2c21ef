/* Rules of nftables that bring all that a sandbox sends to the guard's sockets, for hosts where BPF
 * cannot. They are sent as one batch, which the kernel accepts whole or not at all. */
#include <arpa/inet.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>

#include "warden/host/netlink.h"
#include "warden/host/netpath_impl.h"

#define TABLE "sandglass"
#define CHAIN "egress"

/* These are from <linux/netfilter.h>, which not every C library can include beside
 * <netinet/in.h>. */
#define FAMILY_INET      1u
#define FAMILY_IPV4      2u
#define FAMILY_IPV6      10u
#define HOOK_PREROUTING  0u
#define HOOK_OUTPUT      3u
#define VERDICT_ACCEPT   1u
#define PRIORITY_MANGLE  -150
#define PRIORITY_DSTNAT  -100
#define IPV4_DESTINATION 16u
#define IPV6_DESTINATION 24u
#define PORT_DESTINATION 2u

static void begin(struct netlink *n, uint16_t message, uint16_t flags)
{
    struct nfgenmsg head = {.nfgen_family = FAMILY_INET, .version = NFNETLINK_V0};

    netlink_begin(n, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | message), flags, &head, sizeof(head));
}

static void batch(struct netlink *n, uint16_t type)
{
    struct nfgenmsg head = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

    netlink_begin(n, type, 0, &head, sizeof(head));
}

static void put_chain(struct netlink *n, const char *type, uint32_t hook, int32_t priority)
{
    size_t nest;

    begin(n, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_ACK);
    netlink_attr_text(n, NFTA_TABLE_NAME, TABLE);
    begin(n, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_ACK);
    netlink_attr_text(n, NFTA_CHAIN_TABLE, TABLE);
    netlink_attr_text(n, NFTA_CHAIN_NAME, CHAIN);
    nest = netlink_nest(n, NFTA_CHAIN_HOOK);
    netlink_attr_be32(n, NFTA_HOOK_HOOKNUM, hook);
    netlink_attr_be32(n, NFTA_HOOK_PRIORITY, (uint32_t)priority);
    netlink_unnest(n, nest);
    netlink_attr_text(n, NFTA_CHAIN_TYPE, type);
}

/* ---- rules: a list of expressions ------------------------------------------------------------ */

struct rule {
    struct netlink *n;
    size_t list, element, data;
};

static struct rule rule_begin(struct netlink *n)
{
    struct rule r = {.n = n};

    begin(n, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK);
    netlink_attr_text(n, NFTA_RULE_TABLE, TABLE);
    netlink_attr_text(n, NFTA_RULE_CHAIN, CHAIN);
    r.list = netlink_nest(n, NFTA_RULE_EXPRESSIONS);
    return r;
}

static void rule_end(struct rule *r)
{
    netlink_unnest(r->n, r->list);
}

static void expression(struct rule *r, const char *name)
{
    r->element = netlink_nest(r->n, NFTA_LIST_ELEM);
    netlink_attr_text(r->n, NFTA_EXPR_NAME, name);
    r->data = netlink_nest(r->n, NFTA_EXPR_DATA);
}

static void expression_end(struct rule *r)
{
    netlink_unnest(r->n, r->data);
    netlink_unnest(r->n, r->element);
}

static void put_value(struct rule *r, uint16_t type, const void *data, size_t len)
{
    size_t nest = netlink_nest(r->n, type);

    netlink_attr(r->n, NFTA_DATA_VALUE, data, len);
    netlink_unnest(r->n, nest);
}

static void compare(struct rule *r, const void *data, size_t len)
{
    expression(r, "cmp");
    netlink_attr_be32(r->n, NFTA_CMP_SREG, NFT_REG_1);
    netlink_attr_be32(r->n, NFTA_CMP_OP, NFT_CMP_EQ);
    put_value(r, NFTA_CMP_DATA, data, len);
    expression_end(r);
}

static void match_meta(struct rule *r, uint32_t key, uint8_t value)
{
    expression(r, "meta");
    netlink_attr_be32(r->n, NFTA_META_DREG, NFT_REG_1);
    netlink_attr_be32(r->n, NFTA_META_KEY, key);
    expression_end(r);
    compare(r, &value, sizeof(value));
}

static void match_payload(struct rule *r, uint32_t base, uint32_t offset, const void *data,
                          size_t len)
{
    expression(r, "payload");
    netlink_attr_be32(r->n, NFTA_PAYLOAD_DREG, NFT_REG_1);
    netlink_attr_be32(r->n, NFTA_PAYLOAD_BASE, base);
    netlink_attr_be32(r->n, NFTA_PAYLOAD_OFFSET, offset);
    netlink_attr_be32(r->n, NFTA_PAYLOAD_LEN, (uint32_t)len);
    expression_end(r);
    compare(r, data, len);
}

static void set_register(struct rule *r, uint32_t reg, const void *data, size_t len)
{
    expression(r, "immediate");
    netlink_attr_be32(r->n, NFTA_IMMEDIATE_DREG, reg);
    put_value(r, NFTA_IMMEDIATE_DATA, data, len);
    expression_end(r);
}

static void accept_it(struct rule *r)
{
    size_t data, verdict;

    expression(r, "immediate");
    netlink_attr_be32(r->n, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    data = netlink_nest(r->n, NFTA_IMMEDIATE_DATA);
    verdict = netlink_nest(r->n, NFTA_DATA_VERDICT);
    netlink_attr_be32(r->n, NFTA_VERDICT_CODE, VERDICT_ACCEPT);
    netlink_unnest(r->n, verdict);
    netlink_unnest(r->n, data);
    expression_end(r);
}

/* ---- the rules ------------------------------------------------------------------------------- */

/* Leaves alone what goes to this destination, or to one with this prefix: it is the sandbox's
 * own. */
static void leave_alone(struct netlink *n, uint8_t family, const void *address, size_t len)
{
    struct rule r = rule_begin(n);

    match_meta(&r, NFT_META_NFPROTO, family);
    match_payload(&r, NFT_PAYLOAD_NETWORK_HEADER,
                  family == FAMILY_IPV4 ? IPV4_DESTINATION : IPV6_DESTINATION, address, len);
    accept_it(&r);
    rule_end(&r);
}

static void leave_own_alone(struct netlink *n)
{
    static const uint8_t loopback4[] = {127};
    uint32_t own4 = htonl(NETPATH_OWN4);

    leave_alone(n, FAMILY_IPV4, loopback4, sizeof(loopback4));
    leave_alone(n, FAMILY_IPV4, &own4, sizeof(own4));
    leave_alone(n, FAMILY_IPV6, &in6addr_loopback, sizeof(in6addr_loopback));
    leave_alone(n, FAMILY_IPV6, &netpath_own6, sizeof(netpath_own6));
}

static void put_tproxy(struct netlink *n, uint8_t family, uint8_t protocol, const void *address,
                       size_t len)
{
    uint16_t port = htons(protocol == IPPROTO_TCP ? NETPATH_PORT : NETPATH_DNS_PORT);
    struct rule r = rule_begin(n);

    match_meta(&r, NFT_META_NFPROTO, family);
    match_meta(&r, NFT_META_L4PROTO, protocol);
    set_register(&r, NFT_REG_1, address, len);
    set_register(&r, NFT_REG_2, &port, sizeof(port));
    expression(&r, "tproxy");
    netlink_attr_be32(n, NFTA_TPROXY_FAMILY, family);
    netlink_attr_be32(n, NFTA_TPROXY_REG_ADDR, NFT_REG_1);
    netlink_attr_be32(n, NFTA_TPROXY_REG_PORT, NFT_REG_2);
    expression_end(&r);
    accept_it(&r);
    rule_end(&r);
}

void netpath_nft_tproxy(bool ipv6, struct netlink_batch *ret)
{
    struct netlink n = {.batch = ret};
    uint32_t guard4 = htonl(NETPATH_GUARD4);

    ret->protocol = NETLINK_NETFILTER;
    batch(&n, NFNL_MSG_BATCH_BEGIN);
    put_chain(&n, "filter", HOOK_PREROUTING, PRIORITY_MANGLE);
    leave_own_alone(&n);
    put_tproxy(&n, FAMILY_IPV4, IPPROTO_TCP, &guard4, sizeof(guard4));
    put_tproxy(&n, FAMILY_IPV4, IPPROTO_UDP, &guard4, sizeof(guard4));
    if (ipv6) {
        put_tproxy(&n, FAMILY_IPV6, IPPROTO_TCP, &netpath_guard6, sizeof(netpath_guard6));
        put_tproxy(&n, FAMILY_IPV6, IPPROTO_UDP, &netpath_guard6, sizeof(netpath_guard6));
    }
    batch(&n, NFNL_MSG_BATCH_END);
}

static void put_redirect(struct netlink *n, uint8_t protocol)
{
    uint16_t dns = htons(NETPATH_DNS_PORT),
             to = protocol == IPPROTO_UDP ? dns : htons(NETPATH_PORT);
    struct rule r = rule_begin(n);

    match_meta(&r, NFT_META_L4PROTO, protocol);
    if (protocol == IPPROTO_UDP)
        match_payload(&r, NFT_PAYLOAD_TRANSPORT_HEADER, PORT_DESTINATION, &dns, sizeof(dns));
    set_register(&r, NFT_REG_1, &to, sizeof(to));
    expression(&r, "redir");
    netlink_attr_be32(n, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    expression_end(&r);
    rule_end(&r);
}

void netpath_nft_redirect(struct netlink_batch *ret)
{
    struct netlink n = {.batch = ret};

    ret->protocol = NETLINK_NETFILTER;
    batch(&n, NFNL_MSG_BATCH_BEGIN);
    put_chain(&n, "nat", HOOK_OUTPUT, PRIORITY_DSTNAT);
    leave_own_alone(&n);
    put_redirect(&n, IPPROTO_TCP);
    put_redirect(&n, IPPROTO_UDP);
    batch(&n, NFNL_MSG_BATCH_END);
}
