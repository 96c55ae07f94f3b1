-- Lists say which requests were approved with other arguments.

ALTER TABLE asks ADD COLUMN edited boolean;

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
        client_id = excluded.client_id, decided_by = excluded.decided_by, edited = excluded.edited,
        names = coalesce(asks.names || excluded.names, excluded.names);
  END IF;
END $$;
