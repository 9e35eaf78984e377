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
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'ledger','accepted',1,1.79585124970064496994e+09,1.79585124970429563522e+09,'L-g-posted',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'ledger','accepted',1,1.79585124970064496994e+09,1.79585124970429563522e+09,'L-g-away',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'ledger','accepted',1,1.79585124970064496994e+09,1.79585124970429563522e+09,'L-g-changed',NULL,NULL);
INSERT INTO "inbox_deliveries" VALUES('g-posted',1,'archive','accepted',1,1.79585124970537185666e+09,1.7958512497070908547e+09,NULL,NULL,'{"offset":0,"length":28,"hash":"28ce728fca2928e7fca4b47179395f139635e9183360c8932ba3503f5ac59aa2"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'archive','accepted',1,1.79585124970537185666e+09,1.7958512497070908547e+09,NULL,NULL,'{"offset":28,"length":28,"hash":"e691590bbe30160b902b7a4cbc24bfdbd6fbe691cbae37fdb4b9c1a25c191161"}');
INSERT INTO "inbox_deliveries" VALUES('g-changed',1,'archive','accepted',1,1.79585124970537185666e+09,1.7958512497070908547e+09,NULL,NULL,'{"offset":56,"length":34,"hash":"e0b932d6406759380f58c731dbf4e2581ecc1746e6f20e031ae300caaaef7c87"}');
INSERT INTO "inbox_deliveries" VALUES('g-away',1,'away','refused',2,1.79585124970834136013e+09,1.79585125073169207571e+09,NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL);
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
INSERT INTO "inbox_events" VALUES(1,'g-posted',1,1.79585124969224858284e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(2,'g-untagged',1,1.79585124969224953651e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(3,'g-unknown',1,1.79585124969225049017e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(4,'g-away',1,1.79585124969225168227e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(5,'g-changed',1,1.79585124969225263594e+09,'offered',NULL,NULL,'fetch',NULL,NULL);
INSERT INTO "inbox_events" VALUES(6,'g-untagged',1,1.79585124969810438154e+09,'verdict',NULL,'FAILURE','Assign a tag before posting.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(7,'g-unknown',1,1.79585124970064496994e+09,'verdict',NULL,'FAILURE','Matter Old name is not in the ledger.',NULL,NULL);
INSERT INTO "inbox_events" VALUES(8,'g-posted',1,1.79585124970429563522e+09,'attempt','ledger','accepted',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(9,'g-away',1,1.79585124970429563522e+09,'attempt','ledger','accepted',NULL,'L-g-away',NULL);
INSERT INTO "inbox_events" VALUES(10,'g-changed',1,1.79585124970429563522e+09,'attempt','ledger','accepted',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(11,'g-posted',1,1.7958512497070908547e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(12,'g-changed',1,1.7958512497070908547e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(13,'g-posted',1,1.7958512497070908547e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(14,'g-changed',1,1.7958512497070908547e+09,'verdict',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(15,'g-away',1,1.7958512497070908547e+09,'attempt','archive','accepted',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(16,'g-away',1,1.795851249710943222e+09,'attempt','away','refused','a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(17,'g-away',1,1.795851249710943222e+09,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_events" VALUES(18,'g-untagged',1,1.79585124971698164935e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(19,'g-unknown',1,1.79585124972076535217e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(20,'g-changed',1,1.79585124972076535217e+09,'status',NULL,'SUCCESS',NULL,'L-g-changed',NULL);
INSERT INTO "inbox_events" VALUES(21,'g-posted',1,1.79585124972076535217e+09,'status',NULL,'SUCCESS',NULL,'L-g-posted',NULL);
INSERT INTO "inbox_events" VALUES(22,'g-away',1,1.79585124972076535217e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(23,'g-changed',1,1.79585125026401782035e+09,'offered',NULL,NULL,'fetch',NULL,'{"description":"as posted again","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795851250014,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112807,"description":"Letter.docx","durationSecs":120,"firstObservedInHour":32,"source":"WT_DESKTOP","submittedDate":20261128073410014,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795851250014,"totalDurationHours":0.03,"totalDurationSecs":120,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}');
INSERT INTO "inbox_events" VALUES(24,'g-changed',1,1.79585125027725386621e+09,'conflict',NULL,'FAILURE','This time was posted before with different content, and archive and ledger took it in that form. Nothing was changed there; please ask your administrator.',NULL,'offered again with different content; archive and ledger took it as revision 1');
INSERT INTO "inbox_events" VALUES(25,'g-changed',1,1.79585125028033065798e+09,'status',NULL,'FAILURE',NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(26,'g-away',1,1.79585125043151569369e+09,'asked',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "inbox_events" VALUES(27,'g-away',1,1.79585125073169207571e+09,'attempt','away','refused','a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)',NULL,NULL);
INSERT INTO "inbox_events" VALUES(28,'g-away',1,1.79585125073169207571e+09,'verdict',NULL,'FAILURE','away rejected the time: something in it does not fit there.',NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
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
INSERT INTO "inbox_groups" VALUES('g-posted','acknowledged',1,'f83b80f287a3bb8e50271091b9e5a0d1309f1e4f4dfe9b2ceab8740593e89e30','fetch',1.79585124969224858284e+09,1.79585124969224858284e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','ACME-0042','{"description":"Reply to the examiner","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-posted","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795851249386,"tags":[{"description":"Opposition against EP 1234567","externalId":"42","name":"ACME-0042","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112806,"description":"Letter.docx","durationSecs":3600,"firstObservedInHour":34,"source":"WT_DESKTOP","submittedDate":20261128073409386,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795851249386,"totalDurationHours":1.0,"totalDurationSecs":3600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','SUCCESS',NULL,'L-g-posted',1.7958512497070908547e+09,0,1.79585124972076535217e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-untagged','acknowledged',1,'6568fba11d3ab3ec907ddd96796f8ddf85703c8d6aa51b708727c3b1c629d685','fetch',1.79585124969224953651e+09,1.79585124969224953651e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]',NULL,'{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-untagged","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795851249386,"tags":[],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112807,"description":"Letter.docx","durationSecs":600,"firstObservedInHour":24,"source":"WT_DESKTOP","submittedDate":20261128073409386,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795851249386,"totalDurationHours":0.17,"totalDurationSecs":600,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Assign a tag before posting.',NULL,1.79585124969810438154e+09,0,1.79585124971698164935e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-unknown','acknowledged',1,'f639b818d7a8312d64b9795f6bdbc2281dafac9ffc3a14105d29ac110f347c6f','fetch',1.79585124969225049017e+09,1.79585124969225049017e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','Old name','{"description":"","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-unknown","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795851249386,"tags":[{"description":"It is renamed","name":"Old name","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112807,"description":"Letter.docx","durationSecs":900,"firstObservedInHour":19,"source":"WT_DESKTOP","submittedDate":20261128073409386,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795851249386,"totalDurationHours":0.25,"totalDurationSecs":900,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','Matter Old name is not in the ledger.',NULL,1.79585124970064496994e+09,0,1.79585124972076535217e+09,NULL,NULL);
INSERT INTO "inbox_groups" VALUES('g-away','refused',1,'ecd8849f9031bb2dcfd15226d07d75830caf908c316a80a2b89176bbcb763df5','fetch',1.79585124969225168227e+09,1.79585124969225168227e+09,1,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"away","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-away","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795851249386,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112807,"description":"Letter.docx","durationSecs":1800,"firstObservedInHour":4,"source":"WT_DESKTOP","submittedDate":20261128073409386,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795851249386,"totalDurationHours":0.5,"totalDurationSecs":1800,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','away rejected the time: something in it does not fit there.',NULL,1.79585125073169207571e+09,1,1.79585124972076535217e+09,NULL,'a constraint is violated (SQLITE_CONSTRAINT_TRIGGER)');
INSERT INTO "inbox_groups" VALUES('g-changed','conflict',1,'602792973d92ba2b6a34c5539b9e5050d7adc2b623f5fa0aceb056572a973aab','fetch',1.79585124969225263594e+09,1.79585125026401782035e+09,2,'Jane Doe','["Jane Doe","jane.doe@example.com","jd","user-1"]','M-001','{"description":"as first posted","durationSplitStrategy":"DIVIDE_BETWEEN_TAGS","formattedNarrative":"","groupId":"g-changed","groupName":"","localDate":"2026-11-28","narrativeType":"NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS","status":"PENDING","submissionTime":1795851249386,"tags":[{"description":"Opposition Müller (Example and Partners)","name":"M-001","path":"/"}],"timeRows":[{"activity":"Microsoft Word","activityHour":2026112807,"description":"Letter.docx","durationSecs":60,"firstObservedInHour":33,"source":"WT_DESKTOP","submittedDate":20261128073409386,"timezone_name":"UTC","timezone_offset_min":0}],"timestamp":1795851249386,"totalDurationHours":0.02,"totalDurationSecs":60,"tzOffsetMins":0,"user":{"businessRole":"Associate","email":"jane.doe@example.com","experienceWeightingPercent":100,"externalId":"jd","name":"Jane Doe","userId":"user-1"}}','FAILURE','This time was posted before with different content, and archive and ledger took it in that form. Nothing was changed there; please ask your administrator.',NULL,1.79585125027725386621e+09,0,1.79585125028033065798e+09,NULL,'offered again with different content; archive and ledger took it as revision 1');
CREATE TABLE posted_time_mechanism (
	id INTEGER NOT NULL, 
	mechanism TEXT NOT NULL, 
	base_url TEXT NOT NULL, 
	callback_url TEXT, 
	key_digest TEXT, 
	registered DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "posted_time_mechanism" VALUES(1,'fetch','sandbox',NULL,NULL,1.79585124901760411269e+09);
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
INSERT INTO "state_approvals" VALUES('10@3fe61dc022dca106bfa9','48188ee2a1fb','fdff63f7eb50',1.79585125345489287369e+09,'[["keywords","tag","ACME-0042","acme opposition"],["metadata","tag","ACME-0042","Billing Group"],["categories","category","leaves","delete"],["tags","tag","Member","delete"],["activityTypes","activity-type","A102","delete"],["tags","tag","Deleted","delete"],["tags","tag","Forgotten","forget"],["tags","tag","M-002","forget"],["tags","tag","Retired","retire"],["sweep","activity-type","","everything that this project does not know"]]','[]',1.79585125350872302054e+09);
INSERT INTO "state_approvals" VALUES('removed:tag/Forgotten:forget','48188ee2a1fb','fdff63f7eb50',1.79585125345489287369e+09,'[["tags","tag","Forgotten","forget"]]','[]',1.79585125350872302054e+09);
INSERT INTO "state_approvals" VALUES('removed:tag/Retired:retire','48188ee2a1fb','fdff63f7eb50',1.79585125345489287369e+09,'[["tags","tag","Retired","retire"]]','[]',1.79585125350872302054e+09);
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
INSERT INTO "state_calls" VALUES(1,'2ad405ffa8f5','c1','upsertTagCategories',1795851248.56205,1.79585124856603240966e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(2,'2ad405ffa8f5','c2','upsertTags',1.79585124856839013101e+09,1.7958512485713248253e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(3,'2c088624d4d4','c1','upsertTagCategories',1.79585124880196475983e+09,1.79585124880556678767e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(4,'2c088624d4d4','c2','uploadActivityTypes',1.79585124880832338331e+09,1.79585124881100034709e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(5,'2c088624d4d4','c3','upsertTags',1.7958512488125360012e+09,1.79585124881533169747e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(6,'48188ee2a1fb',NULL,NULL,1.79585125345656275745e+09,1.79585125345656275745e+09,'recorded',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(7,'48188ee2a1fb','c1','upsertTagCategories',1.79585125346159124376e+09,1.79585125346531534196e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(8,'48188ee2a1fb',NULL,NULL,1.79585125346217083924e+09,1.79585125346217083924e+09,'recorded',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(9,'48188ee2a1fb','c2','uploadActivityTypes',1.79585125346795773508e+09,1.79585125347021532056e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(10,'48188ee2a1fb','c3','upsertTags',1.7958512534716711044e+09,1.79585125347408866881e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(11,'48188ee2a1fb','c4','deleteKeyword',1.79585125347526955606e+09,1.79585125348023962976e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(12,'48188ee2a1fb','c5','deleteKeyword',1.79585125347526955606e+09,1.79585125348023962976e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(13,'48188ee2a1fb','c6','deleteKeyword',1.79585125347526955606e+09,1.79585125348023962976e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(14,'48188ee2a1fb','c7','deleteTagMetadata',1.79585125348195695873e+09,1.79585125348401212696e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(15,'48188ee2a1fb','c8','deleteTag',1.79585125348518419262e+09,1.79585125348712110518e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(16,'48188ee2a1fb','c10.1','uploadActivityTypes',1.79585125348996758462e+09,1.79585125349216651914e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(17,'48188ee2a1fb','c11.1','completeSyncSession',1.79585125349280309674e+09,1.79585125349668693539e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(18,'48188ee2a1fb','tags of other categories 1','upsertTags',1.79585125349734306332e+09,1795851253.49927,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(19,'48188ee2a1fb','c9','deleteTagCategory',1795851253.50039,1.79585125350251960754e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(20,'48188ee2a1fb','tags without a category 1','upsertTags',1.79585125350499749188e+09,1.79585125350697398191e+09,'settled',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(21,NULL,NULL,NULL,1.79585125367081475259e+09,1.79585125367081475259e+09,'forgotten',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(22,'8f996e02753c',NULL,NULL,1.79585125371677541738e+09,1.79585125371677541738e+09,'recorded',NULL,NULL,NULL,NULL);
INSERT INTO "state_calls" VALUES(23,'8f996e02753c','c1','upsertTags',1.79585125372050404546e+09,1.79585125372287464145e+09,'settled',NULL,NULL,NULL,NULL);
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
INSERT INTO "state_changes" VALUES(3,0,'category','client-acme','manifests/clients.yaml.j2',4,'{"body":{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79585124880556678767e+09,NULL);
INSERT INTO "state_changes" VALUES(3,1,'category','client-beta-gmbh','manifests/clients.yaml.j2',4,'{"body":{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79585124880556678767e+09,NULL);
INSERT INTO "state_changes" VALUES(3,2,'category','internal','manifests/written.yaml',3,'{"body":{"fields":{"label":"Internal"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79585124880556678767e+09,NULL);
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
INSERT INTO "state_changes" VALUES(7,0,'category','client-gamma','manifests/clients.yaml.j2',4,'{"body":{"fields":{"description":"Matters of Gamma","keywords":["gamma"],"label":"Gamma"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79585125346531534196e+09,NULL);
INSERT INTO "state_changes" VALUES(7,1,'category','customers','manifests/written.yaml',2,'{"body":{"fields":{"description":"Whom we work for","keywords":["client","customer"],"label":"Customers"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,'settled',1.79585125346531534196e+09,NULL);
INSERT INTO "state_changes" VALUES(7,2,'category','clients',NULL,NULL,'{"fields":{"description":["Whom we work for",null],"keywords":[["client"],null],"label":["Clients",null]},"id":"5f108530-b9dd-46d9-8e17-6408f095efb8","status":["active","deleted"]}',1,'settled',1.79585125346531534196e+09,NULL);
INSERT INTO "state_changes" VALUES(7,3,'category','internal','manifests/written.yaml',3,'{"fields":{"label":["Internal","Internal matters"]}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(8,0,'tag','ACME-0042',NULL,NULL,'{"fields":{"category":["clients","customers"]}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(9,0,'activity-type','A101','manifests/written.yaml',5,'{"fields":{"description":["All that comes before","All that comes before and after"]}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(9,1,'activity-type','A104','manifests/written.yaml',7,'{"body":{"fields":{"enableIfNew":true,"label":"Appear"},"keywords":[],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(10,0,'tag','M-001','manifests/generated.yaml',6,'{"fields":{"description":["Opposition Müller (Example and Partners)","Opposition Müller and others (Example and Partners)"]}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(10,1,'tag','M-005','manifests/generated.yaml',6,'{"body":{"fields":{"category":"internal","description":"New matter (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-005 file","M-005"],"metadata":{"Client":"Gamma"}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(10,2,'tag','ACME-0042','manifests/written.yaml',9,'{"added":["EP 7654321 B1"],"fields":{"description":["Opposition against EP 1234567","Opposition against EP 1234567 and EP 7654321"],"url":["https://pms.example.com/matters/42","https://pms.example.com/matters/42/overview"]},"set":{"Team":"patents"},"was":{"Team":null}}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(10,3,'tag','New name','manifests/written.yaml',18,'{"body":{"fields":{"category":"internal","description":"It was renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","New name"],"metadata":{}},"status":[null,"active"]}',0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(11,0,'tag','ACME-0042','manifests/written.yaml',9,'{"deleted":["acme opposition"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(12,0,'tag','Retired','manifests/written.yaml',22,'{"deleted":["long over"],"status":["active","retired"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(13,0,'tag','Retired','manifests/written.yaml',22,'{"deleted":["Retired"],"status":["active","retired"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(14,0,'tag','ACME-0042','manifests/written.yaml',9,'{"unset":["Billing Group"],"was":{"Billing Group":"billable"}}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(15,0,'tag','Deleted',NULL,NULL,'{"deleted":["Deleted"],"fields":{"excludeTagNameKeyword":[false,null],"visibility":["PUBLIC",null]},"status":["active","deleted"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(16,0,'activity-type','A101','manifests/written.yaml',5,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(16,1,'activity-type','A103','manifests/written.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(16,2,'activity-type','A104','manifests/written.yaml',7,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(17,0,'activity-type','A102',NULL,NULL,'{"status":["active","deleted"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(18,0,'tag','M-003','manifests/generated.yaml',6,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(19,0,'category','leaves',NULL,NULL,'{"fields":{"label":["It goes with its tags",null]},"id":"b4deb67e-1852-4e90-b8ab-17078dc69e77","status":["active","deleted"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(19,1,'tag','Member',NULL,NULL,'{"deleted":["its word","Member"],"fields":{"category":["leaves",null],"excludeTagNameKeyword":[false,null],"visibility":["PUBLIC",null]},"status":["active","deleted"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(19,2,'tag','Old name',NULL,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(20,0,'tag','Old name','manifests/written.yaml',19,'{"status":["released","active"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(21,0,'tag','ACME-0042',NULL,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(22,0,'tag','Old name',NULL,NULL,'{"status":["active","released"]}',1,NULL,NULL,NULL);
INSERT INTO "state_changes" VALUES(23,0,'tag','ACME-0042','manifests/written.yaml',9,'{"body":{"fields":{"category":"customers","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567 and EP 7654321","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42/overview","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","EP 7654321 B1","Café","ACME-0042"],"metadata":{"Client":"ACME Holding","Team":"patents"}},"status":[null,"active"]}',0,NULL,NULL,NULL);
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
INSERT INTO "state_facts" VALUES(1,10,'6a4d8ecd-3549-4bf0-b0aa-e179fb49424d','sandbox','Sandbox',1,NULL,NULL,'4c1542f5-32ed-4ae1-a2ec-04281601d082','{"matters.csv": 4}',NULL);
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
INSERT INTO "state_lock" VALUES(1,5,'886109aa','{"boot":"000000000000000000000000000000000000","command":"apply","host":"desk","job_url":null,"pid":2644,"reason":null,"space":"pid:[4026531836]","start":"3102974","user":"robin"}',1.79585125369736909868e+09,1.7958513136973695755e+09,1.79585125391215395928e+09,0,60.0);
INSERT INTO "state_lock" VALUES(2,3,'3104a1a9','{"boot":"000000000000000000000000000000000000","command":"time retry","host":"desk","job_url":null,"pid":2644,"reason":null,"space":"pid:[4026531836]","start":"3102974","user":"robin"}',1.79585125051585340499e+09,1.79585131051585364337e+09,1.79585125073382902149e+09,0,60.0);
CREATE TABLE state_marks (
	id INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	verb TEXT NOT NULL, 
	change TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "state_marks" VALUES(1,1.79585124855124735835e+09,'marked','617f1290-42fa-4c31-8c38-a32e8c056716');
INSERT INTO "state_marks" VALUES(2,1.79585124875521850583e+09,'marked','82a118e0-1da4-47b4-88e1-9b2cc67d0681');
INSERT INTO "state_marks" VALUES(3,1.79585124879423451427e+09,'marked','38968f36-5b97-414e-b68a-0ace87095f0e');
INSERT INTO "state_marks" VALUES(4,1.79585124899164652826e+09,'marked','0ba8ce83-21cf-45cc-8161-5420f70563bb');
INSERT INTO "state_marks" VALUES(5,1.79585125345194315913e+09,'marked','6b64d008-b9ec-41f0-b84c-844cd94a2d2c');
INSERT INTO "state_marks" VALUES(6,1.7958512536509749889e+09,'marked','62dbf29b-1db6-4e73-a131-1436e4aa1533');
INSERT INTO "state_marks" VALUES(7,1.7958512536696631908e+09,'marked','9563b560-a1b9-4277-9ca6-ce78dc47ab5c');
INSERT INTO "state_marks" VALUES(8,1.79585125367264151572e+09,'marked','45673f94-5a1d-4a3f-9508-e69e1677f2e9');
INSERT INTO "state_marks" VALUES(9,1.79585125371224737164e+09,'marked','b1b47830-ddd0-4d7a-8edd-92eeb1f2fdcb');
INSERT INTO "state_marks" VALUES(10,1795851253.91074,'marked','2ba4bf94-24c1-482e-9172-26a251932b53');
CREATE TABLE state_paths (
	operation TEXT NOT NULL, 
	path TEXT NOT NULL, 
	PRIMARY KEY (operation, path)
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
	PRIMARY KEY (kind, name)
);
INSERT INTO "state_rows" VALUES('category','clients',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',2,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-acme',NULL,'active',0,1,'387ecc4c-551a-4d9b-bdd5-8355471c2b61',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',2,'2c088624d4d4','ff25e64d0072','{"fields":{"description":"Matters of ACME","keywords":["acme"],"label":"ACME"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-beta-gmbh',NULL,'active',0,1,'7285d5b4-7f9d-41b8-8be8-9c63455f43ad',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',3,'48188ee2a1fb','fdff63f7eb50','{"fields":{"description":"Matters of Beta GmbH","keywords":["beta gmbh"],"label":"Beta GmbH"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','internal',NULL,'active',0,1,'d0ef730e-a565-4e80-bcbf-eb55bad6e16c',0,NULL,'manifests/written.yaml',3,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{"label":"Internal matters"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','leaves',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',4,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A101',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',5,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{"description":"All that comes before and after","enableIfNew":true,"label":"Plan and prepare"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A102',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{"enableIfNew":false,"label":"Research","reenableIfArchived":true},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A103',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',6,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{"enableIfNew":true,"label":"Drafting"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','M-001','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',2,'48188ee2a1fb','fdff63f7eb50','{"fields":{"category":"internal","description":"Opposition Müller and others (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-001 file","M-001"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-002','category/internal','released',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'48188ee2a1fb','fdff63f7eb50','{"fields":{"category":"internal","description":"Licence agreement (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-002 file","M-002"],"metadata":{"Client":"ACME"}}');
INSERT INTO "state_rows" VALUES('tag','M-003','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',3,'48188ee2a1fb','fdff63f7eb50','{"fields":{"category":"internal","description":"Appeal, second instance (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-003 file","M-003"],"metadata":{"Client":"Beta GmbH"}}');
INSERT INTO "state_rows" VALUES('tag','Old name','category/internal','released',0,1,NULL,1,NULL,'manifests/written.yaml',19,NULL,NULL,'8f996e02753c','909f4a6f4dfd','{"fields":{"category":"internal","description":"It is renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","Old name"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Member',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',20,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Forgotten','category/internal','released',0,1,NULL,0,NULL,'manifests/written.yaml',21,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["Forgotten"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Retired','category/internal','retired',0,1,NULL,0,NULL,'manifests/written.yaml',22,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{"category":"internal","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','Deleted',NULL,'deleted',0,0,NULL,0,NULL,'manifests/written.yaml',23,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','client-gamma',NULL,'active',0,1,'728fb6be-b9f0-464a-88d9-4a4d5599db63',0,NULL,'manifests/clients.yaml.j2',4,'matters.csv',5,'48188ee2a1fb','fdff63f7eb50','{"fields":{"description":"Matters of Gamma","keywords":["gamma"],"label":"Gamma"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('category','customers',NULL,'active',0,1,'5f108530-b9dd-46d9-8e17-6408f095efb8',0,NULL,'manifests/written.yaml',2,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{"description":"Whom we work for","keywords":["client","customer"],"label":"Customers"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('activity-type','A104',NULL,'active',0,1,NULL,0,NULL,'manifests/written.yaml',7,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{"enableIfNew":true,"label":"Appear"},"keywords":[],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','M-005','category/internal','active',0,1,NULL,0,NULL,'manifests/generated.yaml',6,'matters.csv',5,'48188ee2a1fb','fdff63f7eb50','{"fields":{"category":"internal","description":"New matter (Example and Partners)","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["m-005 file","M-005"],"metadata":{"Client":"Gamma"}}');
INSERT INTO "state_rows" VALUES('tag','New name','category/internal','active',0,1,NULL,1,NULL,'manifests/written.yaml',18,NULL,NULL,'48188ee2a1fb','fdff63f7eb50','{"fields":{"category":"internal","description":"It was renamed","excludeTagNameKeyword":false,"visibility":"PUBLIC"},"keywords":["office","New name"],"metadata":{}}');
INSERT INTO "state_rows" VALUES('tag','ACME-0042','category/customers','active',0,1,NULL,0,NULL,'manifests/written.yaml',9,NULL,NULL,'8f996e02753c','909f4a6f4dfd','{"fields":{"category":"customers","createdTimestamp":1714554000000,"description":"Opposition against EP 1234567 and EP 7654321","excludeTagNameKeyword":false,"externalId":"42","url":"https://pms.example.com/matters/42/overview","visibility":"PRIVATE"},"keywords":["EP 1234567 B1","EP 7654321 B1","Café","ACME-0042"],"metadata":{"Client":"ACME Holding","Team":"patents"}}');
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
INSERT INTO "state_runs" VALUES('2ad405ffa8f5',1.7958512485541613102e+09,1.79585124857421207433e+09,'apply','a092cd68f48b','desk','robin',NULL,NULL,NULL,'complete','{"applied":2,"failed":0,"skipped":0,"unknown":0}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "state_runs" VALUES('2c088624d4d4',1795851248.7934,1.79585124881802177428e+09,'apply','ff25e64d0072','desk','robin',NULL,NULL,NULL,'complete','{"applied":15,"failed":0,"skipped":0,"unknown":0}',NULL,NULL,1,NULL,'{"activityTypes":"25%","fields":"50%","keywords":"50%","metadata":"50%","tags":"25%"}',NULL,NULL,NULL);
INSERT INTO "state_runs" VALUES('48188ee2a1fb',1.7958512534512486458e+09,1.79585125351008796689e+09,'apply','fdff63f7eb50','desk','robin',NULL,NULL,NULL,'complete','{"applied":16,"failed":0,"skipped":0,"unknown":0}',NULL,'["10@3fe61dc022dca106bfa9"]',1,NULL,'{"activityTypes":"25%","fields":"50%","keywords":"50%","metadata":"50%","tags":"25%"}',NULL,NULL,NULL);
INSERT INTO "state_runs" VALUES('8f996e02753c',1.79585125371159219738e+09,1.79585125372594928746e+09,'apply','909f4a6f4dfd','desk','robin',NULL,NULL,NULL,'complete','{"applied":1,"failed":0,"skipped":0,"unknown":0}',NULL,NULL,1,NULL,'{"activityTypes":"25%","fields":"50%","keywords":"50%","metadata":"50%","tags":"25%"}',NULL,NULL,NULL);
CREATE TABLE state_sessions (
	id TEXT NOT NULL, 
	run TEXT, 
	opened DOUBLE NOT NULL, 
	closed DOUBLE, 
	PRIMARY KEY (id)
);
INSERT INTO "state_sessions" VALUES('260ae5c1-2801-41b3-87c8-c85f17ed46e7','48188ee2a1fb',1.79585125348926973347e+09,1.79585125349478650098e+09);
CREATE TABLE state_undone (
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	made TEXT NOT NULL, 
	run TEXT NOT NULL, 
	undone_by TEXT NOT NULL, 
	PRIMARY KEY (kind, name)
);
CREATE INDEX ix_inbox_groups_state ON inbox_groups (state);
CREATE INDEX ix_inbox_groups_asked ON inbox_groups (asked);
CREATE INDEX ix_inbox_groups_waiting ON inbox_groups (waiting);
CREATE INDEX ix_inbox_groups_offered ON inbox_groups (offered);
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
