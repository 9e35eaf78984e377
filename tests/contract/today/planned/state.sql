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
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'ledger','accepted',1,1.79584785967283105849e+09,1.79584785968041563035e+09,'L-g-posted',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'ledger','accepted',1,1.79584785967283105849e+09,1.79584785968041563035e+09,'L-g-away',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'ledger','accepted',1,1.79584785967283105849e+09,1.79584785968041563035e+09,'L-g-changed',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'archive','accepted',1,1.79584785968146848681e+09,1.79584785968342185019e+09,NULL,NULL,'{"offset":0,"length":28,"hash":"28ce728fca2928e7fca4b47179395f139635e9183360c8932ba3503f5ac59aa2"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'archive','accepted',1,1.79584785968146848681e+09,1.79584785968342185019e+09,NULL,NULL,'{"offset":28,"length":28,"hash":"e691590bbe30160b902b7a4cbc24bfdbd6fbe691cbae37fdb4b9c1a25c191161"}');
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'archive','accepted',1,1.79584785968146848681e+09,1.79584785968342185019e+09,NULL,NULL,'{"offset":56,"length":34,"hash":"e0b932d6406759380f58c731dbf4e2581ecc1746e6f20e031ae300caaaef7c87"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'away','refused',2,1.79584785968466019629e+09,1.79584786071422314651e+09,NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL);
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
INSERT INTO "inbox_events" VALUES(1,'g-posted',1,1.79584785966372680659e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(2,'g-untagged',1,1.79584785966372776026e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(3,'g-unknown',1,1.79584785966372871392e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(4,'g-away',1,1795847859.66373,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(5,'g-changed',1,1.79584785966373085977e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(6,'g-untagged',1,1.79584785967131805423e+09,'verdict',NULL,'FAILURE','Assign a tag before posting.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(7,'g-unknown',1,1.79584785967283105849e+09,'verdict',NULL,'FAILURE','Matter Old name is not in the ledger.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(8,'g-posted',1,1.79584785968041563035e+09,'attempt','ledger','accepted',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(9,'g-away',1,1.79584785968041563035e+09,'attempt','ledger','accepted',NULL,'L-g-away',NULL);
INSERT INTO "inbox_events" VALUES(10,'g-changed',1,1.79584785968041563035e+09,'attempt','ledger','accepted',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(11,'g-posted',1,1.79584785968342185019e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(12,'g-changed',1,1.79584785968342185019e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(13,'g-posted',1,1.79584785968342185019e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(14,'g-changed',1,1.79584785968342185019e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(15,'g-away',1,1.79584785968342185019e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(16,'g-away',1,1.79584785968671154974e+09,'attempt','away','refused','a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(17,'g-away',1,1.79584785968671154974e+09,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_events" VALUES(18,'g-untagged',1,1.79584785969353294375e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(19,'g-unknown',1,1795847859.69592,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(20,'g-changed',1,1795847859.69592,'status',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(21,'g-posted',1,1795847859.69592,'status',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(22,'g-away',1,1795847859.69592,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(23,'g-changed',1,1.79584786023956036564e+09,'offered',NULL,NULL,'fetch',NULL,'{"description":"as posted again","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795847859986,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112806,"description":"Letter.docx","durationSecs":120,"firstObservedInHour":35,"source":"WT_DESKTOP","submittedDate":20261128063739986,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795847859986,"totalDurationHours":0.03,"totalDurationSecs":120,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}');
INSERT INTO "inbox_events" VALUES(24,'g-changed',1,1.79584786024379253381e+09,'conflict',NULL,'FAILURE','This time was posted before with different content, and archive and ledger took it in that form. Nothing was changed there; please ask your administrator.',NULL,'offered again with different content; archive and ledger took it as revision 1');
INSERT INTO "inbox_events" VALUES(25,'g-changed',1,1.79584786024634265899e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(26,'g-away',1,1.79584786040622162821e+09,'asked',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(27,'g-away',1,1.79584786071422314651e+09,'attempt','away','refused','a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(28,'g-away',1,1.79584786071422314651e+09,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
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
INSERT INTO "inbox_groups" VALUES('g-posted','acknowledged',1,'34563e107066281e20c4c2f94ee097b0c922b259f9be251f319a768de5291838','fetch',1.79584785966372680659e+09,1.79584785966372680659e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','ACME-0042','{"description":"Reply to the examiner","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-posted","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795847859326,"tags":[{"description":"Opposition against EP 1234567","externalId":"42","name":"ACME-0042","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112805,"description":"Letter.docx","durationSecs":3600,"firstObservedInHour":37,"source":"WT_DESKTOP","submittedDate":20261128063739326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795847859326,"totalDurationHours":1.0,"totalDurationSecs":3600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','SUCCESS',NULL,'L-g-posted',1.79584785968342185019e+09,0,1795847859.69592,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-untagged','acknowledged',1,'ca834e7d1243e0884f6c0ed295be700a68a85c64150265135c21991c7a4e3239','fetch',1.79584785966372776026e+09,1.79584785966372776026e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]',NULL,'{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-untagged","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795847859326,"tags":[],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112806,"description":"Letter.docx","durationSecs":600,"firstObservedInHour":27,"source":"WT_DESKTOP","submittedDate":20261128063739326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795847859326,"totalDurationHours":0.17,"totalDurationSecs":600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Assign a tag before posting.',NULL,1.79584785967131805423e+09,0,1.79584785969353294375e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-unknown','acknowledged',1,'9e7f4f2e8ce87c8fe17bddea69574d4cb1eb812686b5b9890ddbcf1377b0155e','fetch',1.79584785966372871392e+09,1.79584785966372871392e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','Old name','{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-unknown","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795847859326,"tags":[{"description":"It is renamed","name":"Old name","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112806,"description":"Letter.docx","durationSecs":900,"firstObservedInHour":22,"source":"WT_DESKTOP","submittedDate":20261128063739326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795847859326,"totalDurationHours":0.25,"totalDurationSecs":900,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Matter Old name is not in the ledger.',NULL,1.79584785967283105849e+09,0,1795847859.69592,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-away','refused',1,'6f0ca12ce41994d49a37a14151edeb747b6e2d0b31b6567727c9ba4fc105830d','fetch',1795847859.66373,1795847859.66373,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"away","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-away","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795847859326,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112806,"description":"Letter.docx","durationSecs":1800,"firstObservedInHour":7,"source":"WT_DESKTOP","submittedDate":20261128063739326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795847859326,"totalDurationHours":0.5,"totalDurationSecs":1800,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','away rejected the time: something in it does not fit there.',NULL,1.79584786071422314651e+09,1,1795847859.69592,NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_groups" VALUES('g-changed','conflict',1,'de1111916477505aae4f3801b8c81eef0f5e5acd8ef2042eda7456e5dcec37ef','fetch',1.79584785966373085977e+09,1.79584786023956036564e+09,2,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"as first posted","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795847859326,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112806,"description":"Letter.docx","durationSecs":60,"firstObservedInHour":36,"source":"WT_DESKTOP","submittedDate":20261128063739326,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795847859326,"totalDurationHours":0.02,"totalDurationSecs":60,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','This time was posted before with different content, and archive and ledger took it in that form. Nothing was changed there; please ask your administrator.',NULL,1.79584786024379253381e+09,0,1.79584786024634265899e+09,NULL,'offered again with different content; archive and ledger took it as revision 1');
CREATE TABLE posted_time_mechanism (
	id INTEGER NOT NULL, 
	mechanism TEXT NOT NULL, 
	base_url TEXT NOT NULL, 
	callback_url TEXT, 
	key_digest TEXT, 
	registered DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "posted_time_mechanism" VALUES(1,'fetch','sandbox',NULL,NULL,1.79584785894836187363e+09);
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
	ancestors TEXT, 
	generation TEXT, 
	sources TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "state_facts" VALUES(1,9,'a3692dfc-2b1b-4031-b58a-4a03dbf1362b','sandbox','Sandbox',0,NULL,NULL,'66db4987-183f-4a0f-aac3-81be9bc837f9','{"matters.csv": 4}');
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
	packed BLOB, 
	takes BOOLEAN, 
	entry BIGINT, 
	PRIMARY KEY (id)
);
INSERT INTO "state_journal" VALUES(1,NULL,1,1795847858.47533,'marked',NULL,NULL,'change','ee64b7bc-6b29-436a-aabd-b7aecc2000bf',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(2,'09c1c4f2cdd8',1,1.79584785848564171791e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26331B375707365727454616743617465676F7269657391B063617465676F72792F636C69656E74739196C0B66D616E6966657374732F7772697474656E2E79616D6C02C0D9717B226669656C6473223A7B226465736372697074696F6E223A2257686F6D20776520776F726B20666F72222C226B6579776F726473223A5B22636C69656E74225D2C226C6162656C223A22436C69656E7473227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA6616374697665',0,NULL);
INSERT INTO "state_journal" VALUES(3,'09c1c4f2cdd8',1,1.79584785848934888833e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633190C0',0,NULL);
INSERT INTO "state_journal" VALUES(4,'09c1c4f2cdd8',1,1.79584785849147820471e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26332AA7570736572745461677391AD7461672F41434D452D303034329196C0B66D616E6966657374732F7772697474656E2E79616D6C0AC0DA01657B226669656C6473223A7B2263617465676F7279223A22636C69656E7473222C226372656174656454696D657374616D70223A313731343535343030303030302C226465736372697074696F6E223A224F70706F736974696F6E20616761696E73742045502031323334353637222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C2265787465726E616C4964223A223432222C2275726C223A2268747470733A2F2F706D732E6578616D706C652E636F6D2F6D6174746572732F3432222C227669736962696C697479223A2250524956415445227D2C226B6579776F726473223A5B2245502031323334353637204231222C2261636D65206F70706F736974696F6E222C22436166C3A9222C2241434D452D30303432225D2C226D65746164617461223A7B2242696C6C696E672047726F7570223A2262696C6C61626C65222C22436C69656E74223A2241434D4520486F6C64696E67227D7DA6616374697665',0,NULL);
INSERT INTO "state_journal" VALUES(5,'09c1c4f2cdd8',1,1.79584785849370455737e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633290C0',0,NULL);
INSERT INTO "state_journal" VALUES(6,NULL,1,1.79584785867491531375e+09,'marked',NULL,NULL,'change','0f1bdc7b-a9ae-4474-9b33-1a0c279dac84',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(7,NULL,2,1.79584785871766972539e+09,'marked',NULL,NULL,'change','900e5d8a-b00c-43a8-979b-5d07f23bedac',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_journal" VALUES(8,'9739b0bf9c87',2,1.79584785872327971456e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26331B375707365727454616743617465676F7269657394B463617465676F72792F636C69656E742D61636D65B963617465676F72792F636C69656E742D626574612D676D6268B163617465676F72792F696E7465726E616CAF63617465676F72792F6C65617665739496C0B96D616E6966657374732F636C69656E74732E79616D6C2E6A3204C0D96B7B226669656C6473223A7B226465736372697074696F6E223A224D617474657273206F662041434D45222C226B6579776F726473223A5B2261636D65225D2C226C6162656C223A2241434D45227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA661637469766596C0B96D616E6966657374732F636C69656E74732E79616D6C2E6A3204C0D97A7B226669656C6473223A7B226465736372697074696F6E223A224D617474657273206F66204265746120476D6248222C226B6579776F726473223A5B226265746120676D6268225D2C226C6162656C223A224265746120476D6248227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C03C0D93B7B226669656C6473223A7B226C6162656C223A22496E7465726E616C227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C04C0D9487B226669656C6473223A7B226C6162656C223A22497420676F65732077697468206974732074616773227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA6616374697665',0,NULL);
INSERT INTO "state_journal" VALUES(9,'9739b0bf9c87',2,1.79584785872645854949e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9493A2633191B463617465676F72792F636C69656E742D61636D65C093A2633191B963617465676F72792F636C69656E742D626574612D676D6268C093A2633191B163617465676F72792F696E7465726E616CC093A2633190C0',0,NULL);
INSERT INTO "state_journal" VALUES(10,'9739b0bf9c87',2,1.79584785872827410692e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26332B375706C6F61644163746976697479547970657393B261637469766974792D747970652F41313031B261637469766974792D747970652F41313032B261637469766974792D747970652F413130339396C0B66D616E6966657374732F7772697474656E2E79616D6C06C0D97C7B226669656C6473223A7B226465736372697074696F6E223A22416C6C207468617420636F6D6573206265666F7265222C22656E61626C6549664E6577223A747275652C226C6162656C223A22506C616E20616E642070726570617265227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C07C0D9697B226669656C6473223A7B22656E61626C6549664E6577223A66616C73652C226C6162656C223A225265736561726368222C227265656E61626C6549664172636869766564223A747275657D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C08C0D94E7B226669656C6473223A7B22656E61626C6549664E6577223A747275652C226C6162656C223A224472616674696E67227D2C226B6579776F726473223A5B5D2C226D65746164617461223A7B7D7DA6616374697665',0,NULL);
INSERT INTO "state_journal" VALUES(11,'9739b0bf9c87',2,1.7958478587304060459e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633290C0',0,NULL);
INSERT INTO "state_journal" VALUES(12,'9739b0bf9c87',2,1.79584785873163580889e+09,'intended',NULL,NULL,'packed','',NULL,NULL,NULL,X'9194A26333AA7570736572745461677398A97461672F4D2D303031A97461672F4D2D303032A97461672F4D2D303033AC7461672F4F6C64206E616D65AA7461672F4D656D626572AD7461672F466F72676F7474656EAB7461672F52657469726564AB7461672F44656C657465649896C0B86D616E6966657374732F67656E6572617465642E79616D6C06C0D9CF7B226669656C6473223A7B2263617465676F7279223A22696E7465726E616C222C226465736372697074696F6E223A224F70706F736974696F6E204DC3BC6C6C657220284578616D706C6520616E6420506172746E65727329222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B226D2D3030312066696C65222C224D2D303031225D2C226D65746164617461223A7B22436C69656E74223A2241434D45227D7DA661637469766596C0B86D616E6966657374732F67656E6572617465642E79616D6C06C0D9CE7B226669656C6473223A7B2263617465676F7279223A22696E7465726E616C222C226465736372697074696F6E223A224C6963656E63652061677265656D656E7420284578616D706C6520616E6420506172746E65727329222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B226D2D3030322066696C65222C224D2D303032225D2C226D65746164617461223A7B22436C69656E74223A2241434D45227D7DA661637469766596C0B86D616E6966657374732F67656E6572617465642E79616D6C06C0D9D97B226669656C6473223A7B2263617465676F7279223A22696E7465726E616C222C226465736372697074696F6E223A2241707065616C2C207365636F6E6420696E7374616E636520284578616D706C6520616E6420506172746E65727329222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B226D2D3030332066696C65222C224D2D303033225D2C226D65746164617461223A7B22436C69656E74223A224265746120476D6248227D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C13C0D9A37B226669656C6473223A7B2263617465676F7279223A22696E7465726E616C222C226465736372697074696F6E223A2249742069732072656E616D6564222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B226F6666696365222C224F6C64206E616D65225D2C226D65746164617461223A7B7D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C14C0D9837B226669656C6473223A7B2263617465676F7279223A226C6561766573222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B2269747320776F7264222C224D656D626572225D2C226D65746164617461223A7B7D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C15C0D97D7B226669656C6473223A7B2263617465676F7279223A22696E7465726E616C222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B22466F72676F7474656E225D2C226D65746164617461223A7B7D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C16C0D9877B226669656C6473223A7B2263617465676F7279223A22696E7465726E616C222C226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B226C6F6E67206F766572222C2252657469726564225D2C226D65746164617461223A7B7D7DA661637469766596C0B66D616E6966657374732F7772697474656E2E79616D6C17C0D9657B226669656C6473223A7B226578636C7564655461674E616D654B6579776F7264223A66616C73652C227669736962696C697479223A225055424C4943227D2C226B6579776F726473223A5B2244656C65746564225D2C226D65746164617461223A7B7D7DA6616374697665',0,NULL);
INSERT INTO "state_journal" VALUES(13,'9739b0bf9c87',2,1.79584785873392391202e+09,'settled',NULL,NULL,'packed','',NULL,NULL,NULL,X'9193A2633390C0',0,NULL);
INSERT INTO "state_journal" VALUES(14,NULL,2,1.79584785891628742216e+09,'marked',NULL,NULL,'change','c0455b44-8963-4255-a933-e3ea01ea917b',NULL,NULL,NULL,NULL,NULL,NULL);
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
INSERT INTO "state_lock" VALUES(1,2,'da537316','{"boot":"000000000000000000000000000000000000","command":"apply","host":"desk","job_url":null,"pid":9634,"reason":null,"space":"pid:[4026531836]","start":"2763959","user":"robin"}',1.7958478586972408294e+09,1.79584791869724130636e+09,1.79584785891766285891e+09,0,60.0);
INSERT INTO "state_lock" VALUES(2,3,'ed135b62','{"boot":"000000000000000000000000000000000000","command":"time retry","host":"desk","job_url":null,"pid":9634,"reason":null,"space":"pid:[4026531836]","start":"2763959","user":"robin"}',1.7958478604961287975e+09,1.79584792049612927437e+09,1.79584786071622538568e+09,0,60.0);
CREATE TABLE state_open (
	call TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	names TEXT NOT NULL, 
	PRIMARY KEY (call, kind)
);
CREATE TABLE state_quarantine (
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	origin TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	until DOUBLE, 
	at DOUBLE NOT NULL, 
	content TEXT NOT NULL, 
	ended DOUBLE, 
	PRIMARY KEY (kind, name, origin)
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
	entry BIGINT, 
	PRIMARY KEY (kind, name)
);
INSERT INTO "state_rows" VALUES('category','clients',NULL,'active',0,1,'44384fe8-7ad6-41ef-a353-ff020b2abe8b',0,NULL,'manifests/written.yaml',2,NULL,NULL,'09c1c4f2cdd8','698070b03ead','{"fields":{"description":"Whom we work for","keywords":["client"],"label":"Clients"},"keywords":[],"metadata":{}}',2);
INSERT INTO "state_rows" VALUES('tag','ACME-0042','category/clients','active',0,1,NULL,0,NULL,'manifests/written.yaml',10,NULL,NULL,'09c1c4f2cdd8','698070b03ead','{"fields":{"category":"clients","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","acme opposition","Café","ACME-0042"],"metadata":{"Billing Group":"billable","Client":"ACME Holding"}}',4);
INSERT INTO "state_rows" VALUES('category','client-acme',NULL,'active',0,1,'97d69dbb-fa5c-4e54-bf76-1ec53966a671',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',2,'9739b0bf9c87','873356b350f3','{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}}',8);
INSERT INTO "state_rows" VALUES('category','client-beta-gmbh',NULL,'active',0,1,'96e3e8d5-9b59-4afa-b6fe-d3a35326a62b',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',4,'9739b0bf9c87','873356b350f3','{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}}',8);
INSERT INTO "state_rows" VALUES('category','internal',NULL,'active',0,1,'0e17cd40-8fa6-4f19-a8d6-cb0255909a12',0,NULL,'manifests/written.yaml',3,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"label":"Internal"},"keywords":[],"metadata":{}}',8);
INSERT INTO "state_rows" VALUES('category','leaves',NULL,'active',0,1,'f04e358e-ef31-4b2d-ba42-e26ef2a61bc0',0,NULL,'manifests/written.yaml',4,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"label":"It goes with its tags"},"keywords":[],"metadata":{}}',8);
INSERT INTO "state_rows" VALUES('activity-type','A101',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',6,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"description":"All that comes before","enableIfNew":true,"label":"Plan and prepare"},"keywords":[],"metadata":{}}',10);
INSERT INTO "state_rows" VALUES('activity-type','A102',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"enableIfNew":false,"label":"Research","reenableIfArchived":true},"keywords":[],"metadata":{}}',10);
INSERT INTO "state_rows" VALUES('activity-type','A103',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',8,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"enableIfNew":true,"label":"Drafting"},"keywords":[],"metadata":{}}',10);
INSERT INTO "state_rows" VALUES('tag','M-001','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',2,'9739b0bf9c87','873356b350f3','{"fields":{"category":"internal","description":"Opposition Müller (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-001 file","M-001"],"metadata":{"Client":"ACME"}}',12);
INSERT INTO "state_rows" VALUES('tag','M-002','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'9739b0bf9c87','873356b350f3','{"fields":{"category":"internal","description":"Licence agreement (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-002 file","M-002"],"metadata":{"Client":"ACME"}}',12);
INSERT INTO "state_rows" VALUES('tag','M-003','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',4,'9739b0bf9c87','873356b350f3','{"fields":{"category":"internal","description":"Appeal, second instance (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-003 file","M-003"],"metadata":{"Client":"Beta GmbH"}}',12);
INSERT INTO "state_rows" VALUES('tag','Old name','category/internal','active',0,1,NULL,1,NULL,'manifests/written.yaml',19,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"category":"internal","description":"It is renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","Old name"],"metadata":{}}',12);
INSERT INTO "state_rows" VALUES('tag','Member','category/leaves','active',0,1,NULL,0,NULL,'manifests/written.yaml',20,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"category":"leaves","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["its word","Member"],"metadata":{}}',12);
INSERT INTO "state_rows" VALUES('tag','Forgotten','category/internal','active',0,1,NULL,0,NULL,'manifests/written.yaml',21,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Forgotten"],"metadata":{}}',12);
INSERT INTO "state_rows" VALUES('tag','Retired','category/internal','active',0,1,NULL,0,NULL,'manifests/written.yaml',22,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["long over","Retired"],"metadata":{}}',12);
INSERT INTO "state_rows" VALUES('tag','Deleted',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',23,NULL,NULL,'9739b0bf9c87','873356b350f3','{"fields":{"excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Deleted"],"metadata":{}}',12);
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
INSERT INTO "state_runs" VALUES('09c1c4f2cdd8',1.79584785847993826861e+09,1.79584785849541282657e+09,'apply','698070b03ead','desk','robin',NULL,NULL,NULL,'complete','{"counts":{"applied":2,"failed":0,"skipped":0,"unknown":0}}');
INSERT INTO "state_runs" VALUES('9739b0bf9c87',1.79584785871688079831e+09,1.79584785873516511924e+09,'apply','873356b350f3','desk','robin',NULL,NULL,NULL,'complete','{"counts":{"applied":15,"failed":0,"skipped":0,"unknown":0},"limits":{"activityTypes":"25%","fields":"50%","keywords":"50%","metadata":"50%","tags":"25%"}}');
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
	made TEXT NOT NULL, 
	run TEXT NOT NULL, 
	undone_by TEXT NOT NULL, 
	PRIMARY KEY (kind, name)
);
CREATE INDEX ix_inbox_groups_asked ON inbox_groups (asked);
CREATE INDEX ix_inbox_groups_state ON inbox_groups (state);
CREATE INDEX ix_inbox_groups_waiting ON inbox_groups (waiting);
CREATE INDEX ix_inbox_groups_offered ON inbox_groups (offered);
CREATE INDEX inbox_deliveries_sink ON inbox_deliveries (sink, last);
CREATE INDEX ix_inbox_events_group_id ON inbox_events (group_id);
CREATE INDEX ix_state_rows_category ON state_rows (category);
CREATE INDEX ix_state_journal_run ON state_journal (run);
CREATE INDEX state_journal_key ON state_journal (kind, name);
CREATE INDEX ix_state_runs_plan ON state_runs ("plan");
CREATE INDEX ix_state_runs_started ON state_runs (started);
CREATE INDEX state_rows_moving ON state_rows (kind) WHERE former IS NOT NULL;
COMMIT;
