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
INSERT INTO "state_attempts" VALUES('e7b928729a6b','c3','upsertTags',X'84A96F7065726174696F6EAA75707365727454616773A66C6561766573948DA36B657992A3746167A54D2D303031A66669656C647384AA7669736962696C697479A65055424C4943A863617465676F7279A8696E7465726E616CAB6465736372697074696F6ED9344F70706F736974696F6E204DC3BC6C6C657220616E64206F746865727320284578616D706C6520616E6420506172746E65727329B56578636C7564655461674E616D654B6579776F7264C2A7636C656172656490A86B6579776F72647392AA6D2D3030312066696C65A54D2D303031B06B6579776F7264735F64726F7070656490A86D6574616461746181A6436C69656E74A441434D45B06D657461646174615F64726F7070656490A6737461747573A6616374697665A577686F6C65C3A6666F726D6572C0A6756E73757265C0A6736F7572636593B86D616E6966657374732F67656E6572617465642E79616D6C0692AB6D6174746572732E63737602A770726F74656374C28DA36B657992A3746167A54D2D303035A66669656C647384AA7669736962696C697479A65055424C4943A863617465676F7279A8696E7465726E616CAB6465736372697074696F6ED9214E6577206D617474657220284578616D706C6520616E6420506172746E65727329B56578636C7564655461674E616D654B6579776F7264C2A7636C656172656490A86B6579776F72647392AA6D2D3030352066696C65A54D2D303035B06B6579776F7264735F64726F7070656490A86D6574616461746181A6436C69656E74A547616D6D61B06D657461646174615F64726F7070656490A6737461747573A6616374697665A577686F6C65C3A6666F726D6572C0A6756E73757265C0A6736F7572636593B86D616E6966657374732F67656E6572617465642E79616D6C0692AB6D6174746572732E63737605A770726F74656374C28DA36B657992A3746167A941434D452D30303432A66669656C647387AA7669736962696C697479A750524956415445AB6465736372697074696F6ED92C4F70706F736974696F6E20616761696E7374204550203132333435363720616E642045502037363534333231A863617465676F7279A9637573746F6D657273A375726CD92B68747470733A2F2F706D732E6578616D706C652E636F6D2F6D6174746572732F34322F6F76657276696577AA65787465726E616C4964A23432B06372656174656454696D657374616D70CF0000018F3361D280B56578636C7564655461674E616D654B6579776F7264C2A7636C656172656490A86B6579776F72647394AD45502031323334353637204231AD45502037363534333231204231A5436166C3A9A941434D452D30303432B06B6579776F7264735F64726F7070656490A86D6574616461746182A6436C69656E74AC41434D4520486F6C64696E67A45465616DA7706174656E7473B06D657461646174615F64726F7070656490A6737461747573A6616374697665A577686F6C65C3A6666F726D6572C0A6756E73757265C0A6736F7572636593B66D616E6966657374732F7772697474656E2E79616D6C09C0A770726F74656374C28DA36B657992A3746167A84E6577206E616D65A66669656C647384AA7669736962696C697479A65055424C4943AB6465736372697074696F6EAE4974207761732072656E616D6564A863617465676F7279A8696E7465726E616CB56578636C7564655461674E616D654B6579776F7264C2A7636C656172656490A86B6579776F72647392A66F6666696365A84E6577206E616D65B06B6579776F7264735F64726F7070656490A86D6574616461746180B06D657461646174615F64726F7070656490A6737461747573A6616374697665A577686F6C65C3A6666F726D6572C0A6756E73757265C0A6736F7572636593B66D616E6966657374732F7772697474656E2E79616D6C12C0A770726F74656374C3A369647382A8696E7465726E616CD92464626632646234662D653063612D343466652D393333322D346335626364363630373239A9637573746F6D657273D92461323166346164312D643664352D343537382D393035342D333764626666333031373762A97375727669766F727390','boot 000000000000000000000000000000000000',15304.815090422);
INSERT INTO "state_attempts" VALUES('c059d56931b0','c9.1','completeSyncSession',X'84A96F7065726174696F6EB3636F6D706C65746553796E6353657373696F6EA66C6561766573918DA36B657992AD61637469766974792D74797065A441313032A66669656C647380A7636C656172656490A86B6579776F72647390B06B6579776F7264735F64726F7070656490A86D6574616461746180B06D657461646174615F64726F7070656490A6737461747573A764656C65746564A577686F6C65C2A6666F726D6572C0A6756E73757265C0A6736F75726365C0A770726F74656374C0A369647380A97375727669766F727393A441313031A441313033A441313034','boot 000000000000000000000000000000000000',15309.251208524);
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
INSERT INTO "state_facts" VALUES(1,6,'e40572c4-8c49-4e47-8fc9-33ad0913c5d8','sandbox','Sandbox',1,NULL,'013571ee-3b18-4b5b-881d-75616f0fbe5b','{"matters.csv": 4}');
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
INSERT INTO "state_journal" VALUES(26,'e7b928729a6b',4,1.7953690156485986709e+09,'recorded',NULL,NULL,'tag','Old name',NULL,NULL,'{"status":["active","released"]}');
INSERT INTO "state_journal" VALUES(27,'e7b928729a6b',4,1.7953690156485986709e+09,'recorded',NULL,NULL,'category','client-beta-gmbh','manifests/clients.yaml.j2',4,NULL);
INSERT INTO "state_journal" VALUES(28,'e7b928729a6b',4,1.7953690156485986709e+09,'recorded',NULL,NULL,'tag','M-003','manifests/generated.yaml',6,NULL);
INSERT INTO "state_journal" VALUES(29,'e7b928729a6b',4,1.7953690156485986709e+09,'recorded',NULL,NULL,'activity-type','A101','manifests/written.yaml',5,NULL);
INSERT INTO "state_journal" VALUES(30,'e7b928729a6b',4,1.7953690156485986709e+09,'recorded',NULL,NULL,'activity-type','A103','manifests/written.yaml',6,NULL);
INSERT INTO "state_journal" VALUES(31,'e7b928729a6b',4,1.7953690156485986709e+09,'recorded',NULL,NULL,'tag','ACME-0042','manifests/written.yaml',9,NULL);
INSERT INTO "state_journal" VALUES(32,'e7b928729a6b',4,1.7953690156485986709e+09,'recorded',NULL,NULL,'tag','Forgotten',NULL,NULL,'{"status":["active","released"]}');
INSERT INTO "state_journal" VALUES(33,'e7b928729a6b',4,1.7953690156485986709e+09,'recorded',NULL,NULL,'tag','M-002',NULL,NULL,'{"status":["active","released"]}');
INSERT INTO "state_journal" VALUES(34,'e7b928729a6b',4,1.7953690156485986709e+09,'recorded',NULL,NULL,'tag','ACME-0042',NULL,NULL,'{"fields":{"category":["clients","customers"]}}');
INSERT INTO "state_journal" VALUES(35,'e7b928729a6b',4,1.79536901572640419013e+09,'intended','c1','upsertTagCategories','category','client-gamma','manifests/clients.yaml.j2',4,'{"fields":{"description":[null,"Matters of Gamma"],"keywords":[null,["gamma"]],"label":[null,"Gamma"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(36,'e7b928729a6b',4,1.79536901572640419013e+09,'intended','c1','upsertTagCategories','category','customers','manifests/written.yaml',2,'{"fields":{"description":[null,"Whom we work for"],"keywords":[null,["client","customer"]],"label":[null,"Customers"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(37,'e7b928729a6b',4,1.79536901572640419013e+09,'intended','c1','upsertTagCategories','category','clients',NULL,NULL,'{"fields":{"description":["Whom we work for",null],"keywords":[["client"],null],"label":["Clients",null]},"status":["active","deleted"]}');
INSERT INTO "state_journal" VALUES(38,'e7b928729a6b',4,1.79536901572640419013e+09,'intended','c1','upsertTagCategories','category','internal','manifests/written.yaml',3,'{"fields":{"label":["Internal","Internal matters"]}}');
INSERT INTO "state_journal" VALUES(39,'e7b928729a6b',4,1.79536901577170634265e+09,'settled','c1',NULL,'category','client-gamma',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(40,'e7b928729a6b',4,1.79536901577170634265e+09,'settled','c1',NULL,'category','customers',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(41,'e7b928729a6b',4,1.79536901577170634265e+09,'settled','c1',NULL,'category','clients',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(42,'e7b928729a6b',4,1.79536901577170634265e+09,'settled','c1',NULL,'category','internal',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(43,'e7b928729a6b',4,1.79536901579907393457e+09,'intended','c2','uploadActivityTypes','activity-type','A101','manifests/written.yaml',5,'{"fields":{"description":["All that comes before","All that comes before and after"]}}');
INSERT INTO "state_journal" VALUES(44,'e7b928729a6b',4,1.79536901579907393457e+09,'intended','c2','uploadActivityTypes','activity-type','A104','manifests/written.yaml',7,'{"fields":{"enableIfNew":[null,true],"label":[null,"Appear"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(45,'e7b928729a6b',4,1.79536901582671070106e+09,'settled','c2',NULL,'call','c2',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(46,'e7b928729a6b',4,1.79536901587721681597e+09,'intended','c3','upsertTags','tag','M-001','manifests/generated.yaml',6,'{"fields":{"description":["Opposition Müller (Example and Partners)","Opposition Müller and others (Example and Partners)"]}}');
INSERT INTO "state_journal" VALUES(47,'e7b928729a6b',4,1.79536901587721681597e+09,'intended','c3','upsertTags','tag','M-005','manifests/generated.yaml',6,'{"added":["m-005 file","M-005"],"fields":{"category":[null,"internal"],"description":[null,"New matter (Example and Partners)"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"set":{"Client":"Gamma"},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(48,'e7b928729a6b',4,1.79536901587721681597e+09,'intended','c3','upsertTags','tag','ACME-0042','manifests/written.yaml',9,'{"added":["EP 7654321 B1"],"fields":{"description":["Opposition against EP 1234567","Opposition against EP 1234567 and EP 7654321"],"url":["https://pms.example.com/matters/42","https://pms.example.com/matters/42/overview"]},"set":{"Team":"patents"}}');
INSERT INTO "state_journal" VALUES(49,'e7b928729a6b',4,1.79536901587721681597e+09,'intended','c3','upsertTags','tag','New name','manifests/written.yaml',18,'{"added":["office","New name"],"fields":{"category":[null,"internal"],"description":[null,"It was renamed"],"excludeTagNameKeyword":[null,false],"visibility":[null,"PUBLIC"]},"status":[null,"active"]}');
INSERT INTO "state_journal" VALUES(50,'c059d56931b0',5,1.79536902087242698669e+09,'intended','c1','upsertTags','tag','M-001','manifests/generated.yaml',6,NULL);
INSERT INTO "state_journal" VALUES(51,'c059d56931b0',5,1.79536902087242698669e+09,'intended','c1','upsertTags','tag','M-005','manifests/generated.yaml',6,NULL);
INSERT INTO "state_journal" VALUES(52,'c059d56931b0',5,1.79536902087242698669e+09,'intended','c1','upsertTags','tag','ACME-0042','manifests/written.yaml',9,NULL);
INSERT INTO "state_journal" VALUES(53,'c059d56931b0',5,1.79536902087242698669e+09,'intended','c1','upsertTags','tag','New name','manifests/written.yaml',18,NULL);
INSERT INTO "state_journal" VALUES(54,'c059d56931b0',5,1.79536902090825343136e+09,'settled','c1',NULL,'call','c1',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(55,'c059d56931b0',5,1.79536902092520880697e+09,'intended','c2','deleteKeyword','tag','ACME-0042','manifests/written.yaml',9,'{"deleted":["acme opposition"]}');
INSERT INTO "state_journal" VALUES(56,'c059d56931b0',5,1.79536902092520880697e+09,'intended','c3','deleteKeyword','tag','Retired','manifests/written.yaml',22,'{"deleted":["long over"],"status":["active","retired"]}');
INSERT INTO "state_journal" VALUES(57,'c059d56931b0',5,1.79536902092520880697e+09,'intended','c4','deleteKeyword','tag','Retired','manifests/written.yaml',22,'{"deleted":["Retired"],"status":["active","retired"]}');
INSERT INTO "state_journal" VALUES(58,'c059d56931b0',5,1.79536902095207428933e+09,'settled','c2',NULL,'tag','ACME-0042',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(59,'c059d56931b0',5,1.79536902095207428933e+09,'settled','c3',NULL,'tag','Retired',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(60,'c059d56931b0',5,1.79536902095207428933e+09,'settled','c4',NULL,'tag','Retired',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(61,'c059d56931b0',5,1.79536902096505093578e+09,'intended','c5','deleteTagMetadata','tag','ACME-0042','manifests/written.yaml',9,'{"unset":["Billing Group"]}');
INSERT INTO "state_journal" VALUES(62,'c059d56931b0',5,1.79536902098242282868e+09,'settled','c5',NULL,'tag','ACME-0042',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(63,'c059d56931b0',5,1.79536902100501680372e+09,'intended','c6','deleteTag','tag','Deleted',NULL,NULL,'{"deleted":["Deleted"],"fields":{"excludeTagNameKeyword":[false,null],"visibility":["PUBLIC",null]},"status":["active","deleted"]}');
INSERT INTO "state_journal" VALUES(64,'c059d56931b0',5,1.79536902102626585962e+09,'settled','c6',NULL,'tag','Deleted',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(65,'c059d56931b0',5,1.79536902107688021664e+09,'intended','c8.1','uploadActivityTypes','activity-type','A101','manifests/written.yaml',5,NULL);
INSERT INTO "state_journal" VALUES(66,'c059d56931b0',5,1.79536902107688021664e+09,'intended','c8.1','uploadActivityTypes','activity-type','A103','manifests/written.yaml',6,NULL);
INSERT INTO "state_journal" VALUES(67,'c059d56931b0',5,1.79536902107688021664e+09,'intended','c8.1','uploadActivityTypes','activity-type','A104','manifests/written.yaml',7,NULL);
INSERT INTO "state_journal" VALUES(68,'c059d56931b0',5,1.79536902111896610263e+09,'settled','c8.1',NULL,'call','c8.1',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(69,'c059d56931b0',5,1.79536902113811922074e+09,'intended','c9.1','completeSyncSession','activity-type','A102',NULL,NULL,'{"status":["active","deleted"]}');
INSERT INTO "state_journal" VALUES(70,'a6805d3911ab',6,1.79536902532093143461e+09,'intended','c2.1','uploadActivityTypes','activity-type','A101','manifests/written.yaml',5,NULL);
INSERT INTO "state_journal" VALUES(71,'a6805d3911ab',6,1.79536902532093143461e+09,'intended','c2.1','uploadActivityTypes','activity-type','A103','manifests/written.yaml',6,NULL);
INSERT INTO "state_journal" VALUES(72,'a6805d3911ab',6,1.79536902532093143461e+09,'intended','c2.1','uploadActivityTypes','activity-type','A104','manifests/written.yaml',7,NULL);
INSERT INTO "state_journal" VALUES(73,'a6805d3911ab',6,1.79536902536359906199e+09,'settled','c2.1',NULL,'call','c2.1',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(74,'a6805d3911ab',6,1.79536902538474249838e+09,'intended','c3.1','completeSyncSession','activity-type','A102',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(75,'a6805d3911ab',6,1.7953690254303636551e+09,'settled','c3.1',NULL,'activity-type','A102',NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(76,'a6805d3911ab',6,1.79536902543859195713e+09,'intended','c1','deleteTagCategory','category','leaves',NULL,NULL,'{"fields":{"label":["It goes with its tags",null]},"status":["active","deleted"]}');
INSERT INTO "state_journal" VALUES(77,'a6805d3911ab',6,1.79536902543859195713e+09,'intended','c1','deleteTagCategory','tag','Member',NULL,NULL,'{"deleted":["its word","Member"],"fields":{"category":["leaves",null],"excludeTagNameKeyword":[false,null],"visibility":["PUBLIC",null]},"status":["active","deleted"]}');
INSERT INTO "state_journal" VALUES(78,'a6805d3911ab',6,1.79536902545768809313e+09,'settled','c1',NULL,'call','c1',NULL,NULL,NULL);
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
INSERT INTO "state_lock" VALUES(1,6,'d5925aba','{"boot":"000000000000000000000000000000000000","command":"apply","host":"desk","job_url":null,"pid":29437,"reason":null,"space":"pid:[4026531836]","start":"1530684","user":"robin"}',1.79536902450396561618e+09,1.79536908450396656992e+09,1.79536902550378632548e+09,0,60.0);
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
INSERT INTO "state_rows" VALUES('category','clients',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',2,NULL,NULL,'e7b928729a6b','ccfc7627bf8b','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','ACME-0042','category/customers','active',0,1,NULL,0,NULL,'manifests/written.yaml',9,NULL,NULL,'c059d56931b0','567bed77d7ec','{"fields":{"category":"customers","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567 and EP 7654321","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42/overview","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","Café","ACME-0042","EP 7654321 B1"],"metadata":{"Client":"ACME Holding","Team":"patents"}}');
INSERT INTO "state_rows" VALUES('category','client-acme',NULL,'active',0,1,'b33c54bb-e27b-4d22-9b60-4300042d818a',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',2,'796e5cf2ede8','4c38fa11405c','{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-beta-gmbh',NULL,'active',0,1,'548d2c71-6468-48ef-9baf-9f4f56c915e9',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',3,'e7b928729a6b','ccfc7627bf8b','{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','internal',NULL,'active',0,1,'dbf2db4f-e0ca-44fe-9332-4c5bcd660729',0,NULL,'manifests/written.yaml',3,NULL,NULL,'e7b928729a6b','ccfc7627bf8b','{"fields":{"label":"Internal matters"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','leaves',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',4,NULL,NULL,'a6805d3911ab','6613fad98d80','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A101',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',5,NULL,NULL,'a6805d3911ab','6613fad98d80','{"fields":{"description":"All that comes before and after","enableIfNew":true,"label":"Plan and prepare"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A102',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'a6805d3911ab','6613fad98d80','{"fields":{"enableIfNew":false,"label":"Research","reenableIfArchived":true},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A103',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',6,NULL,NULL,'a6805d3911ab','6613fad98d80','{"fields":{"enableIfNew":true,"label":"Drafting"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','M-001','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',2,'c059d56931b0','567bed77d7ec','{"fields":{"category":"internal","description":"Opposition Müller and others (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-001 file","M-001"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-002','category/internal','released',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'e7b928729a6b','ccfc7627bf8b','{"fields":{"category":"internal","description":"Licence agreement (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-002 file","M-002"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-003','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'e7b928729a6b','ccfc7627bf8b','{"fields":{"category":"internal","description":"Appeal, second instance (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-003 file","M-003"],"metadata":{"Client":"Beta GmbH"}}');
INSERT INTO "state_rows" VALUES('tag','Old name','category/internal','released',0,1,NULL,1,NULL,'manifests/written.yaml',19,NULL,NULL,'e7b928729a6b','ccfc7627bf8b','{"fields":{"category":"internal","description":"It is renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","Old name"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Member',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',20,NULL,NULL,'a6805d3911ab','6613fad98d80','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Forgotten','category/internal','released',0,1,NULL,0,NULL,'manifests/written.yaml',21,NULL,NULL,'e7b928729a6b','ccfc7627bf8b','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Forgotten"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Retired','category/internal','retired',0,1,NULL,0,NULL,'manifests/written.yaml',22,NULL,NULL,'c059d56931b0','567bed77d7ec','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Deleted',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',23,NULL,NULL,'c059d56931b0','567bed77d7ec','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-gamma',NULL,'active',0,1,'42c3881f-3fb4-42a4-a664-0f996ddedfa2',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',5,'e7b928729a6b','ccfc7627bf8b','{"fields":{"description":"Matters of Gamma","keywords":["gamma"],"label":"Gamma"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','customers',NULL,'active',0,1,'a21f4ad1-d6d5-4578-9054-37dbff30177b',0,NULL,'manifests/written.yaml',2,NULL,NULL,'e7b928729a6b','ccfc7627bf8b','{"fields":{"description":"Whom we work for","keywords":["client","customer"],"label":"Customers"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A104',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'a6805d3911ab','6613fad98d80','{"fields":{"enableIfNew":true,"label":"Appear"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','M-005','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',5,'c059d56931b0','567bed77d7ec','{"fields":{"category":"internal","description":"New matter (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-005 file","M-005"],"metadata":{"Client":"Gamma"}}');
INSERT INTO "state_rows" VALUES('tag','New name','category/internal','active',0,1,NULL,1,NULL,'manifests/written.yaml',18,NULL,NULL,'c059d56931b0','567bed77d7ec','{"fields":{"category":"internal","description":"It was renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","New name"],"metadata":{}}');
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
INSERT INTO "state_runs" VALUES('e7b928729a6b',1.79536901556830358504e+09,1.79536902075424671179e+09,'apply','ccfc7627bf8b','desk','robin',NULL,NULL,NULL,'died','{"approvals":["10@4325b3ce370b"],"counts":{}}');
INSERT INTO "state_runs" VALUES('c059d56931b0',1.79536902074315381054e+09,1.79536902518390059473e+09,'apply','567bed77d7ec','desk','robin',NULL,NULL,NULL,'died','{"approvals":["8@5fc92b5446f6"],"counts":{}}');
INSERT INTO "state_runs" VALUES('a6805d3911ab',1.79536902517554616928e+09,1.79536902547608137126e+09,'apply','6613fad98d80','desk','robin',NULL,NULL,NULL,'complete','{"approvals":["4@363a24f69fbe"],"counts":{"applied":3,"failed":0,"skipped":0,"unknown":0}}');
CREATE TABLE state_sessions (
	id TEXT NOT NULL, 
	run TEXT, 
	opened DOUBLE NOT NULL, 
	closed DOUBLE, 
	PRIMARY KEY (id)
);
INSERT INTO "state_sessions" VALUES('4a84c4b4-b2ec-4351-bcec-bcad32eb9d4a','c059d56931b0',1.79536902106551170352e+09,1.79536902523787307737e+09);
INSERT INTO "state_sessions" VALUES('85cb6a34-1312-4283-b2c0-85a094ca13db','a6805d3911ab',1.79536902530559968945e+09,1.79536902542258691782e+09);
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
