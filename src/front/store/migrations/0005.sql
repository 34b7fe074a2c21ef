-- Tokens that are no keys: the operator's belong to no tenant. A key can be renamed.

ALTER TABLE sandglass.api_key ALTER COLUMN tenant_id DROP NOT NULL;
ALTER TABLE sandglass.api_key ADD COLUMN kind smallint NOT NULL DEFAULT 0;
ALTER TABLE sandglass.api_key ADD COLUMN named_ms bigint NOT NULL DEFAULT 0;

-- p_keys: an array of {id, tenant, tenant_name, name, hash, hint, created_ms, revoked_ms, kind,
-- named_ms}; tenant '': none. What is revoked anywhere stays so; the latest name counts.
CREATE OR REPLACE FUNCTION sandglass.share_keys(p_keys jsonb)
RETURNS TABLE (outcome text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('sandglass keys', 0));
    INSERT INTO sandglass.tenant (id, name, created_at)
    SELECT DISTINCT k ->> 'tenant', k ->> 'tenant_name', sandglass.clock()
      FROM jsonb_array_elements(p_keys) k WHERE k ->> 'tenant' <> ''
    ON CONFLICT (id) DO NOTHING;
    INSERT INTO sandglass.api_key AS a (id, tenant_id, name, hash, hint, created_at, revoked_at,
        kind, named_ms, change)
    SELECT k ->> 'id', nullif(k ->> 'tenant', ''), k ->> 'name', k ->> 'hash', k ->> 'hint',
           to_timestamp((k ->> 'created_ms')::bigint / 1000.0),
           to_timestamp(nullif((k ->> 'revoked_ms')::bigint, 0) / 1000.0),
           coalesce((k ->> 'kind')::smallint, 0), coalesce((k ->> 'named_ms')::bigint, 0),
           nextval('sandglass.key_change')
      FROM jsonb_array_elements(p_keys) k
    ON CONFLICT (id) DO UPDATE
       SET revoked_at = coalesce(a.revoked_at, excluded.revoked_at),
           name = CASE WHEN excluded.named_ms > a.named_ms THEN excluded.name ELSE a.name END,
           named_ms = greatest(a.named_ms, excluded.named_ms), change = excluded.change
     WHERE (a.revoked_at IS NULL AND excluded.revoked_at IS NOT NULL)
        OR excluded.named_ms > a.named_ms;
    outcome := 'ok';
    RETURN NEXT;
END
$$;
