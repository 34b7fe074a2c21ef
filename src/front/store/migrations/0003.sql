-- What programs sent out and got, and what each conversation used on a day.

ALTER TABLE sandglass.usage_day
    ADD COLUMN egress_up bigint NOT NULL DEFAULT 0,
    ADD COLUMN egress_down bigint NOT NULL DEFAULT 0;

-- The same sums as in usage_day, one for each conversation; '' is what belongs to none.
CREATE TABLE sandglass.usage_talk (
    tenant_id       text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    day             date NOT NULL,
    cpu_us          bigint NOT NULL,
    memory_mib_ms   bigint NOT NULL,
    bytes_in        bigint NOT NULL,
    bytes_out       bigint NOT NULL,
    executions      bigint NOT NULL,
    sandboxes       bigint NOT NULL,
    egress_up       bigint NOT NULL,
    egress_down     bigint NOT NULL,
    PRIMARY KEY (tenant_id, conversation_id, day)
);
-- Of the days before nobody knows whose they were.
INSERT INTO sandglass.usage_talk
SELECT tenant_id, '', day, cpu_us, memory_mib_ms, bytes_in, bytes_out, executions, sandboxes, 0, 0
  FROM sandglass.usage_day;

ALTER TABLE sandglass.usage_talk ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandglass.usage_talk FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sandglass.usage_talk
    USING (tenant_id = current_setting('sandglass.tenant', true));
CREATE POLICY server ON sandglass.usage_talk TO CURRENT_USER
    USING (current_setting('sandglass.tenant', true) = '*');

-- The columns of before, and two at the end: others cannot be put between.
DO $do$
DECLARE
    v_invoker text := CASE WHEN current_setting('server_version_num')::integer >= 150000
        THEN ' WITH (security_invoker = true)' ELSE '' END;
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW sandglass.context_detail' || v_invoker || $view$ AS
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
               c.node_id, n.url AS node_url, sandglass.node_alive(n.seen_at) AS node_alive,
               c.resource_usage ->> 'egress_up' AS egress_up,
               c.resource_usage ->> 'egress_down' AS egress_down
          FROM sandglass.context c
          LEFT JOIN sandglass.path p ON p.tenant_id = c.tenant_id
               AND p.conversation_id = c.conversation_id AND p.path_id = c.path_id
          LEFT JOIN sandglass.node n ON n.id = c.node_id $view$;
END
$do$;

CREATE OR REPLACE FUNCTION sandglass.usage_sum(a jsonb, b jsonb)
RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_object_agg(k, sandglass.bounded(coalesce((a ->> k)::numeric, 0)
                                                 + coalesce((b ->> k)::numeric, 0)))
      FROM unnest(ARRAY['cpu_us', 'memory_mib_ms', 'bytes_in', 'bytes_out', 'executions',
                        'sandboxes', 'egress_up', 'egress_down']) k
$$;

-- p_adds: an array of {tenant, context, cpu_us, memory_mib_ms, ...}. In the order of their keys, so
-- that two servers do not wait for each other.
CREATE OR REPLACE FUNCTION sandglass.add_usage(p_adds jsonb)
RETURNS TABLE (outcome text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_today date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
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
    SELECT a ->> 'tenant', v_today,
           sandglass.bounded(sum((a ->> 'cpu_us')::numeric)),
           sandglass.bounded(sum((a ->> 'memory_mib_ms')::numeric)),
           sandglass.bounded(sum((a ->> 'bytes_in')::numeric)),
           sandglass.bounded(sum((a ->> 'bytes_out')::numeric)),
           sandglass.bounded(sum((a ->> 'executions')::numeric)),
           sandglass.bounded(sum((a ->> 'sandboxes')::numeric)),
           sandglass.bounded(sum((a ->> 'egress_up')::numeric)),
           sandglass.bounded(sum((a ->> 'egress_down')::numeric))
      FROM jsonb_array_elements(p_adds) a
     GROUP BY 1, 2 ORDER BY 1
    ON CONFLICT (tenant_id, day) DO UPDATE
       SET cpu_us = sandglass.bounded(u.cpu_us::numeric + excluded.cpu_us),
           memory_mib_ms = sandglass.bounded(u.memory_mib_ms::numeric + excluded.memory_mib_ms),
           bytes_in = sandglass.bounded(u.bytes_in::numeric + excluded.bytes_in),
           bytes_out = sandglass.bounded(u.bytes_out::numeric + excluded.bytes_out),
           executions = sandglass.bounded(u.executions::numeric + excluded.executions),
           sandboxes = sandglass.bounded(u.sandboxes::numeric + excluded.sandboxes),
           egress_up = sandglass.bounded(u.egress_up::numeric + excluded.egress_up),
           egress_down = sandglass.bounded(u.egress_down::numeric + excluded.egress_down);
    INSERT INTO sandglass.usage_talk AS u
    SELECT a ->> 'tenant', coalesce(c.conversation_id, ''), v_today,
           sandglass.bounded(sum((a ->> 'cpu_us')::numeric)),
           sandglass.bounded(sum((a ->> 'memory_mib_ms')::numeric)),
           sandglass.bounded(sum((a ->> 'bytes_in')::numeric)),
           sandglass.bounded(sum((a ->> 'bytes_out')::numeric)),
           sandglass.bounded(sum((a ->> 'executions')::numeric)),
           sandglass.bounded(sum((a ->> 'sandboxes')::numeric)),
           sandglass.bounded(sum((a ->> 'egress_up')::numeric)),
           sandglass.bounded(sum((a ->> 'egress_down')::numeric))
      FROM jsonb_array_elements(p_adds) a
      LEFT JOIN sandglass.context c ON c.tenant_id = a ->> 'tenant' AND c.id = a ->> 'context'
     GROUP BY 1, 2, 3 ORDER BY 1, 2
    ON CONFLICT (tenant_id, conversation_id, day) DO UPDATE
       SET cpu_us = sandglass.bounded(u.cpu_us::numeric + excluded.cpu_us),
           memory_mib_ms = sandglass.bounded(u.memory_mib_ms::numeric + excluded.memory_mib_ms),
           bytes_in = sandglass.bounded(u.bytes_in::numeric + excluded.bytes_in),
           bytes_out = sandglass.bounded(u.bytes_out::numeric + excluded.bytes_out),
           executions = sandglass.bounded(u.executions::numeric + excluded.executions),
           sandboxes = sandglass.bounded(u.sandboxes::numeric + excluded.sandboxes),
           egress_up = sandglass.bounded(u.egress_up::numeric + excluded.egress_up),
           egress_down = sandglass.bounded(u.egress_down::numeric + excluded.egress_down);
    outcome := 'ok';
    RETURN NEXT;
END
$$;
