-- Keys that all servers on this database know: a hash each, never a key. Servers copy them into
-- files of their own (front/store/keys_shared.c), and ask for what has changed by the number that is
-- given out under a lock: whoever has seen one has seen all below it.

CREATE SEQUENCE sandglass.key_change;

CREATE TABLE sandglass.tenant (
    id         text COLLATE "C" PRIMARY KEY,
    name       text NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE sandglass.api_key (
    id         text COLLATE "C" PRIMARY KEY,
    tenant_id  text COLLATE "C" NOT NULL REFERENCES sandglass.tenant (id),
    name       text NOT NULL,
    hash       text NOT NULL, -- SHA-256 of the key, in hexadecimal digits
    hint       text NOT NULL, -- its first and last characters
    created_at timestamptz NOT NULL,
    revoked_at timestamptz,
    change     bigint NOT NULL
);
CREATE INDEX api_key_change ON sandglass.api_key (change);
CREATE INDEX api_key_tenant ON sandglass.api_key (tenant_id);

ALTER TABLE sandglass.tenant ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandglass.tenant FORCE ROW LEVEL SECURITY;
ALTER TABLE sandglass.api_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandglass.api_key FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sandglass.tenant
    USING (id = current_setting('sandglass.tenant', true));
CREATE POLICY tenant ON sandglass.api_key
    USING (tenant_id = current_setting('sandglass.tenant', true));
CREATE POLICY server ON sandglass.tenant TO CURRENT_USER
    USING (current_setting('sandglass.tenant', true) = '*');
CREATE POLICY server ON sandglass.api_key TO CURRENT_USER
    USING (current_setting('sandglass.tenant', true) = '*');

-- p_keys: an array of {id, tenant, tenant_name, name, hash, hint, created_ms, revoked_ms}. What is
-- revoked anywhere stays so.
CREATE FUNCTION sandglass.share_keys(p_keys jsonb)
RETURNS TABLE (outcome text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('sandglass keys', 0));
    INSERT INTO sandglass.tenant (id, name, created_at)
    SELECT DISTINCT k ->> 'tenant', k ->> 'tenant_name', sandglass.clock()
      FROM jsonb_array_elements(p_keys) k
    ON CONFLICT (id) DO NOTHING;
    INSERT INTO sandglass.api_key AS a (id, tenant_id, name, hash, hint, created_at, revoked_at,
        change)
    SELECT k ->> 'id', k ->> 'tenant', k ->> 'name', k ->> 'hash', k ->> 'hint',
           to_timestamp((k ->> 'created_ms')::bigint / 1000.0),
           to_timestamp(nullif((k ->> 'revoked_ms')::bigint, 0) / 1000.0),
           nextval('sandglass.key_change')
      FROM jsonb_array_elements(p_keys) k
    ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at, change = excluded.change
     WHERE a.revoked_at IS NULL AND excluded.revoked_at IS NOT NULL;
    outcome := 'ok';
    RETURN NEXT;
END
$$;
