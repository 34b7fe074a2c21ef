/* The SQL statements of contexts_sqlite*.c: a part of the list in db.h. */
#pragma once

#include "front/store/contexts.h"

#define CTX_IS_ACTIVE "status IN ('creating', 'ready')"
#define CTX_IS_FINAL  "status IN ('terminated', 'error')"
/* The rows that limits count: those that have a sandbox, or are about to. The partial index has the
 * same condition. */
#define CTX_IS_COUNTED "(status = 'creating' OR (status = 'ready' AND sandbox <> ''))"

/* The columns in the order in which take_row reads them. */
#define CTX_SELECT                                                                              \
    "SELECT c.id, c.tenant, c.conversation, c.path, p.parent, c.sandbox, c.template_id, "       \
    "c.status, c.created_ms, c.making_ms, c.used_ms, c.expires_ms, c.terminated_ms, c.ttl_ms, " \
    "c.error, c.cpu_us, c.memory_mib_ms, c.bytes_in, c.bytes_out, c.executions, c.sandboxes, "  \
    "c.egress_up, c.egress_down, c.node, n.url, n.seen_ms FROM context c "                      \
    "LEFT JOIN path p ON p.tenant = c.tenant AND p.conversation = c.conversation "              \
    "AND p.path = c.path LEFT JOIN node n ON n.id = c.node "

/* A page of a list. ?2 to ?4: filters, or NULL; ?5: names of statuses; ?6 and ?7: where the
 * previous page ended; ?8: how many rows. */
#define CTX_PAGE                                                   \
    "AND (?3 IS NULL OR c.path = ?3) AND instr(?5, c.status) > 0 " \
    "AND (c.created_ms, c.id) < (?6, ?7) ORDER BY c.created_ms DESC, c.id DESC LIMIT ?8"
#define CTX_ANY_CONVERSATION "AND (?2 IS NULL OR c.conversation = ?2) "

/* Rows of server ?1, or of a server that has not been seen since ?2; of tenant ?3, or of any. */
#define CTX_REAPABLE \
    "AND (c.node = ?1 OR n.seen_ms IS NULL OR n.seen_ms < ?2) AND (?3 IS NULL OR c.tenant = ?3) "

/* These begin with a comma. */
#define CTX_USAGE_COLUMN(name) ", " #name
#define CTX_USAGE_TOTAL(name)  ", sum(" #name ")"
#define CTX_USAGE_COLUMNS      CTX_USAGE(CTX_USAGE_COLUMN)
/* Sums over the days of a conversation: days are so few that no sum overflows. */
#define CTX_USAGE_TOTALS CTX_USAGE(CTX_USAGE_TOTAL)
/* Adds ?3 to ?10; no sum grows beyond ?11. */
#define CTX_USAGE_SUMS                                                               \
    "cpu_us = min(cpu_us + ?3, ?11), memory_mib_ms = min(memory_mib_ms + ?4, ?11), " \
    "bytes_in = min(bytes_in + ?5, ?11), bytes_out = min(bytes_out + ?6, ?11), "     \
    "executions = min(executions + ?7, ?11), sandboxes = min(sandboxes + ?8, ?11), " \
    "egress_up = min(egress_up + ?9, ?11), egress_down = min(egress_down + ?10, ?11) "

#define CONTEXT_STATEMENTS(X)                                                                      \
    X(CTX_ADD, "INSERT INTO context (id, tenant, conversation, path, template_id, node, ttl_ms, "  \
               "created_ms, making_ms, used_ms, expires_ms, status) "                              \
               "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?8, ?8 + ?7, 'creating')")             \
    X(CTX_BY_ID, CTX_SELECT "WHERE c.tenant = ?1 AND c.id = ?2")                                   \
    X(CTX_BY_PATH, CTX_SELECT "WHERE c.tenant = ?1 AND c.conversation = ?2 AND c.path = ?3 "       \
                              "AND c." CTX_IS_ACTIVE)                                              \
    X(CTX_COUNT, "SELECT count(*), count(*) FILTER (WHERE conversation = ?2) FROM context "        \
                 "WHERE tenant = ?1 AND " CTX_IS_COUNTED)                                          \
    X(CTX_MOVE, "UPDATE context SET used_ms = ?3, "                                                \
                "ttl_ms = CASE WHEN ?4 > 0 THEN ?4 ELSE ttl_ms END, "                              \
                "expires_ms = ?3 + CASE WHEN ?4 > 0 THEN ?4 ELSE ttl_ms END "                      \
                "WHERE tenant = ?1 AND id = ?2 AND status = 'ready'")                              \
    X(CTX_END, "UPDATE context SET status = ?3, terminated_ms = ?4, error = ?5 "                   \
               "WHERE tenant = ?1 AND id = ?2 AND " CTX_IS_ACTIVE)                                 \
    X(CTX_REPLACE, "UPDATE context SET status = 'creating', sandbox = '', node = ?4, "             \
                   "making_ms = ?5 WHERE tenant = ?1 AND id = ?2 AND status = 'ready' "            \
                   "AND sandbox = ?3")                                                             \
    X(CTX_SETTLE, "UPDATE context SET status = 'ready', sandbox = ?4, used_ms = ?5, "              \
                  "expires_ms = ?5 + ttl_ms WHERE tenant = ?1 AND id = ?2 AND node = ?3 "          \
                  "AND status = 'creating'")                                                       \
    X(CTX_FAIL, "UPDATE context SET status = 'error', error = ?4, terminated_ms = ?5 "             \
                "WHERE tenant = ?1 AND id = ?2 AND node = ?3 AND status = 'creating'")             \
    X(CTX_KEEP, "INSERT INTO context_kept (context, text) VALUES (?1, ?2) "                        \
                "ON CONFLICT (context) DO UPDATE SET text = ?2")                                   \
    X(CTX_KEPT, "SELECT text FROM context_kept WHERE context = ?1")                                \
    X(CTX_DEAD, CTX_SELECT "WHERE c.node = ?1 AND c.status = 'ready' AND c.sandbox <> '' "         \
                           "AND c.sandbox NOT IN (SELECT value FROM json_each(?2)) LIMIT ?3")      \
    X(CTX_FORGET, "DELETE FROM context WHERE id IN (SELECT id FROM context WHERE " CTX_IS_FINAL    \
                  " AND terminated_ms < ?1 ORDER BY terminated_ms LIMIT ?2)")                      \
    X(PATH_WINDOW, "SELECT max(seq), count(*) FROM "                                               \
                   "(SELECT seq FROM path WHERE seq > ?1 ORDER BY seq LIMIT ?2)")                  \
    X(PATH_FORGET, "DELETE FROM path WHERE seq > ?1 AND seq <= ?2 AND created_ms < ?3 "            \
                   "AND NOT EXISTS (SELECT 1 FROM context c WHERE c.tenant = path.tenant "         \
                   "AND c.conversation = path.conversation) "                                      \
                   "AND NOT EXISTS (SELECT 1 FROM path q WHERE q.tenant = path.tenant "            \
                   "AND q.conversation = path.conversation AND q.created_ms >= ?3)")               \
    X(DAY_FORGET, "DELETE FROM usage_day WHERE (tenant, day) IN (SELECT tenant, day "              \
                  "FROM usage_day WHERE day < ?1 ORDER BY day LIMIT ?2)")                          \
    X(TALK_FORGET, "DELETE FROM usage_talk WHERE (tenant, conversation, day) IN (SELECT tenant, "  \
                   "conversation, day FROM usage_talk WHERE day < ?1 ORDER BY day LIMIT ?2)")      \
    X(NODE_FORGET, "DELETE FROM node WHERE seen_ms < ?1")                                          \
    X(CTX_LOST, "UPDATE context SET sandbox = '' "                                                 \
                "WHERE tenant = ?1 AND id = ?2 AND sandbox = ?3 AND status = 'ready'")             \
    X(CTX_LIST, CTX_SELECT "WHERE c.tenant = ?1 " CTX_ANY_CONVERSATION CTX_PAGE)                   \
    X(CTX_LIST_ACTIVE,                                                                             \
      CTX_SELECT "WHERE c.tenant = ?1 AND c." CTX_IS_ACTIVE " " CTX_ANY_CONVERSATION CTX_PAGE)     \
    X(CTX_LIST_TALK, CTX_SELECT "WHERE c.tenant = ?1 AND c.conversation = ?2 " CTX_PAGE)           \
    X(CTX_LIST_SANDBOX, CTX_SELECT                                                                 \
      "WHERE c.tenant = ?1 AND c.sandbox = ?4 AND c.sandbox <> '' " CTX_ANY_CONVERSATION CTX_PAGE) \
    X(CTX_EXPIRED, CTX_SELECT "WHERE c.status = 'ready' AND c.expires_ms <= ?4 " CTX_REAPABLE      \
                              "ORDER BY c.expires_ms LIMIT ?5")                                    \
    X(CTX_STUCK, CTX_SELECT "WHERE c.status = 'creating' AND c.making_ms < ?4 " CTX_REAPABLE       \
                            "ORDER BY c.making_ms LIMIT ?5")                                       \
    X(CTX_HALF_MADE, CTX_SELECT "WHERE c.status = 'creating' AND c.node = ?1 "                     \
                                "ORDER BY c.making_ms LIMIT ?2")                                   \
    X(CTX_USED, "UPDATE context SET " CTX_USAGE_SUMS "WHERE tenant = ?1 AND id = ?2")              \
    X(DAY_USED, "INSERT INTO usage_day (tenant, day" CTX_USAGE_COLUMNS ") "                        \
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "                                \
                "ON CONFLICT (tenant, day) DO UPDATE SET " CTX_USAGE_SUMS)                         \
    X(TALK_USED, "INSERT INTO usage_talk (tenant, conversation, day" CTX_USAGE_COLUMNS ") "        \
                 "VALUES (?1, coalesce((SELECT conversation FROM context WHERE tenant = ?1 "       \
                 "AND id = ?2), ''), ?12, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "                       \
                 "ON CONFLICT (tenant, conversation, day) DO UPDATE SET " CTX_USAGE_SUMS)          \
    X(DAYS, "SELECT day, ''" CTX_USAGE_COLUMNS " FROM usage_day "                                  \
            "WHERE tenant = ?1 AND day BETWEEN ?2 AND ?3 ORDER BY day LIMIT ?4")                   \
    X(TALK_DAYS, "SELECT day, conversation" CTX_USAGE_COLUMNS " FROM usage_talk "                  \
                 "WHERE tenant = ?1 AND conversation = ?5 AND day BETWEEN ?2 AND ?3 "              \
                 "ORDER BY day LIMIT ?4")                                                          \
    X(TALKS, "SELECT '', conversation" CTX_USAGE_TOTALS " FROM usage_talk "                        \
             "WHERE tenant = ?1 AND conversation >= ?5 AND conversation IS NOT ?6 "                \
             "AND day BETWEEN ?2 AND ?3 "                                                          \
             "GROUP BY conversation ORDER BY conversation LIMIT ?4")                               \
    X(TALK, "SELECT '', conversation" CTX_USAGE_TOTALS " FROM usage_talk "                         \
            "WHERE tenant = ?1 AND conversation = ?5 AND day BETWEEN ?2 AND ?3 "                   \
            "GROUP BY conversation LIMIT ?4")                                                      \
    X(PATH_ADD, "INSERT INTO path (tenant, conversation, path, created_ms) "                       \
                "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (tenant, conversation, path) DO NOTHING")     \
    X(PATH_FROM, "UPDATE path SET parent = ?4, merged_into = '' "                                  \
                 "WHERE tenant = ?1 AND conversation = ?2 AND path = ?3")                          \
    X(PATH_INTO, "UPDATE path SET merged_into = ?4 "                                               \
                 "WHERE tenant = ?1 AND conversation = ?2 AND path = ?3")                          \
    X(PATHS, "SELECT p.path, p.parent, p.merged_into, p.created_ms, c.id, c.status FROM path p "   \
             "LEFT JOIN context c ON c.tenant = p.tenant AND c.conversation = p.conversation "     \
             "AND c.path = p.path AND c." CTX_IS_ACTIVE                                            \
             " WHERE p.tenant = ?1 AND p.conversation = ?2 ORDER BY p.seq LIMIT ?3")               \
    X(CTX_LEFT, "UPDATE context SET sandbox = '' "                                                 \
                "WHERE status = 'ready' AND expires_ms > 0 AND node = ?1")                         \
    X(NODE_LEFT, "UPDATE node SET seen_ms = 0 WHERE id = ?1")                                      \
    X(NODE_SEEN, "INSERT INTO node (id, url, seen_ms) VALUES (?1, ?2, ?3) "                        \
                 "ON CONFLICT (id) DO UPDATE SET url = ?2, seen_ms = ?3")
