-- What a context's sandbox was asked to be, sealed by its server; sandboxes that a server has lost;
-- what is old.

ALTER TABLE sandglass.context ADD COLUMN kept text;

CREATE INDEX context_final ON sandglass.context (terminated_at)
    WHERE sandbox_status IN ('terminated', 'error');
CREATE INDEX context_of_node ON sandglass.context (node_id)
    WHERE sandbox_status = 'ready' AND sandbox_id IS NOT NULL;
CREATE INDEX path_by_seq ON sandglass.path (seq);
CREATE INDEX path_of_conversation ON sandglass.path (tenant_id, conversation_id, created_at);
CREATE INDEX usage_day_by_day ON sandglass.usage_day (day);
CREATE INDEX usage_talk_by_day ON sandglass.usage_talk (day);

-- It goes when the context ends, however that comes about.
CREATE FUNCTION sandglass.drop_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.kept := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER context_over BEFORE UPDATE OF sandbox_status ON sandglass.context FOR EACH ROW
    WHEN (NEW.sandbox_status IN ('terminated', 'error') AND NEW.kept IS NOT NULL)
    EXECUTE FUNCTION sandglass.drop_kept();

-- p_kept NULL: what is kept stays.
DROP FUNCTION sandglass.settle_context(text, text, text, text, text);
CREATE FUNCTION sandglass.settle_context(p_tenant text, p_id text, p_node text, p_sandbox text,
    p_error text, p_kept text)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now timestamptz := sandglass.clock();
BEGIN
    UPDATE sandglass.context c
       SET sandbox_status = CASE WHEN p_sandbox IS NULL THEN 'error' ELSE 'ready' END,
           sandbox_id = p_sandbox, last_used_at = v_now, expires_at = v_now + c.ttl,
           terminated_at = CASE WHEN p_sandbox IS NULL THEN v_now END,
           error_message = CASE WHEN p_sandbox IS NULL THEN p_error END,
           kept = coalesce(p_kept, c.kept)
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

-- p_alive: the sandboxes that this server has. Rows of others say which one they had.
DROP FUNCTION sandglass.recover_contexts(text, bigint);
CREATE FUNCTION sandglass.recover_contexts(p_node text, p_alive text[], p_limit bigint)
RETURNS TABLE (outcome text, detail sandglass.context_detail) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_ids text[];
BEGIN
    SELECT array_agg(c.id) INTO v_ids FROM sandglass.context c
     WHERE c.sandbox_status = 'creating' AND c.node_id = p_node;
    PERFORM sandglass.end_context(id, 'its server did not finish making its sandbox')
       FROM unnest(v_ids) id;
    RETURN QUERY SELECT 'ok', d FROM sandglass.context_detail d WHERE d.id = ANY (v_ids)
                  LIMIT p_limit / 2;
    RETURN QUERY SELECT 'ok', d FROM sandglass.context_detail d
                  WHERE d.node_id = p_node AND d.sandbox_status = 'ready'
                    AND d.sandbox_id IS NOT NULL AND d.sandbox_id <> ALL (p_alive)
                  LIMIT p_limit / 2;
    UPDATE sandglass.context c SET sandbox_id = NULL
     WHERE c.node_id = p_node AND c.sandbox_status = 'ready' AND c.sandbox_id IS NOT NULL
       AND c.sandbox_id <> ALL (p_alive);
END
$$;

-- A keep of 0: nothing of that kind is too old. Of each kind at most p_limit rows are looked at, of
-- paths those that follow p_after.
CREATE FUNCTION sandglass.forget_old(p_context_keep_ms bigint, p_usage_keep_ms bigint,
    p_after bigint, p_limit bigint)
RETURNS TABLE (gone bigint, next_path bigint, more boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_before timestamptz := sandglass.clock() - sandglass.from_ms(p_context_keep_ms);
    v_day date := ((sandglass.clock() - sandglass.from_ms(p_usage_keep_ms))
                   AT TIME ZONE 'UTC')::date;
    v_last bigint;
    v_n bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    gone := 0;
    next_path := 0;
    more := false;
    IF p_context_keep_ms > 0 THEN
        DELETE FROM sandglass.context WHERE id IN (
            SELECT c.id FROM sandglass.context c
             WHERE c.sandbox_status IN ('terminated', 'error') AND c.terminated_at < v_before
             ORDER BY c.terminated_at LIMIT p_limit FOR UPDATE SKIP LOCKED);
        GET DIAGNOSTICS v_n = ROW_COUNT;
        gone := gone + v_n;
        more := more OR v_n >= p_limit;
        DELETE FROM sandglass.node n WHERE n.seen_at < v_before;
        SELECT max(w.seq), count(*) INTO v_last, v_n FROM (
            SELECT p.seq FROM sandglass.path p WHERE p.seq > p_after
             ORDER BY p.seq LIMIT p_limit) w;
        IF v_n >= p_limit THEN
            next_path := v_last;
            more := true;
        END IF;
        DELETE FROM sandglass.path p
         WHERE p.seq > p_after AND p.seq <= v_last AND p.created_at < v_before
           AND NOT EXISTS (SELECT FROM sandglass.context c WHERE c.tenant_id = p.tenant_id
                              AND c.conversation_id = p.conversation_id)
           AND NOT EXISTS (SELECT FROM sandglass.path q WHERE q.tenant_id = p.tenant_id
                              AND q.conversation_id = p.conversation_id
                              AND q.created_at >= v_before);
        GET DIAGNOSTICS v_n = ROW_COUNT;
        gone := gone + v_n;
    END IF;
    IF p_usage_keep_ms > 0 THEN
        DELETE FROM sandglass.usage_day WHERE (tenant_id, day) IN (
            SELECT u.tenant_id, u.day FROM sandglass.usage_day u WHERE u.day < v_day
             ORDER BY u.day LIMIT p_limit FOR UPDATE SKIP LOCKED);
        GET DIAGNOSTICS v_n = ROW_COUNT;
        gone := gone + v_n;
        more := more OR v_n >= p_limit;
        DELETE FROM sandglass.usage_talk WHERE (tenant_id, conversation_id, day) IN (
            SELECT u.tenant_id, u.conversation_id, u.day FROM sandglass.usage_talk u
             WHERE u.day < v_day ORDER BY u.day LIMIT p_limit FOR UPDATE SKIP LOCKED);
        GET DIAGNOSTICS v_n = ROW_COUNT;
        gone := gone + v_n;
        more := more OR v_n >= p_limit;
    END IF;
    RETURN NEXT;
END
$$;
