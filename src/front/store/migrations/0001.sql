-- Contexts, paths, usage and the servers that share them. docs/internals/store.md describes it.
--
-- Needs no superuser and no extension. Times are of this database's clock, to the millisecond: that
-- is what the servers see, and pages of lists begin at.

CREATE SCHEMA IF NOT EXISTS sandglass;

CREATE TABLE sandglass.schema_version (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL
);

CREATE TABLE sandglass.node (
    id      text COLLATE "C" PRIMARY KEY,
    url     text NOT NULL,
    seen_at timestamptz NOT NULL
);

CREATE TABLE sandglass.path (
    tenant_id       text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    path_id         text COLLATE "C" NOT NULL,
    parent_path_id  text COLLATE "C",
    merged_into     text COLLATE "C",
    created_at      timestamptz NOT NULL,
    seq             bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (tenant_id, conversation_id, path_id)
);
CREATE INDEX path_in_order ON sandglass.path (tenant_id, conversation_id, seq);

CREATE TABLE sandglass.context (
    id              text COLLATE "C" PRIMARY KEY,
    tenant_id       text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    path_id         text COLLATE "C" NOT NULL,
    sandbox_id      text COLLATE "C",
    sandbox_status  text COLLATE "C" NOT NULL
        CHECK (sandbox_status IN ('creating', 'ready', 'terminated', 'error')),
    created_at      timestamptz NOT NULL,
    last_used_at    timestamptz NOT NULL, -- of one that is 'creating': since when
    expires_at      timestamptz NOT NULL,
    terminated_at   timestamptz,
    error_message   text,
    resource_usage  jsonb NOT NULL DEFAULT '{}',
    ttl             interval NOT NULL,
    template_id     text NOT NULL,
    node_id         text COLLATE "C" NOT NULL,
    CHECK ((sandbox_status IN ('terminated', 'error')) = (terminated_at IS NOT NULL))
) WITH (fillfactor = 80);
-- At most one active context of a path, whatever else goes wrong.
CREATE UNIQUE INDEX context_active ON sandglass.context (tenant_id, conversation_id, path_id)
    WHERE sandbox_status IN ('creating', 'ready');
CREATE INDEX context_of_tenant ON sandglass.context (tenant_id, created_at, id);
CREATE INDEX context_of_conversation
    ON sandglass.context (tenant_id, conversation_id, created_at, id);
CREATE INDEX context_of_sandbox ON sandglass.context (sandbox_id) WHERE sandbox_id IS NOT NULL;
CREATE INDEX context_expiry ON sandglass.context (expires_at) WHERE sandbox_status = 'ready';
CREATE INDEX context_creating ON sandglass.context (last_used_at)
    WHERE sandbox_status = 'creating';

CREATE TABLE sandglass.usage_day (
    tenant_id     text COLLATE "C" NOT NULL,
    day           date NOT NULL,
    cpu_us        bigint NOT NULL,
    memory_mib_ms bigint NOT NULL,
    bytes_in      bigint NOT NULL,
    bytes_out     bigint NOT NULL,
    executions    bigint NOT NULL,
    sandboxes     bigint NOT NULL,
    PRIMARY KEY (tenant_id, day)
);

-- ---- row-level security: a statement sees the rows of the tenant that its transaction names ------
-- '*' is for the server's own jobs, and only its role has it. FORCE: the owner too, so that a
-- statement of ours that forgot the tenant finds nothing.

ALTER TABLE sandglass.schema_version ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandglass.schema_version FORCE ROW LEVEL SECURITY;
ALTER TABLE sandglass.node ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandglass.node FORCE ROW LEVEL SECURITY;
ALTER TABLE sandglass.path ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandglass.path FORCE ROW LEVEL SECURITY;
ALTER TABLE sandglass.context ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandglass.context FORCE ROW LEVEL SECURITY;
ALTER TABLE sandglass.usage_day ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandglass.usage_day FORCE ROW LEVEL SECURITY;

CREATE POLICY tenant ON sandglass.path
    USING (tenant_id = current_setting('sandglass.tenant', true));
CREATE POLICY tenant ON sandglass.context
    USING (tenant_id = current_setting('sandglass.tenant', true));
CREATE POLICY tenant ON sandglass.usage_day
    USING (tenant_id = current_setting('sandglass.tenant', true));
CREATE POLICY server ON sandglass.path TO CURRENT_USER
    USING (current_setting('sandglass.tenant', true) = '*');
CREATE POLICY server ON sandglass.context TO CURRENT_USER
    USING (current_setting('sandglass.tenant', true) = '*');
CREATE POLICY server ON sandglass.usage_day TO CURRENT_USER
    USING (current_setting('sandglass.tenant', true) = '*');
-- Where a server is reached is no tenant's; which version this is, nobody's.
CREATE POLICY read ON sandglass.node FOR SELECT USING (true);
CREATE POLICY server ON sandglass.node TO CURRENT_USER
    USING (current_setting('sandglass.tenant', true) = '*');
CREATE POLICY read ON sandglass.schema_version FOR SELECT USING (true);
CREATE POLICY server ON sandglass.schema_version TO CURRENT_USER
    USING (current_setting('sandglass.tenant', true) = '*');

-- ---- small helpers ------------------------------------------------------------------------------
-- Each is declared as volatile as what it calls, no less: then the planner puts it in place.

CREATE FUNCTION sandglass.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT date_trunc('milliseconds', clock_timestamp()) $$;

CREATE FUNCTION sandglass.ms(t timestamptz) RETURNS bigint LANGUAGE sql STABLE
AS $$ SELECT (date_part('epoch', t) * 1000)::bigint $$;

CREATE FUNCTION sandglass.from_ms(ms bigint) RETURNS interval LANGUAGE sql IMMUTABLE
AS $$ SELECT make_interval(secs => ms / 1000.0) $$;

-- What says that a server lives is not older (CTX_NODE_DEAD_MS).
CREATE FUNCTION sandglass.node_alive(seen_at timestamptz) RETURNS boolean LANGUAGE sql STABLE
AS $$ SELECT coalesce(seen_at > now() - interval '20 seconds', false) $$;

-- Whoever counts a tenant's sandboxes, and makes one more, is alone. Until the transaction ends.
CREATE FUNCTION sandglass.lock_tenant(p_tenant text) RETURNS void LANGUAGE sql VOLATILE
AS $$ SELECT pg_advisory_xact_lock(hashtextextended('sandglass:' || p_tenant, 0)) $$;

-- ---- views --------------------------------------------------------------------------------------
-- With the rights of whoever reads them. Before PostgreSQL 15 a view has its owner's, who is under
-- the same policies.

DO $do$
DECLARE
    v_invoker text := CASE WHEN current_setting('server_version_num')::integer >= 150000
        THEN ' WITH (security_invoker = true)' ELSE '' END;
BEGIN
    -- For people and dashboards.
    EXECUTE 'CREATE VIEW sandglass.active_contexts' || v_invoker || $view$ AS
        SELECT id, tenant_id, conversation_id, path_id, sandbox_id, sandbox_status, created_at,
               last_used_at, expires_at, expires_at <= now() AS expired, resource_usage, ttl,
               template_id, node_id
          FROM sandglass.context
         WHERE sandbox_status IN ('creating', 'ready') $view$;
    -- A row as the servers read it.
    EXECUTE 'CREATE VIEW sandglass.context_detail' || v_invoker || $view$ AS
        SELECT c.id, c.tenant_id, c.conversation_id, c.path_id, p.parent_path_id, c.sandbox_id,
               c.template_id, c.sandbox_status, sandglass.ms(c.created_at) AS created_ms,
               sandglass.ms(c.last_used_at) AS used_ms, sandglass.ms(c.expires_at) AS expires_ms,
               sandglass.ms(c.terminated_at) AS terminated_ms,
               (date_part('epoch', c.ttl) * 1000)::bigint AS ttl_ms, c.error_message,
               c.resource_usage ->> 'cpu_us' AS cpu_us,
               c.resource_usage ->> 'memory_mib_ms' AS memory_mib_ms,
               c.resource_usage ->> 'bytes_in' AS bytes_in,
               c.resource_usage ->> 'bytes_out' AS bytes_out,
               c.resource_usage ->> 'executions' AS executions,
               c.resource_usage ->> 'sandboxes' AS sandboxes,
               c.node_id, n.url AS node_url, sandglass.node_alive(n.seen_at) AS node_alive
          FROM sandglass.context c
          LEFT JOIN sandglass.path p ON p.tenant_id = c.tenant_id
               AND p.conversation_id = c.conversation_id AND p.path_id = c.path_id
          LEFT JOIN sandglass.node n ON n.id = c.node_id $view$;
END
$do$;

-- ---- one call of a server is one of these --------------------------------------------------------
-- Each has the tenant's rows only, by its own conditions: a role may be exempt from the policies.
-- What is returned begins with an outcome, as contexts_postgres.c reads it.

CREATE FUNCTION sandglass.within_limits(p_tenant text, p_conversation text, p_except text,
    p_tenant_limit bigint, p_conversation_limit bigint)
RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_tenant bigint;
    v_conversation bigint;
BEGIN
    SELECT count(*), count(*) FILTER (WHERE c.conversation_id = p_conversation)
      INTO v_tenant, v_conversation
      FROM sandglass.context c
     WHERE c.tenant_id = p_tenant AND c.sandbox_status IN ('creating', 'ready')
       AND (c.sandbox_status = 'creating' OR c.sandbox_id IS NOT NULL)
       AND c.id IS DISTINCT FROM p_except;
    RETURN CASE WHEN v_tenant >= p_tenant_limit THEN 'tenant_limit'
                WHEN v_conversation >= p_conversation_limit THEN 'conversation_limit' END;
END
$$;

CREATE FUNCTION sandglass.note_path(p_tenant text, p_conversation text, p_path text)
RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO sandglass.path (tenant_id, conversation_id, path_id, created_at)
    VALUES (p_tenant, p_conversation, p_path, sandglass.clock())
    ON CONFLICT (tenant_id, conversation_id, path_id) DO NOTHING
$$;

-- Ends an active one. p_error NULL: 'terminated', else 'error'.
CREATE FUNCTION sandglass.end_context(p_id text, p_error text)
RETURNS void LANGUAGE sql VOLATILE AS $$
    UPDATE sandglass.context c
       SET sandbox_status = CASE WHEN p_error IS NULL THEN 'terminated' ELSE 'error' END,
           terminated_at = sandglass.clock(), error_message = p_error
     WHERE c.id = p_id AND c.sandbox_status IN ('creating', 'ready')
$$;

CREATE FUNCTION sandglass.claim_context(p_tenant text, p_conversation text, p_path text, p_id text,
    p_node text, p_template text, p_in_use text, p_ttl_ms bigint, p_default_ttl_ms bigint,
    p_lease_ms bigint, p_tenant_limit bigint, p_conversation_limit bigint)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_ttl interval := sandglass.from_ms(nullif(p_ttl_ms, 0));
    v_locked boolean := false;
    v_id text;
    v_old sandglass.context;
    v_now timestamptz;
BEGIN
    LOOP
        v_now := sandglass.clock();
        UPDATE sandglass.context c
           SET last_used_at = v_now, expires_at = v_now + coalesce(v_ttl, c.ttl),
               ttl = coalesce(v_ttl, c.ttl)
         WHERE c.tenant_id = p_tenant AND c.conversation_id = p_conversation
           AND c.path_id = p_path AND c.sandbox_status = 'ready'
           AND (c.expires_at > v_now OR c.sandbox_id = p_in_use)
        RETURNING c.id INTO v_id;
        IF FOUND THEN
            -- A use that a crash of the database forgets does no harm: it is not waited for.
            PERFORM set_config('synchronous_commit', 'off', true);
            RETURN QUERY SELECT 'found', d FROM sandglass.context_detail d
                          WHERE d.tenant_id = p_tenant AND d.id = v_id;
            RETURN;
        END IF;
        IF NOT v_locked THEN
            PERFORM sandglass.lock_tenant(p_tenant);
            v_locked := true;
        END IF;
        v_now := sandglass.clock();
        SELECT * INTO v_old FROM sandglass.context c
         WHERE c.tenant_id = p_tenant AND c.conversation_id = p_conversation
           AND c.path_id = p_path AND c.sandbox_status IN ('creating', 'ready')
           FOR UPDATE;
        -- If it was being made until a moment ago, it is found now.
        EXIT WHEN v_old.sandbox_status IS DISTINCT FROM 'ready'
               OR (v_old.expires_at <= v_now AND (v_old.sandbox_id = p_in_use) IS NOT TRUE);
    END LOOP;

    IF v_old.sandbox_status = 'creating' AND v_old.node_id <> p_node
            AND v_old.last_used_at + sandglass.from_ms(p_lease_ms) > v_now THEN
        RETURN QUERY SELECT 'busy', d FROM sandglass.context_detail d
                      WHERE d.tenant_id = p_tenant AND d.id = v_old.id;
        RETURN;
    END IF;

    outcome := sandglass.within_limits(p_tenant, p_conversation, v_old.id, p_tenant_limit,
                                       p_conversation_limit);
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF v_old.id IS NOT NULL THEN
        PERFORM sandglass.end_context(v_old.id, CASE WHEN v_old.sandbox_status = 'creating'
            THEN 'its server did not finish making its sandbox' END);
    END IF;
    PERFORM sandglass.note_path(p_tenant, p_conversation, p_path);
    INSERT INTO sandglass.context (id, tenant_id, conversation_id, path_id, sandbox_status,
        created_at, last_used_at, expires_at, ttl, template_id, node_id)
    SELECT p_id, p_tenant, p_conversation, p_path, 'creating', v_now, v_now, v_now + t.ttl, t.ttl,
           p_template, p_node
      FROM (SELECT coalesce(v_ttl, sandglass.from_ms(p_default_ttl_ms)) AS ttl) t;
    RETURN QUERY SELECT 'new', d FROM sandglass.context_detail d
                  WHERE d.tenant_id = p_tenant AND d.id = p_id;
END
$$;

CREATE FUNCTION sandglass.replace_context(p_tenant text, p_id text, p_sandbox text, p_node text,
    p_tenant_limit bigint, p_conversation_limit bigint)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_old sandglass.context;
    v_now timestamptz;
BEGIN
    PERFORM sandglass.lock_tenant(p_tenant);
    SELECT * INTO v_old FROM sandglass.context c
     WHERE c.tenant_id = p_tenant AND c.id = p_id AND c.sandbox_status = 'ready'
       AND coalesce(c.sandbox_id, '') = p_sandbox
       FOR UPDATE;
    IF v_old.id IS NULL THEN
        outcome := 'stale';
        RETURN NEXT;
        RETURN;
    END IF;
    IF v_old.sandbox_id IS NULL THEN
        outcome := sandglass.within_limits(p_tenant, v_old.conversation_id, p_id, p_tenant_limit,
                                           p_conversation_limit);
        IF outcome IS NOT NULL THEN
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    v_now := sandglass.clock();
    UPDATE sandglass.context c
       SET sandbox_status = 'creating', sandbox_id = NULL, node_id = p_node, last_used_at = v_now,
           expires_at = v_now + c.ttl
     WHERE c.id = p_id;
    RETURN QUERY SELECT 'ok', d FROM sandglass.context_detail d
                  WHERE d.tenant_id = p_tenant AND d.id = p_id;
END
$$;

CREATE FUNCTION sandglass.settle_context(p_tenant text, p_id text, p_node text, p_sandbox text,
    p_error text)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now timestamptz := sandglass.clock();
BEGIN
    UPDATE sandglass.context c
       SET sandbox_status = CASE WHEN p_sandbox IS NULL THEN 'error' ELSE 'ready' END,
           sandbox_id = p_sandbox, last_used_at = v_now, expires_at = v_now + c.ttl,
           terminated_at = CASE WHEN p_sandbox IS NULL THEN v_now END,
           error_message = CASE WHEN p_sandbox IS NULL THEN p_error END
     WHERE c.tenant_id = p_tenant AND c.id = p_id AND c.node_id = p_node
       AND c.sandbox_status = 'creating';
    IF NOT FOUND THEN
        outcome := 'stale';
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY SELECT 'ok', d FROM sandglass.context_detail d
                  WHERE d.tenant_id = p_tenant AND d.id = p_id;
END
$$;

CREATE FUNCTION sandglass.touch_context(p_tenant text, p_id text, p_ttl_ms bigint)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now timestamptz := sandglass.clock();
    v_ttl interval := sandglass.from_ms(nullif(p_ttl_ms, 0));
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE sandglass.context c
       SET last_used_at = v_now, expires_at = v_now + coalesce(v_ttl, c.ttl),
           ttl = coalesce(v_ttl, c.ttl)
     WHERE c.tenant_id = p_tenant AND c.id = p_id AND c.sandbox_status = 'ready';
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY SELECT 'ok', d FROM sandglass.context_detail d
                  WHERE d.tenant_id = p_tenant AND d.id = p_id;
END
$$;

CREATE FUNCTION sandglass.lose_sandbox(p_tenant text, p_id text, p_sandbox text)
RETURNS TABLE (outcome text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE sandglass.context c SET sandbox_id = NULL
     WHERE c.tenant_id = p_tenant AND c.id = p_id AND c.sandbox_id = p_sandbox
       AND c.sandbox_status = 'ready';
    outcome := 'ok';
    RETURN NEXT;
END
$$;

CREATE FUNCTION sandglass.terminate_context(p_tenant text, p_id text)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM sandglass.end_context(c.id, NULL) FROM sandglass.context c
      WHERE c.tenant_id = p_tenant AND c.id = p_id;
    RETURN QUERY SELECT 'ok', d FROM sandglass.context_detail d
                  WHERE d.tenant_id = p_tenant AND d.id = p_id;
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN NEXT;
    END IF;
END
$$;

CREATE FUNCTION sandglass.branch_path(p_tenant text, p_conversation text, p_from text, p_to text)
RETURNS TABLE (outcome text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM sandglass.lock_tenant(p_tenant); -- nobody claims it meanwhile
    outcome := 'active';
    IF NOT EXISTS (SELECT FROM sandglass.context c
                    WHERE c.tenant_id = p_tenant AND c.conversation_id = p_conversation
                      AND c.path_id = p_to AND c.sandbox_status IN ('creating', 'ready')) THEN
        PERFORM sandglass.note_path(p_tenant, p_conversation, p_from);
        PERFORM sandglass.note_path(p_tenant, p_conversation, p_to);
        UPDATE sandglass.path p SET parent_path_id = p_from, merged_into = NULL
         WHERE p.tenant_id = p_tenant AND p.conversation_id = p_conversation AND p.path_id = p_to;
        outcome := 'ok';
    END IF;
    RETURN NEXT;
END
$$;

CREATE FUNCTION sandglass.merge_path(p_tenant text, p_conversation text, p_source text,
    p_target text)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_id text;
BEGIN
    PERFORM sandglass.lock_tenant(p_tenant);
    PERFORM sandglass.note_path(p_tenant, p_conversation, p_source);
    PERFORM sandglass.note_path(p_tenant, p_conversation, p_target);
    UPDATE sandglass.path p SET merged_into = p_target
     WHERE p.tenant_id = p_tenant AND p.conversation_id = p_conversation AND p.path_id = p_source;
    SELECT c.id INTO v_id FROM sandglass.context c
     WHERE c.tenant_id = p_tenant AND c.conversation_id = p_conversation AND c.path_id = p_source
       AND c.sandbox_status IN ('creating', 'ready')
       FOR UPDATE;
    PERFORM sandglass.end_context(v_id, NULL);
    RETURN QUERY SELECT 'ok', d FROM sandglass.context_detail d
                  WHERE d.tenant_id = p_tenant AND d.id = v_id;
END
$$;

-- p_tenant NULL: of all. Those that another server ends at this moment are left to it.
CREATE FUNCTION sandglass.expire_contexts(p_node text, p_tenant text, p_lease_ms bigint,
    p_limit bigint)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now timestamptz := sandglass.clock();
    v_ids text[];
BEGIN
    SELECT array_agg(due.id) INTO v_ids FROM (
        SELECT c.id FROM sandglass.context c
         WHERE ((c.sandbox_status = 'ready' AND c.expires_at <= v_now)
                OR (c.sandbox_status = 'creating'
                    AND c.last_used_at <= v_now - sandglass.from_ms(p_lease_ms)))
           AND (p_tenant IS NULL OR c.tenant_id = p_tenant)
           AND (c.node_id = p_node OR NOT EXISTS (SELECT FROM sandglass.node n
                 WHERE n.id = c.node_id AND sandglass.node_alive(n.seen_at)))
         ORDER BY c.expires_at
         LIMIT p_limit
           FOR UPDATE SKIP LOCKED) due;
    PERFORM sandglass.end_context(c.id, CASE WHEN c.sandbox_status = 'creating'
            THEN 'its server did not finish making its sandbox' END)
       FROM sandglass.context c WHERE c.id = ANY (v_ids);
    RETURN QUERY SELECT 'ok', d FROM sandglass.context_detail d WHERE d.id = ANY (v_ids);
END
$$;

CREATE FUNCTION sandglass.recover_contexts(p_node text, p_limit bigint)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_ids text[];
BEGIN
    SELECT array_agg(c.id) INTO v_ids FROM sandglass.context c
     WHERE c.sandbox_status = 'creating' AND c.node_id = p_node;
    PERFORM sandglass.end_context(id, 'its server did not finish making its sandbox')
       FROM unnest(v_ids) id;
    RETURN QUERY SELECT 'ok', d FROM sandglass.context_detail d WHERE d.id = ANY (v_ids)
                  LIMIT p_limit;
END
$$;

CREATE FUNCTION sandglass.node_seen(p_node text, p_url text)
RETURNS TABLE (outcome text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO sandglass.node (id, url, seen_at) VALUES (p_node, p_url, sandglass.clock())
    ON CONFLICT (id) DO UPDATE SET url = excluded.url, seen_at = excluded.seen_at;
    outcome := 'ok';
    RETURN NEXT;
END
$$;

-- ---- usage --------------------------------------------------------------------------------------

-- As much as every reader of JSON can say; beyond that it stays.
CREATE FUNCTION sandglass.bounded(n numeric) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT least(n, 9007199254740991)::bigint $$;

CREATE FUNCTION sandglass.usage_sum(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_object_agg(k, sandglass.bounded(coalesce((a ->> k)::numeric, 0)
                                                 + coalesce((b ->> k)::numeric, 0)))
      FROM unnest(ARRAY['cpu_us', 'memory_mib_ms', 'bytes_in', 'bytes_out', 'executions',
                        'sandboxes']) k
$$;

-- p_adds: an array of {tenant, context, cpu_us, memory_mib_ms, ...}. In the order of their keys, so
-- that two servers do not wait for each other.
CREATE FUNCTION sandglass.add_usage(p_adds jsonb)
RETURNS TABLE (outcome text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_add record;
BEGIN
    FOR v_add IN
        SELECT a ->> 'tenant' AS tenant, a ->> 'context' AS context, a AS used
          FROM jsonb_array_elements(p_adds) a
         WHERE a ->> 'context' <> '' ORDER BY a ->> 'context'
    LOOP
        UPDATE sandglass.context c
           SET resource_usage = sandglass.usage_sum(c.resource_usage, v_add.used)
         WHERE c.tenant_id = v_add.tenant AND c.id = v_add.context;
    END LOOP;
    INSERT INTO sandglass.usage_day AS u
    SELECT a ->> 'tenant', (clock_timestamp() AT TIME ZONE 'UTC')::date,
           sandglass.bounded(sum((a ->> 'cpu_us')::numeric)),
           sandglass.bounded(sum((a ->> 'memory_mib_ms')::numeric)),
           sandglass.bounded(sum((a ->> 'bytes_in')::numeric)),
           sandglass.bounded(sum((a ->> 'bytes_out')::numeric)),
           sandglass.bounded(sum((a ->> 'executions')::numeric)),
           sandglass.bounded(sum((a ->> 'sandboxes')::numeric))
      FROM jsonb_array_elements(p_adds) a
     GROUP BY 1, 2 ORDER BY 1
    ON CONFLICT (tenant_id, day) DO UPDATE
       SET cpu_us = sandglass.bounded(u.cpu_us::numeric + excluded.cpu_us),
           memory_mib_ms = sandglass.bounded(u.memory_mib_ms::numeric + excluded.memory_mib_ms),
           bytes_in = sandglass.bounded(u.bytes_in::numeric + excluded.bytes_in),
           bytes_out = sandglass.bounded(u.bytes_out::numeric + excluded.bytes_out),
           executions = sandglass.bounded(u.executions::numeric + excluded.executions),
           sandboxes = sandglass.bounded(u.sandboxes::numeric + excluded.sandboxes);
    outcome := 'ok';
    RETURN NEXT;
END
$$;
