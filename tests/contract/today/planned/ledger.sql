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
INSERT INTO "syncengine_receipts" VALUES('g-posted','ledger',1,'f83b80f287a3bb8e50271091b9e5a0d1309f1e4f4dfe9b2ceab8740593e89e30','L-g-posted',1.79585124970309948917e+09);
INSERT INTO "syncengine_receipts" VALUES('g-away','ledger',1,'ecd8849f9031bb2dcfd15226d07d75830caf908c316a80a2b89176bbcb763df5','L-g-away',1.79585124970310235029e+09);
INSERT INTO "syncengine_receipts" VALUES('g-changed','ledger',1,'602792973d92ba2b6a34c5539b9e5050d7adc2b623f5fa0aceb056572a973aab','L-g-changed',1.79585124970310378075e+09);
CREATE TABLE time (id TEXT NOT NULL, matter INTEGER NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0), note TEXT);
INSERT INTO "time" VALUES('g-posted',7,3600,'Reply to the examiner

06:34 Microsoft Word: Letter.docx (1h)');
INSERT INTO "time" VALUES('g-away',8,1800,'away

07:04 Microsoft Word: Letter.docx (30m)');
INSERT INTO "time" VALUES('g-changed',8,60,'as first posted

07:33 Microsoft Word: Letter.docx (1m)');
CREATE TRIGGER closed BEFORE INSERT ON elsewhere BEGIN SELECT RAISE(ABORT, 'closed for the year'); END;
COMMIT;
