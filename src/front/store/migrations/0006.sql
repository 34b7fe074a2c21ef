
-- The public keys that tokens of sandboxes are checked with: each server tells its own, and any
-- server may be asked for all of them.
CREATE TABLE sandglass.identity_key (
    kid   text COLLATE "C" NOT NULL PRIMARY KEY,
    key   jsonb NOT NULL,
    until bigint NOT NULL
);
ALTER TABLE sandglass.identity_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandglass.identity_key FORCE ROW LEVEL SECURITY;
CREATE POLICY server ON sandglass.identity_key TO CURRENT_USER
    USING (current_setting('sandglass.tenant', true) = '*');

-- p_keys: an array of {kid, x, y, until}. Answers with all that are published now.
CREATE FUNCTION sandglass.share_identity_keys(p_keys jsonb)
RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := date_part('epoch', clock_timestamp())::bigint;
BEGIN
    DELETE FROM sandglass.identity_key k WHERE k.until < v_now;
    INSERT INTO sandglass.identity_key (kid, key, until)
    SELECT a ->> 'kid', a, (a ->> 'until')::bigint
      FROM jsonb_array_elements(p_keys) a ORDER BY 1
    ON CONFLICT (kid) DO NOTHING;
    RETURN (SELECT coalesce(jsonb_agg(k.key), '[]'::jsonb) FROM sandglass.identity_key k);
END
$$;
