-- The truth of many servers. Times are milliseconds since 1970. Texts are escaped where Postgres cannot
-- hold them, and names that are too long for an index are shortened: see text.ts.

CREATE TABLE threads (
  thread_id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL,
  title text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  archived boolean NOT NULL,
  status text NOT NULL,
  leg text,
  last_seq bigint NOT NULL,
  names jsonb -- those of its names that are shortened above, in full
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE UNIQUE INDEX threads_by_name ON threads (tenant, owner, client_id);
CREATE INDEX threads_newest ON threads (tenant, owner, updated_at DESC, thread_id DESC);
CREATE INDEX threads_active ON threads (tenant, owner, updated_at DESC, thread_id DESC)
  WHERE status <> 'idle';
CREATE INDEX threads_with_leg ON threads (updated_at) WHERE leg IS NOT NULL;

-- Append-only. The envelope and the marks are json and not jsonb: kept to the byte, readable all the same.
CREATE TABLE entries (
  thread_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  envelope json NOT NULL,
  marks json,
  body text NOT NULL,
  PRIMARY KEY (thread_id, seq)
) PARTITION BY HASH (thread_id);
CREATE TABLE entries_0 PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE entries_1 PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE entries_2 PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE entries_3 PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE entries_4 PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE entries_5 PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE entries_6 PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE entries_7 PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER 7);

CREATE TABLE facts (
  thread_id text COLLATE "C" NOT NULL,
  fact text COLLATE "C" NOT NULL,
  value text NOT NULL,
  PRIMARY KEY (thread_id, fact)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE timers (
  thread_id text COLLATE "C" NOT NULL,
  timer text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (thread_id, timer)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX timers_soonest ON timers (at);

CREATE TABLE asks (
  thread_id text COLLATE "C" NOT NULL,
  ask_id text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  run_id text NOT NULL,
  kind text NOT NULL,
  title text NOT NULL,
  tool text,
  audience text[] NOT NULL,
  state text NOT NULL,
  raised_at bigint NOT NULL,
  deadline bigint NOT NULL,
  settled_at bigint,
  names jsonb,
  PRIMARY KEY (thread_id, ask_id)
);
CREATE INDEX asks_of_tenant ON asks (tenant, deadline, ask_id, thread_id);
CREATE INDEX asks_of_owner ON asks (tenant, owner, deadline, ask_id, thread_id);
CREATE INDEX asks_pending_of_tenant ON asks (tenant, deadline, ask_id, thread_id)
  WHERE state = 'pending';
CREATE INDEX asks_pending_of_owner ON asks (tenant, owner, deadline, ask_id, thread_id)
  WHERE state = 'pending';

-- The fence outlives the lease, so that a late driver may finish if nobody else came.
CREATE TABLE leases (
  thread_id text COLLATE "C" PRIMARY KEY,
  fence bigint NOT NULL,
  holder text COLLATE "C",
  until bigint
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX leases_held ON leases (holder) WHERE holder IS NOT NULL;
CREATE SEQUENCE fences;

-- Attempts to write whose server gave them up. Whatever is left of one finds itself here and stops.
CREATE TABLE given_up (
  attempt bigint PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now()
);

-- Functions that are called from outside know their schema; the others are called by these.
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
  'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';

-- Every write begins here. After `give_up` of the same attempt nothing of it can be written any more.
CREATE FUNCTION begin_attempt(attempt_id bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(attempt_id);
  IF EXISTS (SELECT FROM given_up WHERE attempt = attempt_id) THEN
    RAISE EXCEPTION 'this attempt was given up' USING ERRCODE = 'HR001';
  END IF;
END $$;

-- Waits for what is left of an attempt, lets nothing more of it happen, and tells for each first entry
-- (`envelope`, as it was sent) its seq if it was written.
CREATE FUNCTION give_up(attempt_id bigint, firsts json) RETURNS TABLE (first_seq bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(attempt_id);
  INSERT INTO given_up (attempt) VALUES (attempt_id) ON CONFLICT DO NOTHING;
  RETURN QUERY
    SELECT (
      SELECT e.seq FROM entries e
      WHERE e.thread_id = f.thread AND e.envelope::text = f.envelope
      ORDER BY e.seq DESC LIMIT 1
    )
    FROM ROWS FROM (json_to_recordset(firsts) AS (thread text, envelope text))
      WITH ORDINALITY AS f (thread, envelope, n)
    ORDER BY f.n;
END $$;

-- What of a guard is not so: 'fence', or the place of the first fact that is another, and what is.
CREATE FUNCTION unmet(thread text, fence_given bigint, expected json)
RETURNS TABLE (refused text, place integer, actual text)
LANGUAGE plpgsql AS $$
DECLARE
  newest bigint;
BEGIN
  IF fence_given IS NOT NULL THEN
    SELECT l.fence INTO newest FROM leases l WHERE l.thread_id = thread;
    IF newest IS DISTINCT FROM fence_given THEN
      RETURN QUERY SELECT 'fence', 0, coalesce(newest, 0)::text;
      RETURN;
    END IF;
  END IF;
  IF expected IS NOT NULL THEN
    RETURN QUERY
      SELECT 'fact', e.n::integer, e.value FROM (
        SELECT g.n, g.wanted, g.negated, (
          SELECT f.value FROM facts f WHERE f.thread_id = thread AND f.fact = g.fact
        ) AS value
        FROM ROWS FROM (json_to_recordset(expected) AS (fact text, wanted text, negated boolean))
          WITH ORDINALITY AS g (fact, wanted, negated, n)
      ) e
      WHERE CASE WHEN e.negated THEN e.value = e.wanted ELSE e.value IS DISTINCT FROM e.wanted END
      ORDER BY e.n LIMIT 1;
  END IF;
END $$;

-- Transitions of several threads, each written whole or refused, in their order. One round trip.
-- Several of them wait for nobody's lock: a thread that is locked is 'busy', to be tried alone.
CREATE FUNCTION append(attempt_id bigint, transitions json)
RETURNS TABLE (first_seq bigint, refused text, place integer, actual text)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  t record;
  thread threads;
  known boolean;
  several boolean := json_array_length(transitions) > 1;
  busy text[] := '{}';
  long_names jsonb;
BEGIN
  PERFORM begin_attempt(attempt_id);
  FOR t IN
    SELECT * FROM json_to_recordset(transitions) AS (
      thread text, creates boolean, fence bigint, expected json, entries json, columns json,
      facts json, dropped_facts text[], timers json, dropped_timers text[], asks json)
  LOOP
    first_seq := NULL; refused := NULL; place := NULL; actual := NULL;
    IF several THEN
      SELECT * INTO thread FROM threads WHERE thread_id = t.thread
        AND t.thread <> ALL (busy) FOR NO KEY UPDATE SKIP LOCKED;
      IF NOT FOUND AND EXISTS (SELECT FROM threads WHERE thread_id = t.thread) THEN
        busy := busy || t.thread; -- also for those that come after it
        refused := 'busy'; RETURN NEXT; CONTINUE;
      END IF;
    ELSE
      SELECT * INTO thread FROM threads WHERE thread_id = t.thread FOR NO KEY UPDATE;
    END IF;
    known := thread.thread_id IS NOT NULL;
    -- `creates` is null unless the first entry creates a thread, and false if its row is not whole.
    IF NOT known AND t.creates IS NOT TRUE THEN
      refused := 'thread_not_found'; RETURN NEXT; CONTINUE;
    ELSIF known AND t.creates IS NOT NULL THEN
      refused := 'thread_exists'; RETURN NEXT; CONTINUE;
    END IF;
    IF t.fence IS NOT NULL OR t.expected IS NOT NULL THEN
      SELECT * INTO refused, place, actual FROM unmet(t.thread, t.fence, t.expected);
      IF refused IS NOT NULL THEN
        RETURN NEXT; CONTINUE;
      END IF;
    END IF;

    first_seq := coalesce(thread.last_seq, 0) + 1;
    IF t.columns IS NOT NULL THEN
      long_names := thread.names;
      thread := json_populate_record(thread, t.columns);
      thread.names := coalesce(long_names || thread.names, thread.names);
    END IF;
    thread.thread_id := t.thread;
    thread.last_seq := first_seq + json_array_length(t.entries) - 1;
    IF known THEN
      IF t.columns->'client_id' IS NOT NULL AND EXISTS (
        SELECT FROM threads o
        WHERE o.tenant = thread.tenant AND o.owner = thread.owner
          AND o.client_id = thread.client_id AND o.thread_id <> t.thread
      ) THEN
        first_seq := NULL; refused := 'thread_exists'; RETURN NEXT; CONTINUE;
      END IF;
      UPDATE threads SET
        tenant = thread.tenant, owner = thread.owner, client_id = thread.client_id,
        agent = thread.agent, title = thread.title, created_at = thread.created_at,
        updated_at = thread.updated_at, archived = thread.archived, status = thread.status,
        leg = thread.leg, last_seq = thread.last_seq, names = thread.names
      WHERE thread_id = t.thread;
    ELSE
      INSERT INTO threads SELECT thread.* ON CONFLICT DO NOTHING;
      IF NOT FOUND THEN
        first_seq := NULL; refused := 'thread_exists'; RETURN NEXT; CONTINUE;
      END IF;
    END IF;

    INSERT INTO entries (thread_id, seq, envelope, marks, body)
      SELECT t.thread, first_seq + e.n - 1, e.envelope::json, e.marks::json, e.body
      FROM ROWS FROM (json_to_recordset(t.entries) AS (envelope text, marks text, body text))
        WITH ORDINALITY AS e (envelope, marks, body, n);
    PERFORM apply_marks(t.thread, t.facts, t.dropped_facts, t.timers, t.dropped_timers, t.asks);
    RETURN NEXT;
  END LOOP;
END $$;

CREATE FUNCTION apply_marks(
  thread text, new_facts json, dropped_facts text[], new_timers json, dropped_timers text[],
  new_asks json) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF dropped_facts IS NOT NULL THEN
    DELETE FROM facts WHERE thread_id = thread AND fact = ANY (dropped_facts);
  END IF;
  IF new_facts IS NOT NULL THEN
    INSERT INTO facts (thread_id, fact, value)
      SELECT thread, n.fact, n.value FROM json_to_recordset(new_facts) AS n (fact text, value text)
      ON CONFLICT (thread_id, fact) DO UPDATE SET value = excluded.value;
  END IF;
  IF dropped_timers IS NOT NULL THEN
    DELETE FROM timers WHERE thread_id = thread AND timer = ANY (dropped_timers);
  END IF;
  IF new_timers IS NOT NULL THEN
    INSERT INTO timers (thread_id, timer, at)
      SELECT thread, n.timer, n.at FROM json_to_recordset(new_timers) AS n (timer text, at bigint)
      ON CONFLICT (thread_id, timer) DO UPDATE SET at = excluded.at;
  END IF;
  IF new_asks IS NOT NULL THEN
    -- The columns of an ask that was never raised have no row to go to.
    INSERT INTO asks
      SELECT r.* FROM json_array_elements(new_asks) n
      LEFT JOIN asks known ON known.thread_id = thread AND known.ask_id = n->>'ask_id',
      json_populate_record(known, n) r
      WHERE known.ask_id IS NOT NULL OR n->'raised_at' IS NOT NULL
      ON CONFLICT (thread_id, ask_id) DO UPDATE SET
        tenant = excluded.tenant, owner = excluded.owner, run_id = excluded.run_id,
        kind = excluded.kind, title = excluded.title, tool = excluded.tool,
        audience = excluded.audience, state = excluded.state, raised_at = excluded.raised_at,
        deadline = excluded.deadline, settled_at = excluded.settled_at,
        names = coalesce(asks.names || excluded.names, excluded.names);
  END IF;
END $$;

CREATE FUNCTION erase(attempt_id bigint, thread text, fence_given bigint, expected json)
RETURNS TABLE (refused text, place integer, actual text)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM begin_attempt(attempt_id);
  PERFORM FROM threads WHERE thread_id = thread FOR UPDATE;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'thread_not_found', 0, NULL;
    RETURN;
  END IF;
  RETURN QUERY SELECT * FROM unmet(thread, fence_given, expected);
  IF FOUND THEN
    RETURN;
  END IF;
  DELETE FROM entries WHERE thread_id = thread;
  DELETE FROM facts WHERE thread_id = thread;
  DELETE FROM timers WHERE thread_id = thread;
  DELETE FROM asks WHERE thread_id = thread;
  DELETE FROM leases WHERE thread_id = thread;
  DELETE FROM threads WHERE thread_id = thread;
END $$;

-- `now` is null unless a test brings its own clock.
CREATE FUNCTION claim(thread text, claimant text, ttl bigint, force boolean, now bigint)
RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  given bigint;
BEGIN
  -- In line with the appends: whoever gets a fence sees all that earlier fences have written.
  PERFORM FROM threads WHERE thread_id = thread FOR NO KEY UPDATE;
  PERFORM pg_advisory_xact_lock_shared(5209717216022); -- see raise_fences
  now := coalesce(now, now_ms());
  INSERT INTO leases AS l (thread_id, fence, holder, until)
    VALUES (thread, nextval('fences'), claimant, now + ttl)
    ON CONFLICT (thread_id) DO UPDATE
      SET fence = nextval('fences'), holder = claimant, until = now + ttl
      WHERE force OR l.holder IS NULL OR l.holder = claimant OR l.until <= now
    RETURNING l.fence INTO given;
  RETURN given;
END $$;

-- For threads that come from elsewhere: the fences to come are greater than those they have had.
CREATE FUNCTION raise_fences(beyond bigint) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(5209717216022); -- nobody is given one meanwhile
  PERFORM setval('fences', greatest(last_value, beyond)) FROM fences
    WHERE last_value < beyond OR NOT is_called;
END $$;
