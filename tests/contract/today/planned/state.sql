PRAGMA user_version = 0;
PRAGMA application_id = 0;
BEGIN TRANSACTION;
CREATE TABLE connector_settings (
	id INTEGER NOT NULL, 
	settings TEXT NOT NULL, 
	registered DOUBLE NOT NULL, 
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
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'ledger','accepted',1,1.79536899560564708715e+09,1.79536899562785744665e+09,'L-g-posted',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'archive','accepted',1,1.79536899563558459283e+09,1.79536899564977478981e+09,NULL,NULL,'{"offset":0,"length":28,"hash":"28ce728fca2928e7fca4b47179395f139635e9183360c8932ba3503f5ac59aa2"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'ledger','accepted',1,1.79536899568337893489e+09,1.79536899570383930201e+09,'L-g-away',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'archive','accepted',1,1.79536899570778775217e+09,1.79536899572762107847e+09,NULL,NULL,'{"offset":28,"length":28,"hash":"e691590bbe30160b902b7a4cbc24bfdbd6fbe691cbae37fdb4b9c1a25c191161"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'away','refused',2,1.79536899573571634295e+09,1.79536900396980977053e+09,NULL,'a constraint does not hold (SQLITE_CONSTRAINT_TRIGGER)',NULL);
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'ledger','accepted',1,1.79536899576230955127e+09,1.79536899578745555872e+09,'L-g-changed',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'archive','accepted',1,1.79536899579177260406e+09,1.79536899580359816551e+09,NULL,NULL,'{"offset":56,"length":34,"hash":"e0b932d6406759380f58c731dbf4e2581ecc1746e6f20e031ae300caaaef7c87"}');
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
INSERT INTO "inbox_events" VALUES(1,'g-posted',1,1.7953689955792310238e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(2,'g-untagged',1,1.79536899558802127835e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(3,'g-unknown',1,1.79536899559180259701e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(4,'g-away',1,1.79536899559586691859e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(5,'g-changed',1,1.79536899559863209717e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(6,'g-posted',1,1.79536899562785744665e+09,'attempt','ledger','accepted',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(7,'g-posted',1,1.79536899564977478981e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(8,'g-posted',1,1.79536899565195012091e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(9,'g-untagged',1,1.79536899566149854654e+09,'verdict',NULL,'FAILURE','Assign a tag before posting.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(10,'g-unknown',1,1.79536899567359542841e+09,'verdict',NULL,'FAILURE','Matter Old name is not in the ledger.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(11,'g-away',1,1.79536899570383930201e+09,'attempt','ledger','accepted',NULL,'L-g-away',NULL);
INSERT INTO "inbox_events" VALUES(12,'g-away',1,1.79536899572762107847e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(13,'g-away',1,1.79536899574505448345e+09,'attempt','away','refused','a constraint does not hold (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(14,'g-away',1,1.79536899575585556028e+09,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint does not hold (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_events" VALUES(15,'g-changed',1,1.79536899578745555872e+09,'attempt','ledger','accepted',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(16,'g-changed',1,1.79536899580359816551e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(17,'g-changed',1,1.79536899580602240557e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(18,'g-posted',1,1.79536899582739424702e+09,'status',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(19,'g-untagged',1,1.79536899583903264993e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(20,'g-unknown',1,1.79536899585198044771e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(21,'g-away',1,1.79536899585769104954e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(22,'g-changed',1,1.79536899586285448073e+09,'status',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(23,'g-changed',1,1.79536900088793015478e+09,'offered',NULL,NULL,'fetch',NULL,'{"description":"as posted again","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-22","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795368997926,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112217,"description":"Letter.docx","durationSecs":120,"firstObservedInHour":34,"source":"WT_DESKTOP","submittedDate":20261122173637926,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795368997926,"totalDurationHours":0.03,"totalDurationSecs":120,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}');
INSERT INTO "inbox_events" VALUES(24,'g-changed',1,1.79536900089886856078e+09,'conflict',NULL,'FAILURE','This time was posted before with other content, and archive and ledger took it as it was then. Nothing was changed there; please ask your administrator.',NULL,'offered again with other content; archive and ledger took it as revision 1');
INSERT INTO "inbox_events" VALUES(25,'g-changed',1,1.79536900090552186967e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(26,'g-away',1,1795369002.69667,'asked',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(27,'g-away',1,1.79536900396980977053e+09,'attempt','away','refused','a constraint does not hold (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(28,'g-away',1,1.79536900397975492473e+09,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint does not hold (SQLITE_CONSTRAINT_TRIGGER)');
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
INSERT INTO "inbox_groups" VALUES('g-posted','acknowledged',1,'614deaf7b38f35efa993bd6694741bc550960913cc6e19b44aafbf4d99ef4555','fetch',1.7953689955792310238e+09,1.7953689955792310238e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','ACME-0042','{"description":"Reply to the examiner","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-posted","groupName":"","localDate":"2026-11-22","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795368992564,"tags":[{"description":"Opposition against EP 1234567","externalId":"42","name":"ACME-0042","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112216,"description":"Letter.docx","durationSecs":3600,"firstObservedInHour":36,"source":"WT_DESKTOP","submittedDate":20261122173632564,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795368992564,"totalDurationHours":1.0,"totalDurationSecs":3600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','SUCCESS',NULL,'L-g-posted',1.79536899565195012091e+09,0,1.79536899582739424702e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-untagged','acknowledged',1,'86591e69f49008f4d51ee5fe2c1b63f5d43cfe363ee12b9f3a804000da18a202','fetch',1.79536899558802127835e+09,1.79536899558802127835e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]',NULL,'{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-untagged","groupName":"","localDate":"2026-11-22","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795368992564,"tags":[],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112217,"description":"Letter.docx","durationSecs":600,"firstObservedInHour":26,"source":"WT_DESKTOP","submittedDate":20261122173632564,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795368992564,"totalDurationHours":0.17,"totalDurationSecs":600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Assign a tag before posting.',NULL,1.79536899566149854654e+09,0,1.79536899583903264993e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-unknown','acknowledged',1,'9e0ce5747d5563a7754f5aef89cabc440cf6a2734b4e7958a06de0cdc2e8a90b','fetch',1.79536899559180259701e+09,1.79536899559180259701e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','Old name','{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-unknown","groupName":"","localDate":"2026-11-22","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795368992564,"tags":[{"description":"It is renamed","name":"Old name","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112217,"description":"Letter.docx","durationSecs":900,"firstObservedInHour":21,"source":"WT_DESKTOP","submittedDate":20261122173632564,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795368992564,"totalDurationHours":0.25,"totalDurationSecs":900,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Matter Old name is not in the ledger.',NULL,1.79536899567359542841e+09,0,1.79536899585198044771e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-away','refused',1,'bc711341133c5e0a3d0442207a89e6d10a73820574a765d92117e67c7a20df9b','fetch',1.79536899559586691859e+09,1.79536899559586691859e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"away","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-away","groupName":"","localDate":"2026-11-22","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795368992564,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112217,"description":"Letter.docx","durationSecs":1800,"firstObservedInHour":6,"source":"WT_DESKTOP","submittedDate":20261122173632564,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795368992564,"totalDurationHours":0.5,"totalDurationSecs":1800,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','away rejected the time: something in it does not fit there.',NULL,1.79536900397975492473e+09,1,1.79536899585769104954e+09,NULL,'a constraint does not hold (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_groups" VALUES('g-changed','conflict',1,'303d334230cb3e0c392e59f98318916013376e2d2cb5d001627fb70befc26996','fetch',1.79536899559863209717e+09,1.79536900088793015478e+09,2,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"as first posted","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-22","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795368992564,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112217,"description":"Letter.docx","durationSecs":60,"firstObservedInHour":35,"source":"WT_DESKTOP","submittedDate":20261122173632564,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795368992564,"totalDurationHours":0.02,"totalDurationSecs":60,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','This time was posted before with other content, and archive and ledger took it as it was then. Nothing was changed there; please ask your administrator.',NULL,1.79536900089886856078e+09,0,1.79536900090552186967e+09,NULL,'offered again with other content; archive and ledger took it as revision 1');
CREATE TABLE posted_time_mechanism (
	id INTEGER NOT NULL, 
	mechanism TEXT NOT NULL, 
	base_url TEXT NOT NULL, 
	callback_url TEXT, 
	key_digest TEXT, 
	registered DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "posted_time_mechanism" VALUES(1,'fetch','sandbox',NULL,NULL,1.79536899074076414109e+09);
CREATE TABLE state_attempts (
	run TEXT NOT NULL, 
	call TEXT NOT NULL, 
	operation TEXT NOT NULL, 
	content BLOB NOT NULL, 
	clock TEXT, 
	since DOUBLE, 
	PRIMARY KEY (run, call)
);
CREATE TABLE state_facts (
	id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	lineage TEXT NOT NULL, 
	base_url TEXT, 
	team TEXT, 
	owns_activity_types BOOLEAN NOT NULL, 
	revision TEXT, 
	generation TEXT, 
	sources TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "state_facts" VALUES(1,6,'e40572c4-8c49-4e47-8fc9-33ad0913c5d8','sandbox','Sandbox',0,NULL,'d649aed8-954b-4d4e-830e-3eb9592660d1','{"matters.csv": 4}');
CREATE TABLE state_journal (
	id INTEGER NOT NULL, 
	run TEXT, 
	epoch BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	verb TEXT NOT NULL, 
	call TEXT, 
	operation TEXT, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	file TEXT, 
	line INTEGER, 
	detail TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "state_journal" VALUES(1,'5940932a278e',1,1.79536898352545356747e+09,'intended','c1','upsertTagCategories','category','clients','manifests/written.yaml',2,'{"fields":{"description":[null,"Whom we work for"],"keywords":[null,["client"]],"label":[null,"Clients"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(2,'5940932a278e',1,1.79536898355873274796e+09,'settled','c1',NULL,'category','clients',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(3,'5940932a278e',1,1.7953689835777175426e+09,'intended','c2','upsertTags','tag','ACME-0042','manifests/written.yaml',10,'{"added":["EP 1234567 B1","acme opposition","Café","ACME-0042"],"fields":{"category":[null,"clients"],"createdTimestamp":[null,1714554000000],"description":[null,"Opposition against EP 1234567"],"excludeTagNameKeyword":[null,false],"externalId":[null,"42"],"url":[null,"https://pms.example.com/matters/42"],"visibility":[null,"PRIVATE"]},"set":{"Billing Group":"billable","Client":"ACME Holding"},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(4,'5940932a278e',1,1.7953689836051011085e+09,'settled','c2',NULL,'tag','ACME-0042',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(5,'796e5cf2ede8',2,1.79536898710126471521e+09,'intended','c1','upsertTagCategories','category','client-acme','manifests/clients.yaml.j2',4,'{"fields":{"description":[null,"Matters of ACME"],"keywords":[null,["acme"]],"label":[null,"ACME"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(6,'796e5cf2ede8',2,1.79536898710126471521e+09,'intended','c1','upsertTagCategories','category','client-beta-gmbh','manifests/clients.yaml.j2',4,'{"fields":{"description":[null,"Matters of Beta GmbH"],"keywords":[null,["beta gmbh"]],"label":[null,"Beta GmbH"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(7,'796e5cf2ede8',2,1.79536898710126471521e+09,'intended','c1','upsertTagCategories','category','internal','manifests/written.yaml',3,'{"fields":{"label":[null,"Internal"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(8,'796e5cf2ede8',2,1.79536898710126471521e+09,'intended','c1','upsertTagCategories','category','leaves','manifests/written.yaml',4,'{"fields":{"label":[null,"It goes with its tags"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(9,'796e5cf2ede8',2,1.79536898714317679406e+09,'settled','c1',NULL,'category','client-acme',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(10,'796e5cf2ede8',2,1.79536898714317679406e+09,'settled','c1',NULL,'category','client-beta-gmbh',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(11,'796e5cf2ede8',2,1.79536898714317679406e+09,'settled','c1',NULL,'category','internal',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(12,'796e5cf2ede8',2,1.79536898714317679406e+09,'settled','c1',NULL,'category','leaves',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(13,'796e5cf2ede8',2,1.79536898722929382323e+09,'intended','c2','uploadActivityTypes','activity-type','A101','manifests/written.yaml',6,'{"fields":{"description":[null,"All that comes before"],"enableIfNew":[null,true],"label":[null,"Plan and prepare"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(14,'796e5cf2ede8',2,1.79536898722929382323e+09,'intended','c2','uploadActivityTypes','activity-type','A102','manifests/written.yaml',7,'{"fields":{"enableIfNew":[null,false],"label":[null,"Research"],"reenableIfArchived":[null,true]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(15,'796e5cf2ede8',2,1.79536898722929382323e+09,'intended','c2','uploadActivityTypes','activity-type','A103','manifests/written.yaml',8,'{"fields":{"enableIfNew":[null,true],"label":[null,"Drafting"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(16,'796e5cf2ede8',2,1.7953689872551395893e+09,'settled','c2',NULL,'call','c2',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(17,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','M-001','manifests/generated.yaml',6,'{"added":["m-001 file","M-001"],"fields":{"category":[null,"internal"],"description":[null,"Opposition Müller (Example and Partners)"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"set":{"Client":"ACME"},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(18,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','M-002','manifests/generated.yaml',6,'{"added":["m-002 file","M-002"],"fields":{"category":[null,"internal"],"description":[null,"Licence agreement (Example and Partners)"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"set":{"Client":"ACME"},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(19,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','M-003','manifests/generated.yaml',6,'{"added":["m-003 file","M-003"],"fields":{"category":[null,"internal"],"description":[null,"Appeal, second instance (Example and Partners)"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"set":{"Client":"Beta GmbH"},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(20,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Old name','manifests/written.yaml',19,'{"added":["office","Old name"],"fields":{"category":[null,"internal"],"description":[null,"It is renamed"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(21,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Member','manifests/written.yaml',20,'{"added":["its word","Member"],"fields":{"category":[null,"leaves"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(22,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Forgotten','manifests/written.yaml',21,'{"added":["Forgotten"],"fields":{"category":[null,"internal"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(23,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Retired','manifests/written.yaml',22,'{"added":["long over","Retired"],"fields":{"category":[null,"internal"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(24,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Deleted','manifests/written.yaml',23,'{"added":["Deleted"],"fields":{"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(25,'796e5cf2ede8',2,1.79536898731368279452e+09,'settled','c3',NULL,'call','c3',NULL,NULL,NULL);
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
INSERT INTO "state_lock" VALUES(1,2,'a5a55565','{"boot":"000000000000000000000000000000000000","command":"apply","host":"desk","job_url":null,"pid":28286,"reason":null,"space":"pid:[4026531836]","start":"1526839","user":"robin"}',1.79536898617121934897e+09,1795369046.17122,1.79536898756382489201e+09,0,60.0);
INSERT INTO "state_lock" VALUES(2,3,'f7307df3','{"boot":"000000000000000000000000000000000000","command":"time retry","host":"desk","job_url":null,"pid":28778,"reason":null,"space":"pid:[4026531836]","start":"1528568","user":"robin"}',1.79536900308060741425e+09,1.7953690630806083679e+09,1.795369003984659195e+09,0,60.0);
CREATE TABLE state_open (
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	call TEXT NOT NULL, 
	PRIMARY KEY (kind, name, call)
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
INSERT INTO "state_rows" VALUES('category','clients',NULL,'active',0,1,'a21f4ad1-d6d5-4578-9054-37dbff30177b',0,NULL,'manifests/written.yaml',2,NULL,NULL,'5940932a278e','9346f34a1a07','{"fields":{"description":"Whom we work for","keywords":["client"],"label":"Clients"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','ACME-0042','category/clients','active',0,1,NULL,0,NULL,'manifests/written.yaml',10,NULL,NULL,'5940932a278e','9346f34a1a07','{"fields":{"category":"clients","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","acme opposition","Café","ACME-0042"],"metadata":{"Billing Group":"billable","Client":"ACME Holding"}}');
INSERT INTO "state_rows" VALUES('category','client-acme',NULL,'active',0,1,'b33c54bb-e27b-4d22-9b60-4300042d818a',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',2,'796e5cf2ede8','4c38fa11405c','{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-beta-gmbh',NULL,'active',0,1,'548d2c71-6468-48ef-9baf-9f4f56c915e9',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',4,'796e5cf2ede8','4c38fa11405c','{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','internal',NULL,'active',0,1,'dbf2db4f-e0ca-44fe-9332-4c5bcd660729',0,NULL,'manifests/written.yaml',3,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"label":"Internal"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','leaves',NULL,'active',0,1,'c616a692-9ac5-414f-b7fb-d0e8ea9e9afe',0,NULL,'manifests/written.yaml',4,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"label":"It goes with its tags"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A101',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',6,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"description":"All that comes before","enableIfNew":true,"label":"Plan and prepare"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A102',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"enableIfNew":false,"label":"Research","reenableIfArchived":true},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A103',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',8,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"enableIfNew":true,"label":"Drafting"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','M-001','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',2,'796e5cf2ede8','4c38fa11405c','{"fields":{"category":"internal","description":"Opposition Müller (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-001 file","M-001"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-002','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'796e5cf2ede8','4c38fa11405c','{"fields":{"category":"internal","description":"Licence agreement (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-002 file","M-002"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-003','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',4,'796e5cf2ede8','4c38fa11405c','{"fields":{"category":"internal","description":"Appeal, second instance (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-003 file","M-003"],"metadata":{"Client":"Beta GmbH"}}');
INSERT INTO "state_rows" VALUES('tag','Old name','category/internal','active',0,1,NULL,1,NULL,'manifests/written.yaml',19,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"category":"internal","description":"It is renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","Old name"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Member','category/leaves','active',0,1,NULL,0,NULL,'manifests/written.yaml',20,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"category":"leaves","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["its word","Member"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Forgotten','category/internal','active',0,1,NULL,0,NULL,'manifests/written.yaml',21,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Forgotten"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Retired','category/internal','active',0,1,NULL,0,NULL,'manifests/written.yaml',22,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["long over","Retired"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Deleted',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',23,NULL,NULL,'796e5cf2ede8','4c38fa11405c','{"fields":{"excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Deleted"],"metadata":{}}');
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
	PRIMARY KEY (id)
);
INSERT INTO "state_runs" VALUES('5940932a278e',1.7953689833614387512e+09,1.79536898363051486016e+09,'apply','9346f34a1a07','desk','robin',NULL,NULL,NULL,'complete','{"counts":{"applied":2,"failed":0,"skipped":0,"unknown":0}}');
INSERT INTO "state_runs" VALUES('796e5cf2ede8',1.79536898699451255793e+09,1.79536898732504391672e+09,'apply','4c38fa11405c','desk','robin',NULL,NULL,NULL,'complete','{"counts":{"applied":15,"failed":0,"skipped":0,"unknown":0}}');
CREATE TABLE state_sessions (
	id TEXT NOT NULL, 
	run TEXT, 
	opened DOUBLE NOT NULL, 
	closed DOUBLE, 
	PRIMARY KEY (id)
);
CREATE INDEX ix_inbox_groups_state ON inbox_groups (state);
CREATE INDEX ix_inbox_groups_offered ON inbox_groups (offered);
CREATE INDEX ix_inbox_groups_asked ON inbox_groups (asked);
CREATE INDEX ix_inbox_groups_waiting ON inbox_groups (waiting);
CREATE INDEX inbox_deliveries_sink ON inbox_deliveries (sink, last);
CREATE INDEX ix_inbox_events_group_id ON inbox_events (group_id);
CREATE INDEX state_rows_moving ON state_rows (kind) WHERE former IS NOT NULL;
CREATE INDEX ix_state_rows_category ON state_rows (category);
CREATE INDEX state_journal_key ON state_journal (kind, name);
CREATE INDEX ix_state_journal_run ON state_journal (run);
CREATE INDEX ix_state_runs_started ON state_runs (started);
CREATE INDEX ix_state_runs_plan ON state_runs ("plan");
COMMIT;
