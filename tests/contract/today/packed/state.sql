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
INSERT INTO "state_facts" VALUES(1,7,'e40572c4-8c49-4e47-8fc9-33ad0913c5d8','sandbox','Sandbox',1,NULL,'112099b0-4e79-4d7a-846f-bfcf54a09a44','{"matters.csv": 4}');
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
	detail TEXT, packed BLOB, takes BOOLEAN, entry BIGINT, 
	PRIMARY KEY (id)
);
INSERT INTO "state_journal" VALUES(1,'5940932a278e',1,1.79536898352545356747e+09,'intended','c1','upsertTagCategories','category','clients','manifests/written.yaml',2,'{"fields":{"description":[null,"Whom we work for"],"keywords":[null,["client"]],"label":[null,"Clients"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(2,'5940932a278e',1,1.79536898355873274796e+09,'settled','c1',NULL,'category','clients',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(3,'5940932a278e',1,1.7953689835777175426e+09,'intended','c2','upsertTags','tag','ACME-0042','manifests/written.yaml',10,'{"added":["EP 1234567 B1","acme opposition","Café","ACME-0042"],"fields":{"category":[null,"clients"],"createdTimestamp":[null,1714554000000],"description":[null,"Opposition against EP 1234567"],"excludeTagNameKeyword":[null,false],"externalId":[null,"42"],"url":[null,"https://pms.example.com/matters/42"],"visibility":[null,"PRIVATE"]},"set":{"Billing Group":"billable","Client":"ACME Holding"},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(4,'5940932a278e',1,1.7953689836051011085e+09,'settled','c2',NULL,'tag','ACME-0042',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(5,'796e5cf2ede8',2,1.79536898710126471521e+09,'intended','c1','upsertTagCategories','category','client-acme','manifests/clients.yaml.j2',4,'{"fields":{"description":[null,"Matters of ACME"],"keywords":[null,["acme"]],"label":[null,"ACME"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(6,'796e5cf2ede8',2,1.79536898710126471521e+09,'intended','c1','upsertTagCategories','category','client-beta-gmbh','manifests/clients.yaml.j2',4,'{"fields":{"description":[null,"Matters of Beta GmbH"],"keywords":[null,["beta gmbh"]],"label":[null,"Beta GmbH"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(7,'796e5cf2ede8',2,1.79536898710126471521e+09,'intended','c1','upsertTagCategories','category','internal','manifests/written.yaml',3,'{"fields":{"label":[null,"Internal"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(8,'796e5cf2ede8',2,1.79536898710126471521e+09,'intended','c1','upsertTagCategories','category','leaves','manifests/written.yaml',4,'{"fields":{"label":[null,"It goes with its tags"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(9,'796e5cf2ede8',2,1.79536898714317679406e+09,'settled','c1',NULL,'category','client-acme',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(10,'796e5cf2ede8',2,1.79536898714317679406e+09,'settled','c1',NULL,'category','client-beta-gmbh',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(11,'796e5cf2ede8',2,1.79536898714317679406e+09,'settled','c1',NULL,'category','internal',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(12,'796e5cf2ede8',2,1.79536898714317679406e+09,'settled','c1',NULL,'category','leaves',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(13,'796e5cf2ede8',2,1.79536898722929382323e+09,'intended','c2','uploadActivityTypes','activity-type','A101','manifests/written.yaml',6,'{"fields":{"description":[null,"All that comes before"],"enableIfNew":[null,true],"label":[null,"Plan and prepare"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(14,'796e5cf2ede8',2,1.79536898722929382323e+09,'intended','c2','uploadActivityTypes','activity-type','A102','manifests/written.yaml',7,'{"fields":{"enableIfNew":[null,false],"label":[null,"Research"],"reenableIfArchived":[null,true]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(15,'796e5cf2ede8',2,1.79536898722929382323e+09,'intended','c2','uploadActivityTypes','activity-type','A103','manifests/written.yaml',8,'{"fields":{"enableIfNew":[null,true],"label":[null,"Drafting"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(16,'796e5cf2ede8',2,1.7953689872551395893e+09,'settled','c2',NULL,'call','c2',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(17,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','M-001','manifests/generated.yaml',6,'{"added":["m-001 file","M-001"],"fields":{"category":[null,"internal"],"description":[null,"Opposition Müller (Example and Partners)"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"set":{"Client":"ACME"},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(18,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','M-002','manifests/generated.yaml',6,'{"added":["m-002 file","M-002"],"fields":{"category":[null,"internal"],"description":[null,"Licence agreement (Example and Partners)"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"set":{"Client":"ACME"},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(19,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','M-003','manifests/generated.yaml',6,'{"added":["m-003 file","M-003"],"fields":{"category":[null,"internal"],"description":[null,"Appeal, second instance (Example and Partners)"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"set":{"Client":"Beta GmbH"},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(20,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Old name','manifests/written.yaml',19,'{"added":["office","Old name"],"fields":{"category":[null,"internal"],"description":[null,"It is renamed"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(21,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Member','manifests/written.yaml',20,'{"added":["its word","Member"],"fields":{"category":[null,"leaves"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(22,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Forgotten','manifests/written.yaml',21,'{"added":["Forgotten"],"fields":{"category":[null,"internal"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(23,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Retired','manifests/written.yaml',22,'{"added":["long over","Retired"],"fields":{"category":[null,"internal"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(24,'796e5cf2ede8',2,1.7953689872852592468e+09,'intended','c3','upsertTags','tag','Deleted','manifests/written.yaml',23,'{"added":["Deleted"],"fields":{"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(25,'796e5cf2ede8',2,1.79536898731368279452e+09,'settled','c3',NULL,'call','c3',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(26,'b7fd48461fa6',3,1.79542835008816289901e+09,'recorded',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194C0C099AC7461672F4F6C64206E616D65B963617465676F72792F636C69656E742D626574612D676D6268A97461672F4D2D303033B261637469766974792D747970652F41313031B261637469766974792D747970652F41313033AD7461672F41434D452D30303432AD7461672F466F72676F7474656EA97461672F4D2D303032AD7461672F41434D452D303034329996C0C0C0D9207B22737461747573223A5B22616374697665222C2272656C6561736564225D7DC0C096C0B96D616E6966657374732F636C69656E74732E79616D6C2E6A3204C0C0C096C0B86D616E6966657374732F67656E6572617465642E79616D6C06C0C0C096C0B66D616E6966657374732F7772697474656E2E79616D6C05C0C0C096C0B66D616E6966657374732F7772697474656E2E79616D6C06C0C0C096C0B66D616E6966657374732F7772697474656E2E79616D6C09C0C0C096C0C0C0D9207B22737461747573223A5B22616374697665222C2272656C6561736564225D7DC0C096C0C0C0D9207B22737461747573223A5B22616374697665222C2272656C6561736564225D7DC0C096C0C0C0D92F7B226669656C6473223A7B2263617465676F7279223A5B22636C69656E7473222C22637573746F6D657273225D7D7DC0C0',1,NULL);
INSERT INTO "state_journal" VALUES(27,'b7fd48461fa6',3,1.79542835011612415306e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26331B375707365727454616743617465676F7269657394B563617465676F72792F636C69656E742D67616D6D61B263617465676F72792F637573746F6D657273B063617465676F72792F636C69656E7473B163617465676F72792F696E7465726E616C9496C0B96D616E6966657374732F636C69656E74732E79616D6C2E6A3204C0D96E7B226669656C6473223A7B226465736372697074696F6E223A224D617474657273206F662047616D6D61222C226B6579776F726473223A5B2267616D6D61225D2C226C6162656C223A2247616D6D61227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C02C0D97E7B226669656C6473223A7B226465736372697074696F6E223A2257686F6D20776520776F726B20666F72222C226B6579776F726473223A5B22636C69656E74222C22637573746F6D6572225D2C226C6162656C223A22437573746F6D657273227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA661637469766596C0C0C0D9887B226669656C6473223A7B226465736372697074696F6E223A5B2257686F6D20776520776F726B20666F72222C6E756C6C5D2C226B6579776F726473223A5B5B22636C69656E74225D2C6E756C6C5D2C226C6162656C223A5B22436C69656E7473222C6E756C6C5D7D2C22737461747573223A5B22616374697665222C2264656C65746564225D7DC0C096C0B66D616E6966657374732F7772697474656E2E79616D6C03D9347B226669656C6473223A7B226C6162656C223A5B22496E7465726E616C222C22496E7465726E616C206D617474657273225D7D7DC0C0',1,NULL);
INSERT INTO "state_journal" VALUES(28,'b7fd48461fa6',3,1.79542835012578344349e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9393A2633191B563617465676F72792F636C69656E742D67616D6D61C093A2633192B263617465676F72792F637573746F6D657273B063617465676F72792F636C69656E7473C093A2633190C0',0,NULL);
INSERT INTO "state_journal" VALUES(29,'b7fd48461fa6',3,1.79542835013894605629e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26332B375706C6F61644163746976697479547970657392B261637469766974792D747970652F41313031B261637469766974792D747970652F4131303492961AB66D616E6966657374732F7772697474656E2E79616D6C05D9567B226669656C6473223A7B226465736372697074696F6E223A5B22416C6C207468617420636F6D6573206265666F7265222C22416C6C207468617420636F6D6573206265666F726520616E64206166746572225D7D7DC0C096C0B66D616E6966657374732F7772697474656E2E79616D6C07C0D94C7B226669656C6473223A7B22656E61626C6549664E6577223A747275652C226C6162656C223A22417070656172227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA6616374697665',0,NULL);
INSERT INTO "state_journal" VALUES(30,'b7fd48461fa6',3,1.79542835015166616437e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633290C0',0,NULL);
INSERT INTO "state_journal" VALUES(31,'b7fd48461fa6',3,1.79542835016794395447e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26333AA7570736572745461677394A97461672F4D2D303031A97461672F4D2D303035AD7461672F41434D452D30303432AC7461672F4E6577206E616D659496C0B86D616E6966657374732F67656E6572617465642E79616D6C06D97F7B226669656C6473223A7B226465736372697074696F6E223A5B224F70706F736974696F6E204DC3BC6C6C657220284578616D706C6520616E6420506172746E65727329222C224F70706F736974696F6E204DC3BC6C6C657220616E64206F746865727320284578616D706C6520616E6420506172746E65727329225D7D7DC0C096C0B86D616E6966657374732F67656E6572617465642E79616D6C06C0D9C87B226669656C6473223A7B2263617465676F7279223A22696E7465726E616C222C226465736372697074696F6E223A224E6577206D617474657220284578616D706C6520616E6420506172746E65727329222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B226D2D3030352066696C65222C224D2D303035225D2C226D65746164617461223A7B22436C69656E74223A2247616D6D61227D7DA6616374697665961AB66D616E6966657374732F7772697474656E2E79616D6C09D9F97B226164646564223A5B2245502037363534333231204231225D2C226669656C6473223A7B226465736372697074696F6E223A5B224F70706F736974696F6E20616761696E73742045502031323334353637222C224F70706F736974696F6E20616761696E7374204550203132333435363720616E642045502037363534333231225D2C2275726C223A5B2268747470733A2F2F706D732E6578616D706C652E636F6D2F6D6174746572732F3432222C2268747470733A2F2F706D732E6578616D706C652E636F6D2F6D6174746572732F34322F6F76657276696577225D7D2C22736574223A7B225465616D223A22706174656E7473227D7DC0C096C0B66D616E6966657374732F7772697474656E2E79616D6C12C0D9A47B226669656C6473223A7B2263617465676F7279223A22696E7465726E616C222C226465736372697074696F6E223A224974207761732072656E616D6564222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B226F6666696365222C224E6577206E616D65225D2C226D65746164617461223A7B7D7DA6616374697665',0,NULL);
INSERT INTO "state_journal" VALUES(32,'b7fd48461fa6',3,1.79542835018616509434e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633390C0',0,NULL);
INSERT INTO "state_journal" VALUES(33,'b7fd48461fa6',3,1.79542835019140553471e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9394A26334AD64656C6574654B6579776F726491AD7461672F41434D452D3030343291961FB66D616E6966657374732F7772697474656E2E79616D6C09BF7B2264656C65746564223A5B2261636D65206F70706F736974696F6E225D7DC0C094A26335AD64656C6574654B6579776F726491AB7461672F526574697265649196C0B66D616E6966657374732F7772697474656E2E79616D6C16D9377B2264656C65746564223A5B226C6F6E67206F766572225D2C22737461747573223A5B22616374697665222C2272657469726564225D7DC0C094A26336AD64656C6574654B6579776F726491AB7461672F526574697265649196C0B66D616E6966657374732F7772697474656E2E79616D6C16D9357B2264656C65746564223A5B2252657469726564225D2C22737461747573223A5B22616374697665222C2272657469726564225D7DC0C0',1,NULL);
INSERT INTO "state_journal" VALUES(34,'b7fd48461fa6',3,1.79542835020788669585e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9393A2633490C093A2633590C093A2633690C0',0,NULL);
INSERT INTO "state_journal" VALUES(35,'b7fd48461fa6',3,1.79542835021318125717e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26337B164656C6574655461674D6574616461746191AD7461672F41434D452D30303432919621B66D616E6966657374732F7772697474656E2E79616D6C09BB7B22756E736574223A5B2242696C6C696E672047726F7570225D7DC0C0',1,NULL);
INSERT INTO "state_journal" VALUES(36,'b7fd48461fa6',3,1.79542835025371766083e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633790C0',0,NULL);
INSERT INTO "state_journal" VALUES(37,'b7fd48461fa6',3,1.79542835025887894629e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26338A964656C65746554616791AB7461672F44656C657465649196C0C0C0D9827B2264656C65746564223A5B2244656C65746564225D2C226669656C6473223A7B226578636C7564655461674E616D654B6579776F7264223A5B66616C73652C6E756C6C5D2C227669736962696C697479223A5B225055424C4943222C6E756C6C5D7D2C22737461747573223A5B22616374697665222C2264656C65746564225D7DC0C0',1,NULL);
INSERT INTO "state_journal" VALUES(38,'b7fd48461fa6',3,1.79542835030240178107e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633890C0',0,NULL);
INSERT INTO "state_journal" VALUES(39,'b7fd48461fa6',3,1.79542835033228850363e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A56331302E31B375706C6F61644163746976697479547970657393B261637469766974792D747970652F41313031B261637469766974792D747970652F41313033B261637469766974792D747970652F4131303493961DB66D616E6966657374732F7772697474656E2E79616D6C05C0C0C0961AB66D616E6966657374732F7772697474656E2E79616D6C06C0C0C0961DB66D616E6966657374732F7772697474656E2E79616D6C07C0C0C0',0,NULL);
INSERT INTO "state_journal" VALUES(40,'b7fd48461fa6',3,1.79542835037926912311e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A56331302E3190C0',0,NULL);
INSERT INTO "state_journal" VALUES(41,'b7fd48461fa6',3,1.79542835038070583341e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A56331312E31B3636F6D706C65746553796E6353657373696F6E91B261637469766974792D747970652F413130329196C0C0C0BF7B22737461747573223A5B22616374697665222C2264656C65746564225D7DC0C0',1,NULL);
INSERT INTO "state_journal" VALUES(42,'b7fd48461fa6',3,1.79542835043175911906e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A56331312E3190C0',0,NULL);
INSERT INTO "state_journal" VALUES(43,'b7fd48461fa6',3,1.79542835043827271462e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26339B164656C65746554616743617465676F727992AF63617465676F72792F6C6561766573AA7461672F4D656D6265729296C0C0C0D9517B226669656C6473223A7B226C6162656C223A5B22497420676F65732077697468206974732074616773222C6E756C6C5D7D2C22737461747573223A5B22616374697665222C2264656C65746564225D7DC0C096C0C0C0D9A77B2264656C65746564223A5B2269747320776F7264222C224D656D626572225D2C226669656C6473223A7B2263617465676F7279223A5B226C6561766573222C6E756C6C5D2C226578636C7564655461674E616D654B6579776F7264223A5B66616C73652C6E756C6C5D2C227669736962696C697479223A5B225055424C4943222C6E756C6C5D7D2C22737461747573223A5B22616374697665222C2264656C65746564225D7DC0C0',1,NULL);
INSERT INTO "state_journal" VALUES(44,'b7fd48461fa6',3,1.79542835045329093931e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633990C0',0,NULL);
INSERT INTO "state_journal" VALUES(45,NULL,4,1.79542835079022574428e+09,'forgotten',NULL,NULL,'tag','ACME-0042',NULL,NULL,NULL,NULL,NULL,35);
INSERT INTO "state_journal" VALUES(46,'66cde5f463fd',5,1.7954283517081456185e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26331AA7570736572745461677391AD7461672F41434D452D303034329196C0B66D616E6966657374732F7772697474656E2E79616D6C09C0DA01737B226669656C6473223A7B2263617465676F7279223A22637573746F6D657273222C226372656174656454696D657374616D70223A313731343535343030303030302C226465736372697074696F6E223A224F70706F736974696F6E20616761696E7374204550203132333435363720616E642045502037363534333231222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C2265787465726E616C4964223A223432222C2275726C223A2268747470733A2F2F706D732E6578616D706C652E636F6D2F6D6174746572732F34322F6F76657276696577222C227669736962696C697479223A2250524956415445227D2C226B6579776F726473223A5B2245502031323334353637204231222C2245502037363534333231204231222C22436166C3A9222C2241434D452D30303432225D2C226D65746164617461223A7B22436C69656E74223A2241434D4520486F6C64696E67222C225465616D223A22706174656E7473227D7DA6616374697665',0,NULL);
INSERT INTO "state_journal" VALUES(47,'66cde5f463fd',5,1.79542835174257898326e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633190C0',0,NULL);
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
INSERT INTO "state_lock" VALUES(1,5,'0ff3e186','{"boot":"000000000000000000000000000000000000","command":"apply","host":"desk","job_url":null,"pid":10931,"reason":null,"space":"pid:[4026531836]","start":"390729","user":"robin"}',1.79542835103253245357e+09,1.79542841103253316878e+09,1.79542835202546072008e+09,0,60.0);
INSERT INTO "state_lock" VALUES(2,3,'f7307df3','{"boot":"000000000000000000000000000000000000","command":"time retry","host":"desk","job_url":null,"pid":28778,"reason":null,"space":"pid:[4026531836]","start":"1528568","user":"robin"}',1.79536900308060741425e+09,1.7953690630806083679e+09,1.795369003984659195e+09,0,60.0);
CREATE TABLE state_open (
	call TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	names TEXT NOT NULL, 
	PRIMARY KEY (call, kind)
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
	body TEXT NOT NULL, entry BIGINT, 
	PRIMARY KEY (kind, name)
);
INSERT INTO "state_rows" VALUES('category','clients',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',2,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{},"keywords":[],"metadata":{}}',27);
INSERT INTO "state_rows" VALUES('category','client-acme',NULL,'active',0,1,'b33c54bb-e27b-4d22-9b60-4300042d818a',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',2,'796e5cf2ede8','4c38fa11405c','{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}}',NULL);
INSERT INTO "state_rows" VALUES('category','client-beta-gmbh',NULL,'active',0,1,'548d2c71-6468-48ef-9baf-9f4f56c915e9',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',3,'b7fd48461fa6','24bf96986010','{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}}',26);
INSERT INTO "state_rows" VALUES('category','internal',NULL,'active',0,1,'dbf2db4f-e0ca-44fe-9332-4c5bcd660729',0,NULL,'manifests/written.yaml',3,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"label":"Internal matters"},"keywords":[],"metadata":{}}',27);
INSERT INTO "state_rows" VALUES('category','leaves',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',4,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{},"keywords":[],"metadata":{}}',43);
INSERT INTO "state_rows" VALUES('activity-type','A101',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',5,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"description":"All that comes before and after","enableIfNew":true,"label":"Plan and prepare"},"keywords":[],"metadata":{}}',39);
INSERT INTO "state_rows" VALUES('activity-type','A102',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"enableIfNew":false,"label":"Research","reenableIfArchived":true},"keywords":[],"metadata":{}}',41);
INSERT INTO "state_rows" VALUES('activity-type','A103',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',6,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"enableIfNew":true,"label":"Drafting"},"keywords":[],"metadata":{}}',39);
INSERT INTO "state_rows" VALUES('tag','M-001','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',2,'b7fd48461fa6','24bf96986010','{"fields":{"category":"internal","description":"Opposition Müller and others (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-001 file","M-001"],"metadata":{"Client":"ACME"}}',31);
INSERT INTO "state_rows" VALUES('tag','M-002','category/internal','released',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'b7fd48461fa6','24bf96986010','{"fields":{"category":"internal","description":"Licence agreement (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-002 file","M-002"],"metadata":{"Client":"ACME"}}',26);
INSERT INTO "state_rows" VALUES('tag','M-003','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'b7fd48461fa6','24bf96986010','{"fields":{"category":"internal","description":"Appeal, second instance (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-003 file","M-003"],"metadata":{"Client":"Beta GmbH"}}',26);
INSERT INTO "state_rows" VALUES('tag','Old name','category/internal','released',0,1,NULL,1,NULL,'manifests/written.yaml',19,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"category":"internal","description":"It is renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","Old name"],"metadata":{}}',26);
INSERT INTO "state_rows" VALUES('tag','Member',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',20,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{},"keywords":[],"metadata":{}}',43);
INSERT INTO "state_rows" VALUES('tag','Forgotten','category/internal','released',0,1,NULL,0,NULL,'manifests/written.yaml',21,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Forgotten"],"metadata":{}}',26);
INSERT INTO "state_rows" VALUES('tag','Retired','category/internal','retired',0,1,NULL,0,NULL,'manifests/written.yaml',22,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":[],"metadata":{}}',33);
INSERT INTO "state_rows" VALUES('tag','Deleted',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',23,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{},"keywords":[],"metadata":{}}',37);
INSERT INTO "state_rows" VALUES('category','client-gamma',NULL,'active',0,1,'7a388f4d-6c75-4e5d-9740-bd8399fb7815',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',5,'b7fd48461fa6','24bf96986010','{"fields":{"description":"Matters of Gamma","keywords":["gamma"],"label":"Gamma"},"keywords":[],"metadata":{}}',27);
INSERT INTO "state_rows" VALUES('category','customers',NULL,'active',0,1,'a21f4ad1-d6d5-4578-9054-37dbff30177b',0,NULL,'manifests/written.yaml',2,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"description":"Whom we work for","keywords":["client","customer"],"label":"Customers"},"keywords":[],"metadata":{}}',27);
INSERT INTO "state_rows" VALUES('activity-type','A104',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"enableIfNew":true,"label":"Appear"},"keywords":[],"metadata":{}}',39);
INSERT INTO "state_rows" VALUES('tag','M-005','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',5,'b7fd48461fa6','24bf96986010','{"fields":{"category":"internal","description":"New matter (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-005 file","M-005"],"metadata":{"Client":"Gamma"}}',31);
INSERT INTO "state_rows" VALUES('tag','New name','category/internal','active',0,1,NULL,1,NULL,'manifests/written.yaml',18,NULL,NULL,'b7fd48461fa6','24bf96986010','{"fields":{"category":"internal","description":"It was renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","New name"],"metadata":{}}',31);
INSERT INTO "state_rows" VALUES('tag','ACME-0042','category/customers','active',0,1,NULL,0,NULL,'manifests/written.yaml',9,NULL,NULL,'66cde5f463fd','33aa79ad2c9f','{"fields":{"category":"customers","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567 and EP 7654321","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42/overview","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","EP 7654321 B1","Café","ACME-0042"],"metadata":{"Client":"ACME Holding","Team":"patents"}}',46);
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
INSERT INTO "state_runs" VALUES('b7fd48461fa6',1.79542835007861447337e+09,1.79542835046804904932e+09,'apply','24bf96986010','desk','robin',NULL,NULL,NULL,'complete','{"approvals":["10@4325b3ce370b"],"counts":{"applied":16,"failed":0,"skipped":0,"unknown":0}}');
INSERT INTO "state_runs" VALUES('66cde5f463fd',1.79542835162181520464e+09,1.79542835180972337729e+09,'apply','33aa79ad2c9f','desk','robin',NULL,NULL,NULL,'complete','{"counts":{"applied":1,"failed":0,"skipped":0,"unknown":0}}');
CREATE TABLE state_sessions (
	id TEXT NOT NULL, 
	run TEXT, 
	opened DOUBLE NOT NULL, 
	closed DOUBLE, 
	PRIMARY KEY (id)
);
INSERT INTO "state_sessions" VALUES('a24f29e3-fad1-4686-a5c4-f4c01170e28c','b7fd48461fa6',1.79542835031981420522e+09,1.79542835041135954857e+09);
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
