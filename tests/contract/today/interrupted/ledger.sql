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
INSERT INTO "syncengine_receipts" VALUES('g-posted','ledger',1,'34563e107066281e20c4c2f94ee097b0c922b259f9be251f319a768de5291838','L-g-posted',1.79584785967909431455e+09);
INSERT INTO "syncengine_receipts" VALUES('g-away','ledger',1,'6f0ca12ce41994d49a37a14151edeb747b6e2d0b31b6567727c9ba4fc105830d','L-g-away',1.79584785967909741398e+09);
INSERT INTO "syncengine_receipts" VALUES('g-changed','ledger',1,'de1111916477505aae4f3801b8c81eef0f5e5acd8ef2042eda7456e5dcec37ef','L-g-changed',1.79584785967909836773e+09);
CREATE TABLE time (id TEXT NOT NULL, matter INTEGER NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0), note TEXT);
INSERT INTO "time" VALUES('g-posted',7,3600,'Reply to the examiner

05:37 Microsoft Word: Letter.docx (1h)');
INSERT INTO "time" VALUES('g-away',8,1800,'away

06:07 Microsoft Word: Letter.docx (30m)');
INSERT INTO "time" VALUES('g-changed',8,60,'as first posted

06:36 Microsoft Word: Letter.docx (1m)');
CREATE TRIGGER closed BEFORE INSERT ON elsewhere BEGIN SELECT RAISE(ABORT, 'closed for the year'); END;
COMMIT;
