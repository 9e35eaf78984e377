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
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'ledger','accepted',1,1.79586547342257547375e+09,1.79586547349882459647e+09,'L-g-posted',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'ledger','accepted',1,1.79586547342257547375e+09,1.79586547354385185244e+09,'L-g-away',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'ledger','accepted',1,1.79586547342257547375e+09,1.79586547356595134733e+09,'L-g-changed',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'archive','accepted',1,1.79586547353679370879e+09,1.79586547355415058133e+09,NULL,NULL,'{"offset":0,"length":28,"hash":"28ce728fca2928e7fca4b47179395f139635e9183360c8932ba3503f5ac59aa2"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'archive','accepted',1,1.79586547355415058133e+09,1.79586547355838751791e+09,NULL,NULL,'{"offset":28,"length":28,"hash":"e691590bbe30160b902b7a4cbc24bfdbd6fbe691cbae37fdb4b9c1a25c191161"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'away','refused',2,1.79586547356345605855e+09,1.79586547780225920674e+09,NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL);
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'archive','accepted',1,1795865473.57418,1.79586547359834265711e+09,NULL,NULL,'{"offset":56,"length":34,"hash":"e0b932d6406759380f58c731dbf4e2581ecc1746e6f20e031ae300caaaef7c87"}');
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
INSERT INTO "inbox_events" VALUES(1,'g-posted',1,1.79586547337519550327e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(2,'g-untagged',1,1.79586547337519645693e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(3,'g-unknown',1,1.7958654733751974106e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(4,'g-away',1,1.79586547337519860266e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(5,'g-changed',1,1.79586547337519955632e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(6,'g-untagged',1,1.79586547339893698688e+09,'verdict',NULL,'FAILURE','Assign a tag before posting.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(7,'g-unknown',1,1.79586547342257547375e+09,'verdict',NULL,'FAILURE','Matter Old name is not in the ledger.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(8,'g-posted',1,1.79586547349882459647e+09,'attempt','ledger','accepted',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(9,'g-away',1,1.79586547354385185244e+09,'attempt','ledger','accepted',NULL,'L-g-away',NULL);
INSERT INTO "inbox_events" VALUES(10,'g-posted',1,1.79586547355415058133e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(11,'g-posted',1,1.79586547355415058133e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(12,'g-away',1,1.79586547355838751791e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(13,'g-changed',1,1.79586547356595134733e+09,'attempt','ledger','accepted',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(14,'g-away',1,1795865473.57418,'attempt','away','refused','a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(15,'g-away',1,1795865473.57418,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_events" VALUES(16,'g-changed',1,1.79586547359834265711e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(17,'g-changed',1,1.79586547359834265711e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(18,'g-untagged',1,1.79586547362295031547e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(19,'g-unknown',1,1.79586547364231324201e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(20,'g-posted',1,1.79586547364231324201e+09,'status',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(21,'g-away',1,1.79586547364231324201e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(22,'g-changed',1,1.79586547364231324201e+09,'status',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(23,'g-changed',1,1.79586547705090665821e+09,'offered',NULL,NULL,'fetch',NULL,'{"description":"as posted again","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795865476395,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":120,"firstObservedInHour":29,"source":"WT_DESKTOP","submittedDate":20261128113116395,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795865476395,"totalDurationHours":0.03,"totalDurationSecs":120,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}');
INSERT INTO "inbox_events" VALUES(24,'g-changed',1,1.79586547705544924738e+09,'conflict',NULL,'FAILURE','This time was posted before with different content, and archive and ledger took it in that form. Nothing was changed there; please ask your administrator.',NULL,'offered again with different content; archive and ledger took it as revision 1');
INSERT INTO "inbox_events" VALUES(25,'g-changed',1,1.79586547705807709693e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(26,'g-away',1,1.795865477398955822e+09,'asked',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(27,'g-away',1,1.79586547780225920674e+09,'attempt','away','refused','a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(28,'g-away',1,1.79586547780225920674e+09,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
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
INSERT INTO "inbox_groups" VALUES('g-posted','acknowledged',1,'5d21c7fa49dc40137002dcd3b6a9e56d06dee2e59235f38328e26a240a6d932a','fetch',1.79586547337519550327e+09,1.79586547337519550327e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','ACME-0042','{"description":"Reply to the examiner","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-posted","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795865472326,"tags":[{"description":"Opposition against EP 1234567","externalId":"42","name":"ACME-0042","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112810,"description":"Letter.docx","durationSecs":3600,"firstObservedInHour":31,"source":"WT_DESKTOP","submittedDate":20261128113112326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795865472326,"totalDurationHours":1.0,"totalDurationSecs":3600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','SUCCESS',NULL,'L-g-posted',1.79586547355415058133e+09,0,1.79586547364231324201e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-untagged','acknowledged',1,'9c5c01ed86b84de1042390dfe98ae4303b307f1d180d49f139e695a13789a7e6','fetch',1.79586547337519645693e+09,1.79586547337519645693e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]',NULL,'{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-untagged","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795865472326,"tags":[],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":600,"firstObservedInHour":21,"source":"WT_DESKTOP","submittedDate":20261128113112326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795865472326,"totalDurationHours":0.17,"totalDurationSecs":600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Assign a tag before posting.',NULL,1.79586547339893698688e+09,0,1.79586547362295031547e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-unknown','acknowledged',1,'dfa706ec9206da768c48bca260bbbc2fa0dfe57b18b38d8aee91ce543fa54ec8','fetch',1.7958654733751974106e+09,1.7958654733751974106e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','Old name','{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-unknown","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795865472326,"tags":[{"description":"It is renamed","name":"Old name","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":900,"firstObservedInHour":16,"source":"WT_DESKTOP","submittedDate":20261128113112326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795865472326,"totalDurationHours":0.25,"totalDurationSecs":900,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Matter Old name is not in the ledger.',NULL,1.79586547342257547375e+09,0,1.79586547364231324201e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-away','refused',1,'dcdef30cb2d29a6edcd91fdc00c061b3beb54ad28d7431bb94befbc9440e5b11','fetch',1.79586547337519860266e+09,1.79586547337519860266e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"away","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-away","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795865472326,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":1800,"firstObservedInHour":1,"source":"WT_DESKTOP","submittedDate":20261128113112326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795865472326,"totalDurationHours":0.5,"totalDurationSecs":1800,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','away rejected the time: something in it does not fit there.',NULL,1.79586547780225920674e+09,1,1.79586547364231324201e+09,NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_groups" VALUES('g-changed','conflict',1,'c1ec724a34e219c754b7ed7d76cacdbaf4cd41f2e7a803734cd2993786a42bee','fetch',1.79586547337519955632e+09,1.79586547705090665821e+09,2,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"as first posted","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795865472326,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112811,"description":"Letter.docx","durationSecs":60,"firstObservedInHour":30,"source":"WT_DESKTOP","submittedDate":20261128113112326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795865472326,"totalDurationHours":0.02,"totalDurationSecs":60,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','This time was posted before with different content, and archive and ledger took it in that form. Nothing was changed there; please ask your administrator.',NULL,1.79586547705544924738e+09,0,1.79586547705807709693e+09,NULL,'offered again with different content; archive and ledger took it as revision 1');
CREATE TABLE posted_time_mechanism (
	id INTEGER NOT NULL, 
	mechanism TEXT NOT NULL, 
	base_url TEXT NOT NULL, 
	callback_url TEXT, 
	key_digest TEXT, 
	registered DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "posted_time_mechanism" VALUES(1,'fetch','sandbox',NULL,NULL,1.79586547031897830967e+09);
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
INSERT INTO "state_calls" VALUES(1,'7929640cfe99','c1','upsertTagCategories',1.79586546917498302454e+09,1795865469.19256,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(2,'7929640cfe99','c2','upsertTags',1.79586546921460747713e+09,1.79586546922703146934e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(3,'814ec8bd3017','c1','upsertTagCategories',1.7958654697528021335e+09,1.79586546977729439732e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(4,'814ec8bd3017','c2','uploadActivityTypes',1.79586546980280089376e+09,1.79586546981892347337e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(5,'814ec8bd3017','c3','upsertTags',1795865469.83895,1.79586546985524654392e+09,'settled',NULL,NULL,NULL,NULL);
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
INSERT INTO "state_changes" VALUES(3,0,'category','client-acme','manifests/clients.yaml.j2',4,'{"body":{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79586546977729439732e+09,NULL);
INSERT INTO "state_changes" VALUES(3,1,'category','client-beta-gmbh','manifests/clients.yaml.j2',4,'{"body":{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79586546977729439732e+09,NULL);
INSERT INTO "state_changes" VALUES(3,2,'category','internal','manifests/written.yaml',3,'{"body":{"fields":{"label":"Internal"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79586546977729439732e+09,NULL);
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
INSERT INTO "state_facts" VALUES(1,11,'73cc2961-daf8-4ca1-b59d-c8e4a6db0b86','sandbox','Sandbox',0,NULL,NULL,'e4678e28-147d-43cc-b801-2d2d0fdc653c','{"matters.csv": 4}',NULL);
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
INSERT INTO "state_lock" VALUES(1,2,'693a8aee','{"boot":"000000000000000000000000000000000000","command":"apply","host":"desk","job_url":null,"pid":10890,"reason":null,"space":"pid:[4026531836]","start":"4524557","user":"robin"}',1795865469.58508,1.7958655295850801468e+09,1.7958654701101033688e+09,0,60.0);
INSERT INTO "state_lock" VALUES(2,3,'68396d39','{"boot":"000000000000000000000000000000000000","command":"time retry","host":"desk","job_url":null,"pid":10890,"reason":null,"space":"pid:[4026531836]","start":"4524557","user":"robin"}',1.79586547748265600204e+09,1.79586553748265624046e+09,1.79586547781510114671e+09,0,60.0);
CREATE TABLE state_marks (
	id INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	verb TEXT NOT NULL, 
	change TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "state_marks" VALUES(1,1.79586546909730577475e+09,'marked','95f7e8de-a39d-43c9-b23a-7e8709ff9149');
INSERT INTO "state_marks" VALUES(2,1.79586546939915513987e+09,'marked','25ca1977-65fa-4ff7-8593-596098b5d3de');
INSERT INTO "state_marks" VALUES(3,1.7958654696913764477e+09,'marked','95d7735c-93e2-49f3-8d77-270851a83a87');
INSERT INTO "state_marks" VALUES(4,1.79586547009902906422e+09,'marked','988f499f-a2eb-44ca-94a1-36207e13b51c');
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
INSERT INTO "state_rows" VALUES('category','clients',NULL,'active',0,1,'5c434743-351a-4a7b-b2c0-23111b766ea7',0,NULL,'manifests/written.yaml',2,NULL,NULL,'7929640cfe99','302380f53f54','{"fields":{"description":"Whom we work for","keywords":["client"],"label":"Clients"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','ACME-0042','category/clients','active',0,1,NULL,0,NULL,'manifests/written.yaml',10,NULL,NULL,'7929640cfe99','302380f53f54','{"fields":{"category":"clients","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","acme opposition","Café","ACME-0042"],"metadata":{"Billing Group":"billable","Client":"ACME Holding"}}');
INSERT INTO "state_rows" VALUES('category','client-acme',NULL,'active',0,1,'fbdfe24e-363a-482c-9812-f9ef91ffe822',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',2,'814ec8bd3017','77a7c5237fbb','{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-beta-gmbh',NULL,'active',0,1,'4119387c-4d6c-468d-8626-b539b7c68f57',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',4,'814ec8bd3017','77a7c5237fbb','{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','internal',NULL,'active',0,1,'a19ddb13-3aa8-4adc-a287-aa17e995c61d',0,NULL,'manifests/written.yaml',3,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"label":"Internal"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','leaves',NULL,'active',0,1,'db793450-e4d5-4574-b8b1-6e1b4b0ae937',0,NULL,'manifests/written.yaml',4,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"label":"It goes with its tags"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A101',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',6,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"description":"All that comes before","enableIfNew":true,"label":"Plan and prepare"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A102',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"enableIfNew":false,"label":"Research","reenableIfArchived":true},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A103',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',8,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"enableIfNew":true,"label":"Drafting"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','M-001','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',2,'814ec8bd3017','77a7c5237fbb','{"fields":{"category":"internal","description":"Opposition Müller (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-001 file","M-001"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-002','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'814ec8bd3017','77a7c5237fbb','{"fields":{"category":"internal","description":"Licence agreement (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-002 file","M-002"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-003','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',4,'814ec8bd3017','77a7c5237fbb','{"fields":{"category":"internal","description":"Appeal, second instance (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-003 file","M-003"],"metadata":{"Client":"Beta GmbH"}}');
INSERT INTO "state_rows" VALUES('tag','Old name','category/internal','active',0,1,NULL,1,NULL,'manifests/written.yaml',19,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"category":"internal","description":"It is renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","Old name"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Member','category/leaves','active',0,1,NULL,0,NULL,'manifests/written.yaml',20,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"category":"leaves","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["its word","Member"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Forgotten','category/internal','active',0,1,NULL,0,NULL,'manifests/written.yaml',21,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Forgotten"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Retired','category/internal','active',0,1,NULL,0,NULL,'manifests/written.yaml',22,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["long over","Retired"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Deleted',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',23,NULL,NULL,'814ec8bd3017','77a7c5237fbb','{"fields":{"excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Deleted"],"metadata":{}}');
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
INSERT INTO "state_runs" VALUES('7929640cfe99',1.79586546912768125526e+09,1.79586546924309539792e+09,'apply','302380f53f54','desk','robin',NULL,NULL,NULL,'complete','{"applied":2,"failed":0,"skipped":0,"unknown":0}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_runs" VALUES('814ec8bd3017',1.79586546970301127439e+09,1.79586546987737417221e+09,'apply','77a7c5237fbb','desk','robin',NULL,NULL,NULL,'complete','{"applied":15,"failed":0,"skipped":0,"unknown":0}',NULL,NULL,1,NULL,'{"activityTypes":"25%","fields":"50%","keywords":"50%","metadata":"50%","tags":"25%"}',NULL,NULL,NULL);
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
CREATE INDEX ix_inbox_groups_offered ON inbox_groups (offered);
CREATE INDEX ix_inbox_groups_waiting ON inbox_groups (waiting);
CREATE INDEX ix_inbox_groups_asked ON inbox_groups (asked);
CREATE INDEX ix_inbox_groups_state ON inbox_groups (state);
CREATE INDEX inbox_deliveries_sink ON inbox_deliveries (sink, last);
CREATE INDEX ix_inbox_events_group_id ON inbox_events (group_id);
CREATE INDEX ix_state_rows_category ON state_rows (category);
CREATE INDEX state_calls_run ON state_calls (run, call);
CREATE INDEX ix_state_calls_at ON state_calls (at);
CREATE INDEX state_changes_key ON state_changes (kind, name);
CREATE INDEX ix_state_runs_plan ON state_runs ("plan");
CREATE INDEX ix_state_runs_started ON state_runs (started);
CREATE INDEX state_rows_moving ON state_rows (kind) WHERE former IS NOT NULL;
CREATE INDEX state_calls_in_flight ON state_calls (id) WHERE outcome IS NULL;
CREATE INDEX state_calls_landing ON state_calls (id) WHERE content IS NOT NULL;
CREATE INDEX state_changes_takes ON state_changes (call) WHERE takes;
COMMIT;
