PRAGMA user_version = 0;
PRAGMA application_id = 0;
BEGIN TRANSACTION;
CREATE TABLE connector_settings (
	id INTEGER NOT NULL, 
	settings TEXT NOT NULL, 
	registered DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE health_report (
	id INTEGER NOT NULL, 
	reported DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE inbox_deliveries (
	group_id TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	sink TEXT NOT NULL, 
	status TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	first DOUBLE NOT NULL, 
	last DOUBLE NOT NULL, 
	external_id TEXT, 
	message TEXT, 
	memo TEXT, 
	PRIMARY KEY (group_id, revision, sink)
);
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'ledger','accepted',1,1.79586700787679076195e+09,1.79586700789352846138e+09,'L-g-posted',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'ledger','accepted',1,1.79586700787679076195e+09,1795867007.90033,'L-g-away',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'ledger','accepted',1,1.79586700787679076195e+09,1.79586700791196727752e+09,'L-g-changed',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'archive','accepted',1,1.79586700789874720578e+09,1.79586700790463328365e+09,NULL,NULL,'{"offset":0,"length":28,"hash":"28ce728fca2928e7fca4b47179395f139635e9183360c8932ba3503f5ac59aa2"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'archive','accepted',1,1.79586700790225434307e+09,1.79586700791072630882e+09,NULL,NULL,'{"offset":28,"length":28,"hash":"e691590bbe30160b902b7a4cbc24bfdbd6fbe691cbae37fdb4b9c1a25c191161"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'away','refused',2,1.79586700791196727752e+09,1.79586700927952957152e+09,NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL);
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'archive','accepted',1,1.79586700791577172277e+09,1.79586700792290210725e+09,NULL,NULL,'{"offset":56,"length":34,"hash":"e0b932d6406759380f58c731dbf4e2581ecc1746e6f20e031ae300caaaef7c87"}');
CREATE TABLE inbox_events (
	id INTEGER NOT NULL, 
	group_id TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	kind TEXT NOT NULL, 
	sink TEXT, 
	outcome TEXT, 
	message TEXT, 
	external_id TEXT, 
	detail TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "inbox_events" VALUES(1,'g-posted',1,1.79586700785560560221e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(2,'g-untagged',1,1.795867007855606556e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(3,'g-unknown',1,1.79586700785560750967e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(4,'g-away',1,1.79586700785560870173e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(5,'g-changed',1,1.79586700785560965539e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(6,'g-untagged',1,1.79586700787225723267e+09,'verdict',NULL,'FAILURE','Assign a tag before posting.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(7,'g-unknown',1,1.79586700787679076195e+09,'verdict',NULL,'FAILURE','Matter Old name is not in the ledger.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(8,'g-posted',1,1.79586700789352846138e+09,'attempt','ledger','accepted',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(9,'g-away',1,1795867007.90033,'attempt','ledger','accepted',NULL,'L-g-away',NULL);
INSERT INTO "inbox_events" VALUES(10,'g-posted',1,1.79586700790463328365e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(11,'g-posted',1,1.79586700790463328365e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(12,'g-away',1,1.79586700791072630882e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(13,'g-changed',1,1.79586700791196727752e+09,'attempt','ledger','accepted',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(14,'g-away',1,1.79586700791879630085e+09,'attempt','away','refused','a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(15,'g-away',1,1.79586700791879630085e+09,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_events" VALUES(16,'g-changed',1,1.79586700792290210725e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(17,'g-changed',1,1.79586700792290210725e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(18,'g-untagged',1,1.7958670079341549873e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(19,'g-unknown',1,1.79586700794265174867e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(20,'g-posted',1,1.79586700794265174867e+09,'status',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(21,'g-away',1,1.79586700794265174867e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(22,'g-changed',1,1.79586700794265174867e+09,'status',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(23,'g-changed',1,1.79586700872339081764e+09,'offered',NULL,NULL,'fetch',NULL,'{"description":"as posted again","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795867008396,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":120,"firstObservedInHour":54,"source":"WT_DESKTOP","submittedDate":20261128115648396,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795867008396,"totalDurationHours":0.03,"totalDurationSecs":120,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}');
INSERT INTO "inbox_events" VALUES(24,'g-changed',1,1.79586700872926521301e+09,'conflict',NULL,'FAILURE','This time was posted before with different content, and archive and ledger took it in that form. Nothing was changed there; please ask your administrator.',NULL,'offered again with different content; archive and ledger took it as revision 1');
INSERT INTO "inbox_events" VALUES(25,'g-changed',1,1.79586700873351931572e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(26,'g-away',1,1.79586700895698928828e+09,'asked',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(27,'g-away',1,1.79586700927952957152e+09,'attempt','away','refused','a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(28,'g-away',1,1.79586700927952957152e+09,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
CREATE TABLE inbox_groups (
	group_id TEXT NOT NULL, 
	state TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	mechanism TEXT NOT NULL, 
	received DOUBLE NOT NULL, 
	offered DOUBLE NOT NULL, 
	offers INTEGER NOT NULL, 
	user_name TEXT, 
	user_keys TEXT, 
	tag TEXT, 
	body TEXT, 
	outcome TEXT, 
	message TEXT, 
	external_id TEXT, 
	decided DOUBLE, 
	waiting BOOLEAN NOT NULL, 
	answered DOUBLE, 
	asked DOUBLE, 
	note TEXT, 
	PRIMARY KEY (group_id)
);
INSERT INTO "inbox_groups" VALUES('g-posted','acknowledged',1,'8bd168b13993f8081bf9e4f2c429c3ccddf8d2e99a5d6c5ca6b7b6eae044719c','fetch',1.79586700785560560221e+09,1.79586700785560560221e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','ACME-0042','{"description":"Reply to the examiner","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-posted","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795867007418,"tags":[{"description":"Opposition against EP 1234567","externalId":"42","name":"ACME-0042","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112810,"description":"Letter.docx","durationSecs":3600,"firstObservedInHour":56,"source":"WT_DESKTOP","submittedDate":20261128115647418,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795867007418,"totalDurationHours":1.0,"totalDurationSecs":3600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','SUCCESS',NULL,'L-g-posted',1.79586700790463328365e+09,0,1.79586700794265174867e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-untagged','acknowledged',1,'0752d62da224bb712e6a8412e3d96de24228fd48de196fad75afbf15ed031639','fetch',1.795867007855606556e+09,1.795867007855606556e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]',NULL,'{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-untagged","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795867007418,"tags":[],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":600,"firstObservedInHour":46,"source":"WT_DESKTOP","submittedDate":20261128115647418,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795867007418,"totalDurationHours":0.17,"totalDurationSecs":600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Assign a tag before posting.',NULL,1.79586700787225723267e+09,0,1.7958670079341549873e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-unknown','acknowledged',1,'08fe0e30e81bd18da815e91be4f87dcb4d3934a9f3a53b3a4f6e1fd576c4478a','fetch',1.79586700785560750967e+09,1.79586700785560750967e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','Old name','{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-unknown","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795867007418,"tags":[{"description":"It is renamed","name":"Old name","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":900,"firstObservedInHour":41,"source":"WT_DESKTOP","submittedDate":20261128115647418,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795867007418,"totalDurationHours":0.25,"totalDurationSecs":900,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Matter Old name is not in the ledger.',NULL,1.79586700787679076195e+09,0,1.79586700794265174867e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-away','refused',1,'a86e337f434eee32499b794c7032ec8715921c4fb023d037d69ec6b926891e96','fetch',1.79586700785560870173e+09,1.79586700785560870173e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"away","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-away","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795867007418,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":1800,"firstObservedInHour":26,"source":"WT_DESKTOP","submittedDate":20261128115647418,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795867007418,"totalDurationHours":0.5,"totalDurationSecs":1800,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','away rejected the time: something in it does not fit there.',NULL,1.79586700927952957152e+09,1,1.79586700794265174867e+09,NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_groups" VALUES('g-changed','conflict',1,'b6a7fcc93cf2ec6b2565f122fbd08531e095e9cc5f46878e4b59097c17611fd3','fetch',1.79586700785560965539e+09,1.79586700872339081764e+09,2,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"as first posted","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795867007418,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":60,"firstObservedInHour":55,"source":"WT_DESKTOP","submittedDate":20261128115647418,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795867007418,"totalDurationHours":0.02,"totalDurationSecs":60,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','This time was posted before with different content, and archive and ledger took it in that form. Nothing was changed there; please ask your administrator.',NULL,1.79586700872926521301e+09,0,1.79586700873351931572e+09,NULL,'offered again with different content; archive and ledger took it as revision 1');
CREATE TABLE posted_time_mechanism (
	id INTEGER NOT NULL, 
	mechanism TEXT NOT NULL, 
	base_url TEXT NOT NULL, 
	callback_url TEXT, 
	key_digest TEXT, 
	registered DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "posted_time_mechanism" VALUES(1,'fetch','sandbox',NULL,NULL,1.79586700697306942938e+09);
CREATE TABLE sink_rests (
	receiver TEXT NOT NULL, 
	until DOUBLE NOT NULL, 
	PRIMARY KEY (receiver)
);
CREATE TABLE state_approvals (
	approval TEXT NOT NULL, 
	run TEXT NOT NULL, 
	"plan" TEXT, 
	at DOUBLE NOT NULL, 
	covers TEXT NOT NULL, 
	remaining TEXT NOT NULL, 
	used DOUBLE, 
	PRIMARY KEY (approval)
);
CREATE TABLE state_calls (
	id BIGINT NOT NULL, 
	run TEXT, 
	call TEXT, 
	operation TEXT, 
	at DOUBLE NOT NULL, 
	ended DOUBLE, 
	outcome TEXT, 
	message TEXT, 
	content BLOB, 
	clock TEXT, 
	since DOUBLE, 
	PRIMARY KEY (id)
);
INSERT INTO "state_calls" VALUES(1,'18890bbbec37','c1','upsertTagCategories',1.79586700633568358423e+09,1795867006.34942,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(2,'18890bbbec37','c2','upsertTags',1.795867006357986927e+09,1.79586700636481690412e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(3,'7becdde0dd23','c1','upsertTagCategories',1.79586700667208218579e+09,1.79586700668114876747e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(4,'7becdde0dd23','c2','uploadActivityTypes',1.7958670066867685318e+09,1.79586700669235777849e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(5,'7becdde0dd23','c3','upsertTags',1.7958670066976354122e+09,1.79586700670156192778e+09,'settled',NULL,NULL,NULL,NULL);
CREATE TABLE state_changes (
	call BIGINT NOT NULL, 
	position INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	file TEXT, 
	line INTEGER, 
	detail TEXT, 
	takes BOOLEAN NOT NULL, 
	outcome TEXT, 
	ended DOUBLE, 
	message TEXT, 
	PRIMARY KEY (call, position)
);
INSERT INTO "state_changes" VALUES(1,0,'category','clients','manifests/written.yaml',2,'{"body":{"fields":{"description":"Whom we work for","keywords":["client"],"label":"Clients"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(2,0,'tag','ACME-0042','manifests/written.yaml',10,'{"body":{"fields":{"category":"clients","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","acme opposition","Café","ACME-0042"],"metadata":{"Billing Group":"billable","Client":"ACME Holding"}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(3,0,'category','client-acme','manifests/clients.yaml.j2',4,'{"body":{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79586700668114876747e+09,NULL);
INSERT INTO "state_changes" VALUES(3,1,'category','client-beta-gmbh','manifests/clients.yaml.j2',4,'{"body":{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79586700668114876747e+09,NULL);
INSERT INTO "state_changes" VALUES(3,2,'category','internal','manifests/written.yaml',3,'{"body":{"fields":{"label":"Internal"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79586700668114876747e+09,NULL);
INSERT INTO "state_changes" VALUES(3,3,'category','leaves','manifests/written.yaml',4,'{"body":{"fields":{"label":"It goes with its tags"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(4,0,'activity-type','A101','manifests/written.yaml',6,'{"body":{"fields":{"description":"All that comes before","enableIfNew":true,"label":"Plan and prepare"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(4,1,'activity-type','A102','manifests/written.yaml',7,'{"body":{"fields":{"enableIfNew":false,"label":"Research","reenableIfArchived":true},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(4,2,'activity-type','A103','manifests/written.yaml',8,'{"body":{"fields":{"enableIfNew":true,"label":"Drafting"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(5,0,'tag','M-001','manifests/generated.yaml',6,'{"body":{"fields":{"category":"internal","description":"Opposition Müller (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-001 file","M-001"],"metadata":{"Client":"ACME"}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(5,1,'tag','M-002','manifests/generated.yaml',6,'{"body":{"fields":{"category":"internal","description":"Licence agreement (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-002 file","M-002"],"metadata":{"Client":"ACME"}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(5,2,'tag','M-003','manifests/generated.yaml',6,'{"body":{"fields":{"category":"internal","description":"Appeal, second instance (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-003 file","M-003"],"metadata":{"Client":"Beta GmbH"}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(5,3,'tag','Old name','manifests/written.yaml',19,'{"body":{"fields":{"category":"internal","description":"It is renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","Old name"],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(5,4,'tag','Member','manifests/written.yaml',20,'{"body":{"fields":{"category":"leaves","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["its word","Member"],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(5,5,'tag','Forgotten','manifests/written.yaml',21,'{"body":{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Forgotten"],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(5,6,'tag','Retired','manifests/written.yaml',22,'{"body":{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["long over","Retired"],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(5,7,'tag','Deleted','manifests/written.yaml',23,'{"body":{"fields":{"excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Deleted"],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
CREATE TABLE state_facts (
	id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	lineage TEXT NOT NULL, 
	base_url TEXT, 
	team TEXT, 
	owns_activity_types BOOLEAN NOT NULL, 
	revision TEXT, 
	ancestors TEXT, 
	generation TEXT, 
	sources TEXT, 
	pruned DOUBLE, 
	PRIMARY KEY (id)
);
INSERT INTO "state_facts" VALUES(1,11,'abd3a10e-f26d-44bc-bd0f-ca296b54fe6a','sandbox','Sandbox',0,NULL,NULL,'236b3b36-16ff-4b48-8135-6b9100e1c3cb','{"matters.csv": 4}',NULL);
CREATE TABLE state_lock (
	id INTEGER NOT NULL, 
	epoch BIGINT NOT NULL, 
	lock_id TEXT, 
	holder TEXT, 
	acquired DOUBLE, 
	expires DOUBLE, 
	released DOUBLE, 
	beats BIGINT DEFAULT '0' NOT NULL, 
	seconds DOUBLE, 
	PRIMARY KEY (id)
);
INSERT INTO "state_lock" VALUES(1,2,'0879e8f8','{"boot":"000000000000000000000000000000000000","command":"apply","host":"desk","job_url":null,"pid":4205,"reason":null,"space":"pid:[4026531836]","start":"4678709","user":"robin"}',1.79586700659292244908e+09,1.79586706659292268759e+09,1.79586700685946345328e+09,0,60.0);
INSERT INTO "state_lock" VALUES(2,3,'5958c66c','{"boot":"000000000000000000000000000000000000","command":"time retry","host":"desk","job_url":null,"pid":4205,"reason":null,"space":"pid:[4026531836]","start":"4678709","user":"robin"}',1.79586700904766035083e+09,1.79586706904766058925e+09,1.79586700928203582766e+09,0,60.0);
CREATE TABLE state_marks (
	id INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	verb TEXT NOT NULL, 
	change TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "state_marks" VALUES(1,1.79586700631417775153e+09,'marked','62a35153-c177-4fe0-97af-f0d13edfc9f9');
INSERT INTO "state_marks" VALUES(2,1.79586700651903581615e+09,'marked','033ad63f-2dc2-401a-8e0c-c12709ed0dc3');
INSERT INTO "state_marks" VALUES(3,1.79586700664829564087e+09,'marked','9e2ca734-099d-4cbb-9f4c-b4efa84f3504');
INSERT INTO "state_marks" VALUES(4,1.79586700685416197778e+09,'marked','03d6c6c3-07d9-437e-9992-4525c75d4f7e');
CREATE TABLE state_paths (
	operation TEXT NOT NULL, 
	path TEXT NOT NULL, 
	PRIMARY KEY (operation, path)
);
CREATE TABLE state_quarantine (
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	until DOUBLE, 
	at DOUBLE NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (kind, name)
);
CREATE TABLE state_refusals (
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	times INTEGER NOT NULL, 
	since DOUBLE NOT NULL, 
	at DOUBLE NOT NULL, 
	message TEXT NOT NULL, 
	content TEXT NOT NULL, 
	run TEXT, 
	pending TEXT, 
	settled TEXT, 
	PRIMARY KEY (kind, name)
);
CREATE TABLE state_rows (
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	category TEXT, 
	status TEXT NOT NULL, 
	doubtful BOOLEAN NOT NULL, 
	confirmed BOOLEAN NOT NULL, 
	server_id TEXT, 
	protect BOOLEAN NOT NULL, 
	former TEXT, 
	file TEXT, 
	line INTEGER, 
	data_file TEXT, 
	data_row INTEGER, 
	run TEXT, 
	"plan" TEXT, 
	body TEXT NOT NULL, 
	PRIMARY KEY (kind, name)
);
INSERT INTO "state_rows" VALUES('category','clients',NULL,'active',0,1,'dcc95938-2d9b-4115-aff5-bda6229f755d',0,NULL,'manifests/written.yaml',2,NULL,NULL,'18890bbbec37','94541611963a','{"fields":{"description":"Whom we work for","keywords":["client"],"label":"Clients"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','ACME-0042','category/clients','active',0,1,NULL,0,NULL,'manifests/written.yaml',10,NULL,NULL,'18890bbbec37','94541611963a','{"fields":{"category":"clients","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","acme opposition","Café","ACME-0042"],"metadata":{"Billing Group":"billable","Client":"ACME Holding"}}');
INSERT INTO "state_rows" VALUES('category','client-acme',NULL,'active',0,1,'d74b7669-eff5-49be-b918-18b4d3a0be47',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',2,'7becdde0dd23','fdb52d23baf4','{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-beta-gmbh',NULL,'active',0,1,'544f9e94-47c8-46bb-be05-e4108241b5de',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',4,'7becdde0dd23','fdb52d23baf4','{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','internal',NULL,'active',0,1,'e6b0be87-fe9d-49bc-8189-c4c4dd0371da',0,NULL,'manifests/written.yaml',3,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"label":"Internal"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','leaves',NULL,'active',0,1,'99b0987f-29b0-4ab5-9083-1841054b39ab',0,NULL,'manifests/written.yaml',4,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"label":"It goes with its tags"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A101',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',6,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"description":"All that comes before","enableIfNew":true,"label":"Plan and prepare"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A102',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"enableIfNew":false,"label":"Research","reenableIfArchived":true},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A103',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',8,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"enableIfNew":true,"label":"Drafting"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','M-001','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',2,'7becdde0dd23','fdb52d23baf4','{"fields":{"category":"internal","description":"Opposition Müller (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-001 file","M-001"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-002','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'7becdde0dd23','fdb52d23baf4','{"fields":{"category":"internal","description":"Licence agreement (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-002 file","M-002"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-003','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',4,'7becdde0dd23','fdb52d23baf4','{"fields":{"category":"internal","description":"Appeal, second instance (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-003 file","M-003"],"metadata":{"Client":"Beta GmbH"}}');
INSERT INTO "state_rows" VALUES('tag','Old name','category/internal','active',0,1,NULL,1,NULL,'manifests/written.yaml',19,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"category":"internal","description":"It is renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","Old name"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Member','category/leaves','active',0,1,NULL,0,NULL,'manifests/written.yaml',20,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"category":"leaves","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["its word","Member"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Forgotten','category/internal','active',0,1,NULL,0,NULL,'manifests/written.yaml',21,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Forgotten"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Retired','category/internal','active',0,1,NULL,0,NULL,'manifests/written.yaml',22,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["long over","Retired"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Deleted',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',23,NULL,NULL,'7becdde0dd23','fdb52d23baf4','{"fields":{"excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Deleted"],"metadata":{}}');
CREATE TABLE state_runs (
	id TEXT NOT NULL, 
	started DOUBLE NOT NULL, 
	ended DOUBLE, 
	command TEXT NOT NULL, 
	"plan" TEXT, 
	host TEXT NOT NULL, 
	who TEXT NOT NULL, 
	job_url TEXT, 
	revision TEXT, 
	clean BOOLEAN, 
	outcome TEXT, 
	counts TEXT, 
	actor TEXT, 
	approvals TEXT, 
	units BOOLEAN, 
	reviewed TEXT, 
	limits TEXT, 
	exit_code INTEGER, 
	reason TEXT, 
	undoes TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "state_runs" VALUES('18890bbbec37',1.79586700632739830018e+09,1.79586700637088966369e+09,'apply','94541611963a','desk','robin',NULL,NULL,NULL,'complete','{"applied":2,"failed":0,"skipped":0,"unknown":0}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_runs" VALUES('7becdde0dd23',1.79586700665926218031e+09,1.79586700670779061319e+09,'apply','fdb52d23baf4','desk','robin',NULL,NULL,NULL,'complete','{"applied":15,"failed":0,"skipped":0,"unknown":0}',NULL,NULL,1,NULL,'{"activityTypes":"25%","fields":"50%","keywords":"50%","metadata":"50%","tags":"25%"}',NULL,NULL,NULL);
CREATE TABLE state_sessions (
	id TEXT NOT NULL, 
	run TEXT, 
	opened DOUBLE NOT NULL, 
	closed DOUBLE, 
	PRIMARY KEY (id)
);
CREATE TABLE state_undone (
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	run TEXT NOT NULL, 
	made TEXT NOT NULL, 
	undone_by TEXT NOT NULL, 
	PRIMARY KEY (kind, name, run)
);
CREATE INDEX ix_inbox_groups_waiting ON inbox_groups (waiting);
CREATE INDEX ix_inbox_groups_offered ON inbox_groups (offered);
CREATE INDEX ix_inbox_groups_state ON inbox_groups (state);
CREATE INDEX ix_inbox_groups_asked ON inbox_groups (asked);
CREATE INDEX inbox_deliveries_sink ON inbox_deliveries (sink, last);
CREATE INDEX ix_inbox_events_group_id ON inbox_events (group_id);
CREATE INDEX ix_state_rows_category ON state_rows (category);
CREATE INDEX state_calls_run ON state_calls (run, call);
CREATE INDEX ix_state_calls_at ON state_calls (at);
CREATE INDEX state_changes_key ON state_changes (kind, name);
CREATE INDEX ix_state_runs_started ON state_runs (started);
CREATE INDEX ix_state_runs_plan ON state_runs ("plan");
CREATE INDEX state_rows_moving ON state_rows (kind) WHERE former IS NOT NULL;
CREATE INDEX state_calls_in_flight ON state_calls (id) WHERE outcome IS NULL;
CREATE INDEX state_calls_landing ON state_calls (id) WHERE content IS NOT NULL;
CREATE INDEX state_changes_takes ON state_changes (call) WHERE takes;
COMMIT;
