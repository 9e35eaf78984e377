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
INSERT INTO "state_approvals" VALUES('10@e23463b01de1f7b60ded','27e1b4ffcaa2','281536e8b6a2',1.79586548960842013354e+09,'[["keywords","tag","ACME-0042","acme opposition"],["metadata","tag","ACME-0042","Billing Group"],["categories","category","leaves","delete"],["tags","tag","Member","delete"],["activityTypes","activity-type","A102","delete"],["tags","tag","Deleted","delete"],["tags","tag","Forgotten","forget"],["tags","tag","M-002","forget"],["tags","tag","Retired","retire"],["sweep","activity-type","","everything that this project does not know"]]','[]',1.79586550059171700475e+09);
INSERT INTO "state_approvals" VALUES('removed:tag/Forgotten:forget','27e1b4ffcaa2','281536e8b6a2',1.79586548960842013354e+09,'[["tags","tag","Forgotten","forget"]]','[]',1.79586549834946036341e+09);
INSERT INTO "state_approvals" VALUES('removed:tag/Retired:retire','27e1b4ffcaa2','281536e8b6a2',1.79586548960842013354e+09,'[["tags","tag","Retired","retire"]]','[]',1.79586549978681540495e+09);
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
INSERT INTO "state_calls" VALUES(6,'27e1b4ffcaa2',NULL,NULL,1.79586548965244770055e+09,1.79586548965244770055e+09,'recorded',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(7,'27e1b4ffcaa2','c1','upsertTagCategories',1.79586548974937248229e+09,1.79586548986326622959e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(8,'27e1b4ffcaa2',NULL,NULL,1795865489.79568,1795865489.79568,'recorded',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(9,'27e1b4ffcaa2','c2','uploadActivityTypes',1.79586548998810195927e+09,1795865490.0485,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(10,'27e1b4ffcaa2','c3','upsertTags',1.79586549011905121809e+09,NULL,'intended',NULL,X'84A96F7065726174696F6EAA75707365727454616773A66C6561766573948DA36B657992A3746167A54D2D303031A66669656C647384AA7669736962696C697479A65055424C4943AB6465736372697074696F6ED9344F70706F736974696F6E204DC3BC6C6C657220616E64206F746865727320284578616D706C6520616E6420506172746E65727329A863617465676F7279A8696E7465726E616CB56578636C7564655461674E616D654B6579776F7264C2A7636C656172656490A86B6579776F72647392AA6D2D3030312066696C65A54D2D303031B06B6579776F7264735F64726F7070656490A86D6574616461746181A6436C69656E74A441434D45B06D657461646174615F64726F7070656490A6737461747573A6616374697665A577686F6C65C3A6666F726D6572C0A6756E73757265C0A6736F7572636593B86D616E6966657374732F67656E6572617465642E79616D6C0692AB6D6174746572732E63737602A770726F74656374C28DA36B657992A3746167A54D2D303035A66669656C647384AA7669736962696C697479A65055424C4943AB6465736372697074696F6ED9214E6577206D617474657220284578616D706C6520616E6420506172746E65727329A863617465676F7279A8696E7465726E616CB56578636C7564655461674E616D654B6579776F7264C2A7636C656172656490A86B6579776F72647392AA6D2D3030352066696C65A54D2D303035B06B6579776F7264735F64726F7070656490A86D6574616461746181A6436C69656E74A547616D6D61B06D657461646174615F64726F7070656490A6737461747573A6616374697665A577686F6C65C3A6666F726D6572C0A6756E73757265C0A6736F7572636593B86D616E6966657374732F67656E6572617465642E79616D6C0692AB6D6174746572732E63737605A770726F74656374C28DA36B657992A3746167A941434D452D30303432A66669656C647387AA7669736962696C697479A750524956415445AB6465736372697074696F6ED92C4F70706F736974696F6E20616761696E7374204550203132333435363720616E642045502037363534333231A863617465676F7279A9637573746F6D657273A375726CD92B68747470733A2F2F706D732E6578616D706C652E636F6D2F6D6174746572732F34322F6F76657276696577AA65787465726E616C4964A23432B06372656174656454696D657374616D70CF0000018F3361D280B56578636C7564655461674E616D654B6579776F7264C2A7636C656172656490A86B6579776F72647394AD45502031323334353637204231AD45502037363534333231204231A5436166C3A9A941434D452D30303432B06B6579776F7264735F64726F7070656490A86D6574616461746182A6436C69656E74AC41434D4520486F6C64696E67A45465616DA7706174656E7473B06D657461646174615F64726F7070656490A6737461747573A6616374697665A577686F6C65C3A6666F726D6572C0A6756E73757265C0A6736F7572636593B66D616E6966657374732F7772697474656E2E79616D6C09C0A770726F74656374C28DA36B657992A3746167A84E6577206E616D65A66669656C647384AA7669736962696C697479A65055424C4943AB6465736372697074696F6EAE4974207761732072656E616D6564A863617465676F7279A8696E7465726E616CB56578636C7564655461674E616D654B6579776F7264C2A7636C656172656490A86B6579776F72647392A66F6666696365A84E6577206E616D65B06B6579776F7264735F64726F7070656490A86D6574616461746180B06D657461646174615F64726F7070656490A6737461747573A6616374697665A577686F6C65C3A6666F726D6572C0A6756E73757265C0A6736F7572636593B66D616E6966657374732F7772697474656E2E79616D6C12C0A770726F74656374C3A369647382A8696E7465726E616CD92461313964646231332D336161382D346164632D613238372D616131376539393563363164A9637573746F6D657273D92435633433343734332D333531612D346137622D623263302D323331313162373636656137A97375727669766F727390','boot 000000000000000000000000000000000000',45280.226911201);
INSERT INTO "state_calls" VALUES(11,'41e4928baf7b','c1','upsertTags',1.79586549850998139377e+09,1.79586549852733659742e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(12,'41e4928baf7b','c2','deleteKeyword',1.79586549857502055169e+09,1.79586549860925650604e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(13,'41e4928baf7b','c3','deleteKeyword',1.79586549857502055169e+09,1.79586549860925650604e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(14,'41e4928baf7b','c4','deleteKeyword',1.79586549857502055169e+09,1.79586549860925650604e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(15,'41e4928baf7b','c5','deleteTagMetadata',1.79586549864692950244e+09,1.79586549867200517653e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(16,'41e4928baf7b','c6','deleteTag',1.79586549869727754588e+09,1.79586549872893929476e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(17,'41e4928baf7b','c8.1','uploadActivityTypes',1.79586549881935095785e+09,1.79586549885613441465e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(18,'41e4928baf7b','c9.1','completeSyncSession',1.7958654988574264049e+09,NULL,'intended',NULL,X'84A96F7065726174696F6EB3636F6D706C65746553796E6353657373696F6EA66C6561766573918DA36B657992AD61637469766974792D74797065A441313032A66669656C647380A7636C656172656490A86B6579776F72647390B06B6579776F7264735F64726F7070656490A86D6574616461746180B06D657461646174615F64726F7070656490A6737461747573A764656C65746564A577686F6C65C2A6666F726D6572C0A6756E73757265C0A6736F75726365C0A770726F74656374C0A369647380A97375727669766F727393A441313031A441313033A441313034','boot 000000000000000000000000000000000000',45281.651990871);
INSERT INTO "state_calls" VALUES(19,'16f1a7db2f0b','c2.1','uploadActivityTypes',1.7958655001191167832e+09,1.79586550018431472777e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(20,'16f1a7db2f0b','c3.1','completeSyncSession',1.79586550020340442656e+09,1.79586550028165960312e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(21,'16f1a7db2f0b','tags of other categories 1','upsertTags',1.79586550031523871414e+09,1.79586550038241052622e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(22,'16f1a7db2f0b','c1','deleteTagCategory',1.79586550042281031607e+09,1.79586550045133900646e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(23,'16f1a7db2f0b','tags without a category 1','upsertTags',1.79586550049990177155e+09,1.79586550054789805411e+09,'settled',NULL,NULL,NULL,NULL);
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
INSERT INTO "state_changes" VALUES(6,0,'tag','Old name',NULL,NULL,'{"status":["active","released"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(6,1,'category','client-beta-gmbh','manifests/clients.yaml.j2',4,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(6,2,'tag','M-003','manifests/generated.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(6,3,'activity-type','A101','manifests/written.yaml',5,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(6,4,'activity-type','A103','manifests/written.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(6,5,'tag','ACME-0042','manifests/written.yaml',9,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(6,6,'tag','Forgotten',NULL,NULL,'{"status":["active","released"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(6,7,'tag','M-002',NULL,NULL,'{"status":["active","released"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(7,0,'category','client-gamma','manifests/clients.yaml.j2',4,'{"body":{"fields":{"description":"Matters of Gamma","keywords":["gamma"],"label":"Gamma"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79586548986326622959e+09,NULL);
INSERT INTO "state_changes" VALUES(7,1,'category','customers','manifests/written.yaml',2,'{"body":{"fields":{"description":"Whom we work for","keywords":["client","customer"],"label":"Customers"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79586548986326622959e+09,NULL);
INSERT INTO "state_changes" VALUES(7,2,'category','clients',NULL,NULL,'{"fields":{"description":["Whom we work for",null],"keywords":[["client"],null],"label":["Clients",null]},"id":"5c434743-351a-4a7b-b2c0-23111b766ea7","status":["active","deleted"]}',1,'settled',1.79586548986326622959e+09,NULL);
INSERT INTO "state_changes" VALUES(7,3,'category','internal','manifests/written.yaml',3,'{"fields":{"label":["Internal","Internal matters"]}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(8,0,'tag','ACME-0042',NULL,NULL,'{"fields":{"category":["clients","customers"]}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(9,0,'activity-type','A101','manifests/written.yaml',5,'{"fields":{"description":["All that comes before","All that comes before and after"]}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(9,1,'activity-type','A104','manifests/written.yaml',7,'{"body":{"fields":{"enableIfNew":true,"label":"Appear"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(10,0,'tag','M-001','manifests/generated.yaml',6,'{"fields":{"description":["Opposition Müller (Example and Partners)","Opposition Müller and others (Example and Partners)"]}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(10,1,'tag','M-005','manifests/generated.yaml',6,'{"body":{"fields":{"category":"internal","description":"New matter (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-005 file","M-005"],"metadata":{"Client":"Gamma"}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(10,2,'tag','ACME-0042','manifests/written.yaml',9,'{"added":["EP 7654321 B1"],"fields":{"description":["Opposition against EP 1234567","Opposition against EP 1234567 and EP 7654321"],"url":["https://pms.example.com/matters/42","https://pms.example.com/matters/42/overview"]},"set":{"Team":"patents"},"was":{"Team":null}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(10,3,'tag','New name','manifests/written.yaml',18,'{"body":{"fields":{"category":"internal","description":"It was renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","New name"],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(11,0,'tag','M-001','manifests/generated.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(11,1,'tag','M-005','manifests/generated.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(11,2,'tag','ACME-0042','manifests/written.yaml',9,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(11,3,'tag','New name','manifests/written.yaml',18,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(12,0,'tag','ACME-0042','manifests/written.yaml',9,'{"deleted":["acme opposition"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(13,0,'tag','Retired','manifests/written.yaml',22,'{"deleted":["long over"],"status":["active","retired"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(14,0,'tag','Retired','manifests/written.yaml',22,'{"deleted":["Retired"],"status":["active","retired"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(15,0,'tag','ACME-0042','manifests/written.yaml',9,'{"unset":["Billing Group"],"was":{"Billing Group":"billable"}}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(16,0,'tag','Deleted',NULL,NULL,'{"deleted":["Deleted"],"fields":{"excludeTagNameKeyword":[false,null],"visibility":["PUBLIC",null]},"status":["active","deleted"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(17,0,'activity-type','A101','manifests/written.yaml',5,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(17,1,'activity-type','A103','manifests/written.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(17,2,'activity-type','A104','manifests/written.yaml',7,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(18,0,'activity-type','A102',NULL,NULL,'{"status":["active","deleted"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(19,0,'activity-type','A101','manifests/written.yaml',5,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(19,1,'activity-type','A103','manifests/written.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(19,2,'activity-type','A104','manifests/written.yaml',7,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(20,0,'activity-type','A102',NULL,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(21,0,'tag','ACME-0042','manifests/written.yaml',9,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(21,1,'tag','M-001','manifests/generated.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(21,2,'tag','M-003','manifests/generated.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(21,3,'tag','M-005','manifests/generated.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(21,4,'tag','New name','manifests/written.yaml',18,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(22,0,'category','leaves',NULL,NULL,'{"fields":{"label":["It goes with its tags",null]},"id":"db793450-e4d5-4574-b8b1-6e1b4b0ae937","status":["active","deleted"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(22,1,'tag','Member',NULL,NULL,'{"deleted":["its word","Member"],"fields":{"category":["leaves",null],"excludeTagNameKeyword":[false,null],"visibility":["PUBLIC",null]},"status":["active","deleted"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(22,2,'tag','Old name',NULL,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(23,0,'tag','Old name','manifests/written.yaml',19,'{"status":["released","active"]}',1,NULL,NULL,NULL);
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
INSERT INTO "state_facts" VALUES(1,11,'73cc2961-daf8-4ca1-b59d-c8e4a6db0b86','sandbox','Sandbox',1,NULL,NULL,'63c1953a-ecaa-48a0-a291-43cedfc620e8','{"matters.csv": 4}',NULL);
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
INSERT INTO "state_lock" VALUES(1,6,'70a3ca53','{"boot":"000000000000000000000000000000000000","command":"apply","host":"desk","job_url":null,"pid":10890,"reason":null,"space":"pid:[4026531836]","start":"4524557","user":"robin"}',1.795865499385263443e+09,1.79586555938526391982e+09,1.79586550068752527241e+09,0,60.0);
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
INSERT INTO "state_marks" VALUES(5,1.7958654820117852688e+09,'marked','bf589205-2e6e-409a-897f-90f39c080ea7');
INSERT INTO "state_marks" VALUES(6,1.79586548204616093635e+09,'marked','16168b9d-110c-4e56-b135-67d045575bc2');
INSERT INTO "state_marks" VALUES(7,1.79586548945146894451e+09,'marked','8331e397-465f-4343-b261-db7311177886');
INSERT INTO "state_marks" VALUES(8,1.7958654982165148258e+09,'marked','cadf04c2-6062-4e16-93b4-fb9da7768852');
INSERT INTO "state_marks" VALUES(9,1.7958654996324720383e+09,'marked','af12db49-2659-4098-92e1-12d17b1433bc');
INSERT INTO "state_marks" VALUES(10,1.7958655006450464725e+09,'marked','5bca8c63-357f-4e63-b63a-9bc4fa43e9be');
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
INSERT INTO "state_rows" VALUES('category','clients',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',2,NULL,NULL,'27e1b4ffcaa2','281536e8b6a2','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','ACME-0042','category/customers','active',0,1,NULL,0,NULL,'manifests/written.yaml',9,NULL,NULL,'16f1a7db2f0b','f5519dad2067','{"fields":{"category":"customers","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567 and EP 7654321","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42/overview","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","Café","ACME-0042","EP 7654321 B1"],"metadata":{"Client":"ACME Holding","Team":"patents"}}');
INSERT INTO "state_rows" VALUES('category','client-acme',NULL,'active',0,1,'fbdfe24e-363a-482c-9812-f9ef91ffe822',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',2,'814ec8bd3017','77a7c5237fbb','{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-beta-gmbh',NULL,'active',0,1,'4119387c-4d6c-468d-8626-b539b7c68f57',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',3,'27e1b4ffcaa2','281536e8b6a2','{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','internal',NULL,'active',0,1,'a19ddb13-3aa8-4adc-a287-aa17e995c61d',0,NULL,'manifests/written.yaml',3,NULL,NULL,'27e1b4ffcaa2','281536e8b6a2','{"fields":{"label":"Internal matters"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','leaves',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',4,NULL,NULL,'16f1a7db2f0b','f5519dad2067','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A101',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',5,NULL,NULL,'16f1a7db2f0b','f5519dad2067','{"fields":{"description":"All that comes before and after","enableIfNew":true,"label":"Plan and prepare"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A102',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'16f1a7db2f0b','f5519dad2067','{"fields":{"enableIfNew":false,"label":"Research","reenableIfArchived":true},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A103',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',6,NULL,NULL,'16f1a7db2f0b','f5519dad2067','{"fields":{"enableIfNew":true,"label":"Drafting"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','M-001','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',2,'16f1a7db2f0b','f5519dad2067','{"fields":{"category":"internal","description":"Opposition Müller and others (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-001 file","M-001"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-002','category/internal','released',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'27e1b4ffcaa2','281536e8b6a2','{"fields":{"category":"internal","description":"Licence agreement (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-002 file","M-002"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-003','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'16f1a7db2f0b','f5519dad2067','{"fields":{"category":"internal","description":"Appeal, second instance (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-003 file","M-003"],"metadata":{"Client":"Beta GmbH"}}');
INSERT INTO "state_rows" VALUES('tag','Old name','category/internal','active',0,1,NULL,1,NULL,'manifests/written.yaml',19,NULL,NULL,'16f1a7db2f0b','f5519dad2067','{"fields":{"category":"internal","description":"It is renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","Old name"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Member',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',20,NULL,NULL,'16f1a7db2f0b','f5519dad2067','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Forgotten','category/internal','released',0,1,NULL,0,NULL,'manifests/written.yaml',21,NULL,NULL,'27e1b4ffcaa2','281536e8b6a2','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Forgotten"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Retired','category/internal','retired',0,1,NULL,0,NULL,'manifests/written.yaml',22,NULL,NULL,'41e4928baf7b','f8cfda815d9c','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Deleted',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',23,NULL,NULL,'41e4928baf7b','f8cfda815d9c','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-gamma',NULL,'active',0,1,'664d74a2-a8b8-49a8-b6ee-d6b4d21b07c7',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',5,'27e1b4ffcaa2','281536e8b6a2','{"fields":{"description":"Matters of Gamma","keywords":["gamma"],"label":"Gamma"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','customers',NULL,'active',0,1,'5c434743-351a-4a7b-b2c0-23111b766ea7',0,NULL,'manifests/written.yaml',2,NULL,NULL,'27e1b4ffcaa2','281536e8b6a2','{"fields":{"description":"Whom we work for","keywords":["client","customer"],"label":"Customers"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A104',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'16f1a7db2f0b','f5519dad2067','{"fields":{"enableIfNew":true,"label":"Appear"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','M-005','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',5,'16f1a7db2f0b','f5519dad2067','{"fields":{"category":"internal","description":"New matter (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-005 file","M-005"],"metadata":{"Client":"Gamma"}}');
INSERT INTO "state_rows" VALUES('tag','New name','category/internal','active',0,1,NULL,1,NULL,'manifests/written.yaml',18,NULL,NULL,'16f1a7db2f0b','f5519dad2067','{"fields":{"category":"internal","description":"It was renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","New name"],"metadata":{}}');
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
INSERT INTO "state_runs" VALUES('27e1b4ffcaa2',1.79586548951998376845e+09,1.79586549841136765477e+09,'apply','281536e8b6a2','desk','robin',NULL,NULL,NULL,'died',NULL,NULL,'["10@e23463b01de1f7b60ded"]',1,NULL,'{"activityTypes":"25%","fields":"50%","keywords":"50%","metadata":"50%","tags":"25%"}',NULL,NULL,NULL);
INSERT INTO "state_runs" VALUES('41e4928baf7b',1.79586549831294369698e+09,1.79586549978869819636e+09,'apply','f8cfda815d9c','desk','robin',NULL,NULL,NULL,'died',NULL,NULL,'["10@e23463b01de1f7b60ded"]',1,NULL,'{"activityTypes":"25%","fields":"50%","keywords":"50%","metadata":"50%","tags":"25%"}',NULL,NULL,NULL);
INSERT INTO "state_runs" VALUES('16f1a7db2f0b',1.79586549977151775352e+09,1.79586550059293770784e+09,'apply','f5519dad2067','desk','robin',NULL,NULL,NULL,'complete','{"applied":3,"failed":0,"skipped":0,"unknown":0}',NULL,'["10@e23463b01de1f7b60ded"]',1,NULL,'{"activityTypes":"25%","fields":"50%","keywords":"50%","metadata":"50%","tags":"25%"}',NULL,NULL,NULL);
CREATE TABLE state_sessions (
	id TEXT NOT NULL, 
	run TEXT, 
	opened DOUBLE NOT NULL, 
	closed DOUBLE, 
	PRIMARY KEY (id)
);
INSERT INTO "state_sessions" VALUES('449d99d7-5271-422b-bee1-8b5a893ceb66','41e4928baf7b',1.79586549878753852843e+09,1.79586549992821240427e+09);
INSERT INTO "state_sessions" VALUES('d872c638-ee18-471e-9b3d-52a2f0df46b2','16f1a7db2f0b',1.7958655000618875026e+09,1.79586550023300766951e+09);
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
