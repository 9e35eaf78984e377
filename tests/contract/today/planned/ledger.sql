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
INSERT INTO "syncengine_receipts" VALUES('g-posted','ledger',1,'23ff0a9be0f88b27dad249488558cff4d5682db456b660265b98458014bc20d8','L-g-posted',1.79545369183562564851e+09);
INSERT INTO "syncengine_receipts" VALUES('g-away','ledger',1,'9faa960fe9aa377a51b00b97e1f223f41b73233fe7d440404a773035bda86c55','L-g-away',1.79545369183563089375e+09);
INSERT INTO "syncengine_receipts" VALUES('g-changed','ledger',1,'543f2ac30a3b3fabe97ddc75c4ec68fac1e2fd37c1aaf0cb9c5ded73e0ba03a5','L-g-changed',1.79545369183563375474e+09);
CREATE TABLE time (id TEXT NOT NULL, matter INTEGER NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0), note TEXT);
INSERT INTO "time" VALUES('g-posted',7,3600,'Reply to the examiner

16:08 Microsoft Word: Letter.docx (1h)

Worked: 1h');
INSERT INTO "time" VALUES('g-away',8,1800,'away

16:38 Microsoft Word: Letter.docx (30m)

Worked: 30m');
INSERT INTO "time" VALUES('g-changed',8,60,'as first posted

17:07 Microsoft Word: Letter.docx (1m)

Worked: 1m');
CREATE TRIGGER closed BEFORE INSERT ON elsewhere BEGIN SELECT RAISE(ABORT, 'closed for the year'); END;
COMMIT;
