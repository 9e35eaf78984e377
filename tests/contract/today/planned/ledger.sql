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
INSERT INTO "syncengine_receipts" VALUES('g-posted','ledger',1,'361d47328f39fb7afd3638520a3e32a7c8578cb16a4f0aa0d97f00ade3fe0285','L-g-posted',1.79582407604808497432e+09);
INSERT INTO "syncengine_receipts" VALUES('g-away','ledger',1,'6b8f8852a7b22885a1c00406b41da1b1d833d2729477c91e5b56d59875a456bc','L-g-away',1.79582407604808878898e+09);
INSERT INTO "syncengine_receipts" VALUES('g-changed','ledger',1,'2380fd2568279c10e1572b8bc0b5ef04519591470729a08a47bd07ff5b02c2e7','L-g-changed',1.79582407604809045787e+09);
CREATE TABLE time (id TEXT NOT NULL, matter INTEGER NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0), note TEXT);
INSERT INTO "time" VALUES('g-posted',7,3600,'Reply to the examiner

23:01 Microsoft Word: Letter.docx (1h)

Worked: 1h');
INSERT INTO "time" VALUES('g-away',8,1800,'away

23:31 Microsoft Word: Letter.docx (30m)

Worked: 30m');
INSERT INTO "time" VALUES('g-changed',8,60,'as first posted

00:00 Microsoft Word: Letter.docx (1m)

Worked: 1m');
CREATE TRIGGER closed BEFORE INSERT ON elsewhere BEGIN SELECT RAISE(ABORT, 'closed for the year'); END;
COMMIT;
