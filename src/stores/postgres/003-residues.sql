-- What is left of erased threads, for audits: see core/audit-residue.ts.
CREATE TABLE residues (
  id text COLLATE "C" PRIMARY KEY,
  content text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);

-- Beside the one without a residue, which servers of before may still call.
CREATE FUNCTION erase(
  attempt_id bigint, thread text, fence_given bigint, expected json, residue_id text, residue text)
RETURNS TABLE (refused text, place integer, actual text)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  RETURN QUERY SELECT * FROM erase(attempt_id, thread, fence_given, expected);
  IF NOT FOUND AND residue_id IS NOT NULL THEN
    INSERT INTO residues (id, content) VALUES (residue_id, residue) ON CONFLICT DO NOTHING;
  END IF;
END $$;
