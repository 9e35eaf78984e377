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
INSERT INTO "syncengine_receipts" VALUES('g-posted','ledger',1,'8bd168b13993f8081bf9e4f2c429c3ccddf8d2e99a5d6c5ca6b7b6eae044719c','L-g-posted',1.79586700788420629499e+09);
INSERT INTO "syncengine_receipts" VALUES('g-away','ledger',1,'a86e337f434eee32499b794c7032ec8715921c4fb023d037d69ec6b926891e96','L-g-away',1.7958670078950481415e+09);
INSERT INTO "syncengine_receipts" VALUES('g-changed','ledger',1,'b6a7fcc93cf2ec6b2565f122fbd08531e095e9cc5f46878e4b59097c17611fd3','L-g-changed',1.79586700790727162363e+09);
CREATE TABLE time (id TEXT NOT NULL, matter INTEGER NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0), note TEXT);
INSERT INTO "time" VALUES('g-posted',7,3600,'Reply to the examiner

10:56 Microsoft Word: Letter.docx (1h)');
INSERT INTO "time" VALUES('g-away',8,1800,'away

11:26 Microsoft Word: Letter.docx (30m)');
INSERT INTO "time" VALUES('g-changed',8,60,'as first posted

11:55 Microsoft Word: Letter.docx (1m)');
CREATE TRIGGER closed BEFORE INSERT ON elsewhere BEGIN SELECT RAISE(ABORT, 'closed for the year'); END;
COMMIT;
