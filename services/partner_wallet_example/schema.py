"""The tables of the books."""

SCHEMA = """
-- The accounts. What one has is what it was opened with, and all that moved since.
CREATE TABLE IF NOT EXISTS accounts (
  account_id TEXT PRIMARY KEY,
  currency_code TEXT NOT NULL,
  opened_minor INTEGER NOT NULL,
  balance_minor INTEGER NOT NULL,
  blocked INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Every call that was decided, for ever; but no refused credit, which may be taken later.
CREATE TABLE IF NOT EXISTS movements (
  number INTEGER PRIMARY KEY,
  transaction_id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,             -- Debit, Credit, Rollback
  content BLOB NOT NULL,          -- SHA-256 of the request: is a repeat the same call?
  account_id TEXT NOT NULL,
  currency_code TEXT NOT NULL,
  amount_minor INTEGER NOT NULL,  -- what was asked for
  moved_minor INTEGER NOT NULL,   -- what the balance changed by
  table_id TEXT NOT NULL,
  round_id TEXT NOT NULL,
  reason INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  refusal INTEGER NOT NULL,
  time_us INTEGER NOT NULL,       -- when the cell ordered it: its period, when books are compared
  decided_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))
) STRICT;
CREATE INDEX IF NOT EXISTS movements_of_rounds ON movements (account_id, round_id);
CREATE INDEX IF NOT EXISTS movements_of_periods ON movements (currency_code, time_us);

-- Debits that have no effect, now and for ever: also those that never came.
CREATE TABLE IF NOT EXISTS cancelled_debits (
  debit_id TEXT PRIMARY KEY,
  rollback_id TEXT NOT NULL
) STRICT;

-- Debits that a credit has named.
CREATE TABLE IF NOT EXISTS credited_debits (
  debit_id TEXT NOT NULL,
  credit_id TEXT NOT NULL,
  PRIMARY KEY (debit_id, credit_id)
) STRICT;
"""
