PRAGMA user_version = 0;
PRAGMA application_id = 0;
BEGIN TRANSACTION;
CREATE TABLE elsewhere (id TEXT);
CREATE TABLE matter (id INTEGER PRIMARY KEY, no TEXT UNIQUE);
INSERT INTO "matter" VALUES(7,'ACME-0042');
INSERT INTO "matter" VALUES(8,'M-001');
CREATE TABLE syncengine_receipts (
	group_id VARCHAR(255) NOT NULL, 
	sink VARCHAR(63) NOT NULL, 
	revision INTEGER NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	external_id TEXT, 
	delivered DOUBLE NOT NULL, 
	PRIMARY KEY (group_id, sink)
);
INSERT INTO "syncengine_receipts" VALUES('g-posted','ledger',1,'d3be77b4963ffbc4cb82a21b5ad5c37c14c1df572989000ffcabc8cd2ad0a7b1','L-g-posted',1.7958301563472621441e+09);
INSERT INTO "syncengine_receipts" VALUES('g-away','ledger',1,'c95a5f462ee868977f850a97fa4f67b33f48be18828fb382267175768283c1de','L-g-away',1.79583015634726572036e+09);
INSERT INTO "syncengine_receipts" VALUES('g-changed','ledger',1,'a6face1de1a5ad559bb69b2c9f6e7123abc782e041b1d7592923105633b7935b','L-g-changed',1.79583015634726738925e+09);
CREATE TABLE time (id TEXT NOT NULL, matter INTEGER NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0), note TEXT);
INSERT INTO "time" VALUES('g-posted',7,3600,'Reply to the examiner

00:42 Microsoft Word: Letter.docx (1h)');
INSERT INTO "time" VALUES('g-away',8,1800,'away

01:12 Microsoft Word: Letter.docx (30m)');
INSERT INTO "time" VALUES('g-changed',8,60,'as first posted

01:41 Microsoft Word: Letter.docx (1m)');
CREATE TRIGGER closed BEFORE INSERT ON elsewhere BEGIN SELECT RAISE(ABORT, 'closed for the year'); END;
COMMIT;
