-- Who may decide what, across threads: each open or settled ask lies in the trays of all who may see it
-- there, so that one look at an index gives a person's next page. See core/audience.ts.

ALTER TABLE asks
  ADD COLUMN agent text,
  ADD COLUMN client_id text COLLATE "C",
  ADD COLUMN decided_by text COLLATE "C";
UPDATE asks a SET agent = t.agent, client_id = t.client_id,
    names = CASE WHEN t.names ? 'clientId'
      THEN coalesce(a.names, '{}') || jsonb_build_object('clientId', t.names->'clientId')
      ELSE a.names END
  FROM threads t WHERE t.thread_id = a.thread_id;
CREATE INDEX asks_by_id ON asks (tenant, ask_id);

CREATE TABLE inbox (
  thread_id text COLLATE "C" NOT NULL,
  ask_id text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  tray text COLLATE "C" NOT NULL, -- owner:<name>, role:<name>, or by:<name> of whoever decided
  state text COLLATE "C" NOT NULL,
  deadline bigint NOT NULL,
  changed xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (thread_id, ask_id, tray)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX inbox_soonest ON inbox (tenant, tray, state, deadline, ask_id, thread_id);
CREATE INDEX inbox_changed ON inbox (tenant, tray, changed);

-- Servers of an earlier version do not say these.
CREATE FUNCTION complete_ask() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  SELECT t.agent, t.client_id INTO NEW.agent, NEW.client_id
    FROM threads t WHERE t.thread_id = NEW.thread_id;
  RETURN NEW;
END $$;
CREATE TRIGGER complete_ask BEFORE INSERT ON asks
  FOR EACH ROW WHEN (NEW.client_id IS NULL) EXECUTE FUNCTION complete_ask();

-- A client's own call is in nobody's tray, and a name too long for an index is no role's.
CREATE FUNCTION trays_of(ask asks) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN who = 'owner' THEN 'owner:' || ask.owner ELSE 'role:' || who END
    FROM unnest(CASE WHEN cardinality(ask.audience) > 0 THEN ask.audience
      ELSE '{owner,approver}'::text[] END) who
    WHERE ask.kind <> 'client_tool' AND length(who) <= 100
  UNION
  SELECT 'by:' || ask.decided_by WHERE ask.kind <> 'client_tool' AND ask.decided_by IS NOT NULL
$$;

CREATE FUNCTION list_ask() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM inbox WHERE thread_id = OLD.thread_id AND ask_id = OLD.ask_id;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO inbox (thread_id, ask_id, tenant, tray, state, deadline)
      SELECT NEW.thread_id, NEW.ask_id, NEW.tenant, tray, NEW.state, NEW.deadline
      FROM trays_of(NEW) tray;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER list_ask AFTER INSERT OR UPDATE OR DELETE ON asks
  FOR EACH ROW EXECUTE FUNCTION list_ask();

INSERT INTO inbox (thread_id, ask_id, tenant, tray, state, deadline)
  SELECT a.thread_id, a.ask_id, a.tenant, tray, a.state, a.deadline FROM asks a, trays_of(a) tray;

CREATE OR REPLACE FUNCTION apply_marks(
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
        deadline = excluded.deadline, settled_at = excluded.settled_at, agent = excluded.agent,
        client_id = excluded.client_id, decided_by = excluded.decided_by,
        names = coalesce(asks.names || excluded.names, excluded.names);
  END IF;
END $$;
