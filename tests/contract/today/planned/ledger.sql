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
INSERT INTO "syncengine_receipts" VALUES('g-posted','ledger',1,'5d21c7fa49dc40137002dcd3b6a9e56d06dee2e59235f38328e26a240a6d932a','L-g-posted',1.79586547342741274834e+09);
INSERT INTO "syncengine_receipts" VALUES('g-away','ledger',1,'dcdef30cb2d29a6edcd91fdc00c061b3beb54ad28d7431bb94befbc9440e5b11','L-g-away',1.79586547350279879566e+09);
INSERT INTO "syncengine_receipts" VALUES('g-changed','ledger',1,'c1ec724a34e219c754b7ed7d76cacdbaf4cd41f2e7a803734cd2993786a42bee','L-g-changed',1.795865473562823534e+09);
CREATE TABLE time (id TEXT NOT NULL, matter INTEGER NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0), note TEXT);
INSERT INTO "time" VALUES('g-posted',7,3600,'Reply to the examiner

10:31 Microsoft Word: Letter.docx (1h)');
INSERT INTO "time" VALUES('g-away',8,1800,'away

11:01 Microsoft Word: Letter.docx (30m)');
INSERT INTO "time" VALUES('g-changed',8,60,'as first posted

11:30 Microsoft Word: Letter.docx (1m)');
CREATE TRIGGER closed BEFORE INSERT ON elsewhere BEGIN SELECT RAISE(ABORT, 'closed for the year'); END;
COMMIT;
