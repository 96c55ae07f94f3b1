-- What was said, by the words in it: made of the entries when somebody looks for something, and by a sweep
-- in between; see catch-up.ts. Nothing is decided by it, and all of it can be made again.

-- For each word a number that is another for every owner: nobody's words are among those of others.
CREATE TABLE said (
  thread_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  keys integer[] NOT NULL,
  PRIMARY KEY (thread_id, seq)
);
CREATE INDEX said_by_key ON said USING gin (keys);

-- How far each thread has been looked at for words, and for which owner. Not there: not at all.
CREATE TABLE looked (
  thread_id text COLLATE "C" PRIMARY KEY,
  seq bigint NOT NULL,
  owner_key integer NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- The salt keeps anyone from making up words that have the numbers of another's.
DO $do$
BEGIN
  EXECUTE format($create$
    CREATE FUNCTION owner_key(tenant text, owner text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
      SELECT ('x' || left(md5(%L || length(tenant) || ':' || tenant || owner), 8))::bit(32)::integer
    $$
  $create$, gen_random_uuid());
END $do$;

-- What somebody found in the entries after `from_seq`, up to `to_seq`: for each text its seq, its time, and
-- the numbers of its words. Does nothing when another was there first. Appends do not wait for it.
CREATE FUNCTION catch_up(thread text, from_seq bigint, to_seq bigint, noted json) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  mixed integer;
BEGIN
  SELECT owner_key(t.tenant, t.owner) INTO mixed
    FROM threads t WHERE t.thread_id = thread FOR KEY SHARE;
  IF mixed IS NULL THEN
    RETURN; -- erased
  END IF;
  INSERT INTO looked AS l (thread_id, seq, owner_key) VALUES (thread, to_seq, mixed)
    ON CONFLICT (thread_id) DO UPDATE SET seq = to_seq, owner_key = mixed
      WHERE CASE WHEN l.owner_key = mixed THEN l.seq = from_seq ELSE from_seq = 0 END;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF from_seq = 0 THEN
    DELETE FROM said WHERE thread_id = thread; -- of another owner
  END IF;
  INSERT INTO said (thread_id, seq, at, keys)
    SELECT thread, s.seq, s.at, ARRAY(SELECT k # mixed FROM unnest(s.keys) k)
    FROM json_to_recordset(noted) AS s (seq bigint, at bigint, keys integer[]);
END $$;

CREATE FUNCTION unsay() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  DELETE FROM looked WHERE thread_id = OLD.thread_id;
  DELETE FROM said WHERE thread_id = OLD.thread_id;
  RETURN NULL;
END $$;
CREATE TRIGGER unsay AFTER DELETE ON threads FOR EACH ROW EXECUTE FUNCTION unsay();
