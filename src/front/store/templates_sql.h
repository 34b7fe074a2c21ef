/* The statements of templates, builds, layers and uploads: a part of db.h's list. */
#pragma once

#define TEMPLATE_COLUMNS "t.seq, t.id, t.tenant, t.name, t.public, t.created_ms, t.updated_ms"
#define BUILD_COLUMNS                                                                          \
    "b.id, b.template, b.state, b.tags, b.cpus, b.memory_mib, b.base, coalesce(b.layer, ''), " \
    "b.reason, b.reason_step, b.created_ms, b.ended_ms"
#define UPLOAD_COLUMNS "file, digest, bytes"
/* States in which nothing more happens to a build. */
#define BUILD_OVER "(3, 4)"
/* The newest build of a template that is not one of its last `keep`; they are numbered with those of
 * all others. */
#define BUILD_BEFORE(keep) \
    "(SELECT seq FROM build WHERE template = ?1 ORDER BY seq DESC LIMIT 1 OFFSET " keep ")"
/* Who else than its owner may have what the layer has: everybody, as a public template is made of it; or
 * it is the operator's, and the templates of the server may stand on it. */
#define PUBLIC_HAS(layer)                                                 \
    "EXISTS (SELECT 1 FROM build b JOIN template t ON t.id = b.template " \
    "JOIN template_tag g ON g.build = b.id WHERE b.layer = " layer " AND t.public)"
#define OPERATOR_HAS(layer)                                              \
    "EXISTS (SELECT 1 FROM snapshot s JOIN tenant o ON o.id = s.tenant " \
    "WHERE s.id = " layer " AND o.name = 'default')"
/* Names of templates that a layer is all of, with commas between. */
#define TEMPLATES_OF(layer)                                               \
    "coalesce((SELECT group_concat(DISTINCT m.name) FROM build b "        \
    "JOIN template m ON m.id = b.template WHERE b.layer = " layer " AND " \
    "EXISTS (SELECT 1 FROM template_tag g WHERE g.build = b.id)), '')"

#define TEMPLATE_STATEMENTS(X)                                                                     \
    X(TEMPLATE_ADD, "INSERT INTO template (id, tenant, name, created_ms, updated_ms) "             \
                    "VALUES (?1, ?2, ?3, ?4, ?4)")                                                 \
    X(TEMPLATE_OWN, "SELECT " TEMPLATE_COLUMNS " FROM template t "                                 \
                    "WHERE t.tenant = ?1 AND (t.id = ?2 OR t.name = ?2) "                          \
                    "ORDER BY t.name = ?2 DESC")                                                   \
    X(TEMPLATE_COUNT, "SELECT count(*) FROM template WHERE tenant = ?1")                           \
    X(TEMPLATE_LIST, "SELECT " TEMPLATE_COLUMNS " FROM template t WHERE t.tenant = ?1 "            \
                     "ORDER BY t.seq")                                                             \
    X(TEMPLATE_PUBLIC, "SELECT " TEMPLATE_COLUMNS " FROM template t WHERE t.id = ?1 AND t.public") \
    X(TEMPLATE_PUBLISH, "UPDATE template SET public = ?2 WHERE id = ?1")                           \
    X(TEMPLATE_TOUCH, "UPDATE template SET updated_ms = ?2 WHERE id = ?1")                         \
    X(TEMPLATE_REMOVE, "DELETE FROM template WHERE id = ?1")                                       \
    X(BUILD_ADD, "INSERT INTO build (id, template, state, tags, cpus, memory_mib, created_ms) "    \
                 "VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6)")                                             \
    X(BUILD_GET, "SELECT " BUILD_COLUMNS " FROM build b WHERE b.template = ?1 AND b.id = ?2")      \
    X(BUILD_BY_TAG, "SELECT " BUILD_COLUMNS " FROM build b JOIN template_tag g ON g.build = b.id " \
                    "WHERE g.template = ?1 AND g.tag = ?2")                                        \
    X(BUILD_NEWEST, "SELECT " BUILD_COLUMNS " FROM build b WHERE b.template = ?1 "                 \
                    "ORDER BY b.seq DESC LIMIT 1")                                                 \
    X(BUILD_LIST, "SELECT " BUILD_COLUMNS " FROM build b WHERE b.template = ?1 "                   \
                  "ORDER BY b.seq DESC")                                                           \
    X(BUILD_COUNT, "SELECT count(*) FROM build WHERE template = ?1")                               \
    X(BUILD_DEFAULTS, "SELECT defaults FROM build WHERE id = ?1")                                  \
    X(BUILD_STATE, "UPDATE build SET state = ?2 WHERE id = ?1 AND state < ?2")                     \
    X(BUILD_END, "UPDATE build SET state = ?2, base = ?3, layer = ?4, defaults = ?5, "             \
                 "reason = ?6, reason_step = ?7, ended_ms = ?8 "                                   \
                 "WHERE id = ?1 AND state NOT IN " BUILD_OVER)                                     \
    X(BUILD_ABANDON, "UPDATE build SET state = 4, reason = ?1, reason_step = 'finalize', "         \
                     "ended_ms = ?2 WHERE state IN (1, 2)")                                        \
    X(BUILD_REMOVE_ALL, "DELETE FROM build WHERE template = ?1")                                   \
    X(BUILD_FORGET,                                                                                \
      "DELETE FROM build WHERE template = ?1 AND id NOT IN "                                       \
      "(SELECT build FROM template_tag WHERE template = ?1) AND "                                  \
      "((state IN " BUILD_OVER " OR (state = 0 AND created_ms < ?3)) AND seq <= " BUILD_BEFORE(    \
          "?2") " OR state = 0 AND seq <= " BUILD_BEFORE("?4") ")")                                \
    X(BUILD_LOG_FORGET,                                                                            \
      "DELETE FROM build_log WHERE build IN (SELECT id FROM build "                                \
      "WHERE template = ?1 AND state IN " BUILD_OVER " AND seq <= " BUILD_BEFORE("?2") ")")        \
    /* A build that no tag names any more keeps its entry, and gives up its files. */              \
    X(BUILD_STRIP, "UPDATE build SET layer = NULL WHERE template = ?1 AND layer IS NOT NULL "      \
                   "AND id NOT IN (SELECT build FROM template_tag WHERE template = ?1)")           \
    X(TAG_SET, "INSERT INTO template_tag (template, tag, build, created_ms) "                      \
               "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (template, tag) "                              \
               "DO UPDATE SET build = ?3, created_ms = ?4")                                        \
    X(TAG_REMOVE, "DELETE FROM template_tag WHERE template = ?1 AND tag = ?2")                     \
    X(TAG_REMOVE_ALL, "DELETE FROM template_tag WHERE template = ?1")                              \
    X(TAG_COUNT, "SELECT count(*) FROM template_tag WHERE template = ?1")                          \
    X(TAG_LIST, "SELECT tag, build, created_ms FROM template_tag WHERE template = ?1 "             \
                "ORDER BY tag")                                                                    \
    X(BUILD_LOG_ADD, "INSERT INTO build_log (build, n, ms, level, step, message) "                 \
                     "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                            \
    X(BUILD_LOG_NEXT, "SELECT coalesce(max(n) + 1, 0) FROM build_log WHERE build = ?1")            \
    X(BUILD_LOG_LIST, "SELECT ms, level, step, message FROM build_log WHERE build = ?1 AND "       \
                      "level >= ?4 AND ms >= ?5 ORDER BY n LIMIT ?3 OFFSET ?2")                    \
    X(BUILD_LOG_BACK, "SELECT ms, level, step, message FROM build_log WHERE build = ?1 AND "       \
                      "level >= ?4 AND ms <= ?5 ORDER BY n DESC LIMIT ?3 OFFSET ?2")               \
    X(BUILD_LAYER_ADD, "INSERT INTO build_layer (id, tenant, bytes) VALUES (?1, ?2, ?3)")          \
    X(BUILD_LAYER_SHARE, "INSERT INTO build_layer (id, tenant, bytes) "                            \
                         "SELECT id, tenant, bytes FROM snapshot WHERE tenant = ?1 AND id = ?2 "   \
                         "ON CONFLICT (id) DO NOTHING")                                            \
    X(LAYER_NAMED, "SELECT (SELECT count(*) FROM snapshot WHERE id = ?1) + "                       \
                   "(SELECT count(*) FROM build_layer WHERE id = ?1)")                             \
    X(BUILD_LAYER_BYTES, "SELECT bytes FROM build_layer WHERE id = ?1")                            \
    X(CACHE_SET, "INSERT INTO build_cache (tenant, key, layer, used) VALUES (?1, ?2, ?3, "         \
                 "(SELECT coalesce(max(used), 0) + 1 FROM build_cache)) "                          \
                 "ON CONFLICT (tenant, key) DO UPDATE SET layer = ?3, used = excluded.used")       \
    X(CACHE_GET, "SELECT layer FROM build_cache WHERE tenant = ?1 AND key = ?2")                   \
    X(CACHE_USE, "UPDATE build_cache SET used = (SELECT max(used) + 1 FROM build_cache) "          \
                 "WHERE tenant = ?1 AND key = ?2")                                                 \
    X(CACHE_TRIM, "DELETE FROM build_cache WHERE tenant = ?1 AND key NOT IN (SELECT key FROM ("    \
                  "SELECT c.key, row_number() OVER w AS n, sum(l.bytes) OVER w AS total "          \
                  "FROM build_cache c JOIN build_layer l ON l.id = c.layer WHERE c.tenant = ?1 "   \
                  "WINDOW w AS (ORDER BY c.used DESC)) WHERE n <= ?2 AND total <= ?3)")            \
    X(BUILD_LAYER_NAMED, "SELECT coalesce(sum(bytes), 0) FROM build_layer l WHERE tenant = ?1 "    \
                         "AND EXISTS (SELECT 1 FROM build WHERE layer = l.id)")                    \
    X(BUILD_LAYER_UNUSED, "SELECT id FROM build_layer l WHERE tenant = ?1 AND "                    \
                          "NOT EXISTS (SELECT 1 FROM build_cache WHERE layer = l.id) AND "         \
                          "NOT EXISTS (SELECT 1 FROM build WHERE layer = l.id) AND "               \
                          "NOT EXISTS (SELECT 1 FROM template_copy WHERE layer = l.id) AND "       \
                          "id > ?3 "                                                               \
                          "ORDER BY id LIMIT ?2")                                                  \
    X(LAYER_FOREIGN,                                                                               \
      "SELECT " PUBLIC_HAS("?2") " OR " OPERATOR_HAS("?2") " FROM build_layer "                    \
                                                           "WHERE id = ?2 AND tenant <> ?1")       \
    X(COPY_ADD, "INSERT INTO template_copy (tenant, source, layer, used_ms) "                      \
                "VALUES (?1, ?2, ?3, ?4)")                                                         \
    X(COPY_GET, "SELECT layer FROM template_copy WHERE tenant = ?1 AND source = ?2")               \
    X(COPY_USE, "UPDATE template_copy SET used_ms = ?3 WHERE tenant = ?1 AND source = ?2")         \
    X(COPY_BYTES, "SELECT coalesce(sum(l.bytes), 0) FROM template_copy c "                         \
                  "JOIN build_layer l ON l.id = c.layer WHERE c.tenant = ?1")                      \
    X(COPY_OLDEST, "SELECT layer FROM template_copy WHERE tenant = ?1 ORDER BY used_ms LIMIT 1")   \
    X(COPY_IDLE, "SELECT layer FROM template_copy WHERE used_ms < ?1 OR NOT " PUBLIC_HAS(          \
                     "source") " LIMIT 1")                                                         \
    X(IMAGE_ADD, "INSERT INTO build_image (layer, name, digest, config, fetched_ms) "              \
                 "VALUES (?1, ?2, ?3, ?4, ?5)")                                                    \
    X(IMAGE_GET, "SELECT i.layer, i.name, i.digest, i.fetched_ms, i.config FROM build_cache c "    \
                 "JOIN build_image i ON i.layer = c.layer WHERE c.tenant = ?1 AND c.key = ?2")     \
    X(WORLD_LIST,                                                                                  \
      "SELECT s.id, t.name, iif(s.name = '', s.id, s.name || ':' || s.tag), " TEMPLATES_OF(        \
          "s.id") ", 0, s.created_ms FROM snapshot s JOIN tenant t ON t.id = s.tenant UNION ALL "  \
                  "SELECT i.layer, t.name, i.name, " TEMPLATES_OF(                                 \
                      "i.layer") ", 1, i.fetched_ms "                                              \
                                 "FROM build_image i JOIN build_layer l ON l.id = i.layer JOIN "   \
                                 "tenant t ON t.id = l.tenant "                                    \
                                 "ORDER BY 6")                                                     \
    X(WORLD_CACHE_DROP, "DELETE FROM build_cache WHERE layer = ?1")                                \
    X(WORLD_BUILD_DROP, "UPDATE build SET layer = NULL WHERE layer = ?1")                          \
    X(WORLD_TAGGED, "SELECT count(*) FROM build b JOIN template_tag g ON g.build = b.id "          \
                    "WHERE b.layer = ?1")                                                          \
    X(WORLD_SNAPSHOT_DROP, "DELETE FROM snapshot WHERE id = ?1")                                   \
    X(DROPPED_ADD, "INSERT OR IGNORE INTO dropped_layer (id) VALUES (?1)")                         \
    X(DROPPED_LIST, "SELECT id FROM dropped_layer LIMIT ?1")                                       \
    X(DROPPED_REMOVE, "DELETE FROM dropped_layer WHERE id = ?1")                                   \
    X(BUILD_LAYER_REMOVE, "DELETE FROM build_layer WHERE id = ?1")                                 \
    X(UPLOAD_ADD, "INSERT INTO upload (tenant, hash, file, digest, bytes, used) "                  \
                  "VALUES (?1, ?2, ?3, ?4, ?5, "                                                   \
                  "(SELECT coalesce(max(used), 0) + 1 FROM upload)) "                              \
                  "ON CONFLICT (tenant, hash) DO UPDATE SET file = ?3, digest = ?4, bytes = ?5, "  \
                  "used = excluded.used")                                                          \
    X(UPLOAD_GET, "SELECT " UPLOAD_COLUMNS " FROM upload WHERE tenant = ?1 AND hash = ?2")         \
    X(UPLOAD_USE, "UPDATE upload SET used = (SELECT max(used) + 1 FROM upload) "                   \
                  "WHERE tenant = ?1 AND hash = ?2")                                               \
    X(UPLOAD_SUM, "SELECT coalesce(sum(bytes), 0) FROM upload WHERE tenant = ?1")                  \
    X(UPLOAD_COUNT, "SELECT count(*) FROM upload WHERE tenant = ?1")                               \
    X(UPLOAD_OLDEST, "SELECT hash FROM upload WHERE tenant = ?1 AND hash <> ?2 "                   \
                     "ORDER BY used LIMIT 1")                                                      \
    X(UPLOAD_REMOVE, "DELETE FROM upload WHERE tenant = ?1 AND hash = ?2")                         \
    X(UPLOAD_BY_FILE, "SELECT count(*) FROM upload WHERE file = ?1")
