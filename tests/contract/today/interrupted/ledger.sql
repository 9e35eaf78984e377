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
INSERT INTO "syncengine_receipts" VALUES('g-posted','ledger',1,'614deaf7b38f35efa993bd6694741bc550960913cc6e19b44aafbf4d99ef4555','L-g-posted',1.79536899560970187187e+09);
INSERT INTO "syncengine_receipts" VALUES('g-away','ledger',1,'bc711341133c5e0a3d0442207a89e6d10a73820574a765d92117e67c7a20df9b','L-g-away',1.79536899569290399553e+09);
INSERT INTO "syncengine_receipts" VALUES('g-changed','ledger',1,'303d334230cb3e0c392e59f98318916013376e2d2cb5d001627fb70befc26996','L-g-changed',1.79536899576866221424e+09);
CREATE TABLE time (id TEXT NOT NULL, matter INTEGER NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0), note TEXT);
INSERT INTO "time" VALUES('g-posted',7,3600,'Reply to the examiner

16:36 Microsoft Word: Letter.docx (1h)

Worked: 1h');
INSERT INTO "time" VALUES('g-away',8,1800,'away

17:06 Microsoft Word: Letter.docx (30m)

Worked: 30m');
INSERT INTO "time" VALUES('g-changed',8,60,'as first posted

17:35 Microsoft Word: Letter.docx (1m)

Worked: 1m');
CREATE TRIGGER closed BEFORE INSERT ON elsewhere BEGIN SELECT RAISE(ABORT, 'closed for the year'); END;
COMMIT;
