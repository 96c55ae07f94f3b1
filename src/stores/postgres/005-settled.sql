-- What was settled is read with the latest first, each tray by an index of its own.

ALTER TABLE inbox ADD COLUMN settled_at bigint;
UPDATE inbox i SET settled_at = coalesce(a.settled_at, a.deadline)
  FROM asks a WHERE a.thread_id = i.thread_id AND a.ask_id = i.ask_id AND a.state <> 'pending';
CREATE INDEX inbox_latest ON inbox (tenant, tray, settled_at, ask_id, thread_id)
  WHERE settled_at IS NOT NULL;

CREATE OR REPLACE FUNCTION list_ask() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM inbox WHERE thread_id = OLD.thread_id AND ask_id = OLD.ask_id;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO inbox (thread_id, ask_id, tenant, tray, state, deadline, settled_at)
      SELECT NEW.thread_id, NEW.ask_id, NEW.tenant, tray, NEW.state, NEW.deadline,
        CASE WHEN NEW.state <> 'pending' THEN coalesce(NEW.settled_at, NEW.deadline) END
      FROM trays_of(NEW) tray;
  END IF;
  RETURN NULL;
END $$;
