"""Invalid manifests: the text, the code and place of each expected error in order, and words of a message."""

from __future__ import annotations

Bad = tuple[str | bytes, str, str]

MERGED = "<<<<<<< HEAD\n  - name: a\n=======\n  - name: b\n>>>>>>> feature/x\n"
LONG, LONG_KEY = "k" * 1025, "a key has more than 1,024 characters"
BAD: dict[str, Bad] = {
    # --- syntax
    "tab as indentation": ("tags:\n\t- name: a\n", "yaml-syntax 2:1", "tab"),
    "tab inside an item": ("tags:\n  - name: a\n\t  url: http://b\n", "yaml-syntax 3:1", "tab"),
    "colon in plain text": ("tags:\n  - name: a: b\n", "yaml-syntax 2:12", "quotes"),
    "list never closed": ("tags:\n  - name: a\n    keywords: [x, y\n    url: http://z\n", "yaml-syntax 3:15", "closed"),
    "quote never closed": ('tags:\n  - name: "a\n    url: http://z\n', "yaml-syntax 2:11", "never closed"),
    "wrong indentation": ("tags:\n  - name: a\n   url: http://b\n", "yaml-syntax 3:4", "indentation"),
    "text behind a bar": ("tags:\n  - name: |a\n", "yaml-syntax 2:12", "next line"),
    "text behind an angle bracket": ("tags:\n  - name: > 5\n", "yaml-syntax 2:13", "next line"),
    "a comment that hides a bracket": ("tags:\n  - {name: A, description: b #c}\n", "yaml-syntax 2:5", "` #` begins"),
    "colon before a comma": ("tags:\n  - {name: a, keywords: [b:, c]}\n", "yaml-syntax 2:27", "in brackets"),
    "starts with %": ("%a: b\ntags: []\n", "yaml-syntax 1:3", "`%YAML 1.2`"),
    "a tag with a bracket": ("tags:\n  - name: !a{} b\n", "yaml-syntax 2:13", "`!"),
    "a tag with a handle": ("tags:\n  - name: !a!b c\n", "yaml-syntax 2:11", "`!"),
    "starts with @": ("tags:\n  - name: @a\n", "yaml-syntax 2:11", "`@`"),
    "unknown escape": ('tags:\n  - name: "\\q"\n', "yaml-syntax 2:12", "escape"),
    "half a surrogate pair": ('tags:\n  - name: "\\ud83d"\n', "yaml-syntax 2:14", "surrogate"),
    "errors before a syntax error": (
        "tags:\n  - nam: a\n---\ntags:\n  - name: a: b\n", "unknown-field 2:5, yaml-syntax 5:12", "",
    ),
    # --- merges
    "two conflicts": (
        f"tags:\n{MERGED}  - name: c\n{MERGED}", "merge-conflict 2:1, merge-conflict 8:1", "lines 2 to 6",
    ),
    "a conflict with the base": (
        "tags:\n<<<<<<< a\n  - name: a\n||||||| 3af\n=======\n>>>>>>> b\n", "merge-conflict 2:1", "'a' and 'b'",
    ),
    "a conflict with CRLF": (f"tags:\n{MERGED}".replace("\n", "\r\n"), "merge-conflict 2:1", "not resolved"),
    "a conflict without names": ("tags:\n<<<<<<<\n=======\n>>>>>>>\n", "merge-conflict 2:1", "lines 2 to 4"),
    "the first mark of a conflict": ("tags:\n<<<<<<< HEAD\n  - name: a\n", "merge-conflict 2:1", "remove it"),
    "a conflict with longer marks, and another in its base": (
        f"tags:\n{'<' * 9} a\n{'|' * 9} 3af\n{'<' * 11} c\n{'=' * 11}\n{'>' * 11} d\n{'=' * 9}\n{'>' * 9} b\n",
        "merge-conflict 2:1", "lines 2 to 8",
    ),
    "the first marks of a conflict": (
        "tags:\n<<<<<<< HEAD\n  - name: a\n=======\n", "merge-conflict 2:1, merge-conflict 4:1", "remove it",
    ),
    "the mark of a conflict's base": ("tags:\n  - name: a\n||||||| 3af\n", "merge-conflict 3:1", "remove it"),
    "the middle mark of a conflict": ("tags:\n  - name: a\n=======\n", "merge-conflict 3:1", "remove it"),
    "the last mark of a conflict": ("tags:\n  - name: a\n>>>>>>> b\n", "merge-conflict 3:1", "remove it"),
    # --- instants
    **{
        f"a year that calendars do not have: {text}": (
            f"tags:\n  - name: Alpha\n    createdTimestamp: {text}\n",
            "bad-value 3:23",
            "in the years 1 to 9999",
        )
        for text in (
            *("10000-01-01T00:00:00Z", "'0000-12-31T00:00:00Z'", "-0001-01-01T00:00:00Z", "253402300800000"),
            *("-62135596800001", "99999999999999999999", "'9999-12-31T23:59:59-00:01'", "'0001-01-01T00:00:00+00:01'"),
        )
    },
    "no number": ("tags:\n  - name: Alpha\n    createdTimestamp: .nan\n", "bad-value 3:23", "a date and time"),
    # --- defaults
    "metadata of a wrong type over defaults": (
        "defaults: {tags: {metadata: {a: b}}}\ntags:\n  - name: Alpha\n    metadata: x\n", "wrong-type 4:15", "",
    ),
    "defaults of a wrong type under metadata": (
        "defaults: {tags: {metadata: x}}\ntags:\n  - name: Alpha\n    metadata: {a: b}\n", "wrong-type 1:29", "",
    ),
    # --- YAML that manifests do not allow
    "duplicate key": ("tags:\n  - name: a\n    url: http://x\n    url: http://y\n", "duplicate-key 4:5", "line 3"),
    "duplicate section": ("tags: []\ntags: []\n", "duplicate-key 2:1", "line 1"),
    "own tag": ("tags:\n  - name: !secret x\n", "unsupported-tag 2:11", ""),
    "merge key": ("tags:\n  - name: a\n    <<: {url: http://x}\n", "merge-key 3:5", "defaults"),
    "structured key": ("tags:\n  - name: a\n    [x]: y\n", "complex-key 3:5", ""),
    "missing key": ("tags:\n  - name: a\n    ?\n    : y\n", "empty-key 3:6", ""),
    "missing key on a line of its own": ("tags:\n  - name: a\n    : y\n", "yaml-syntax 3:5", ""),
    "missing comma": ('{"tags": [{"name": "a"}\n {"name": "b"}]}', "yaml-syntax 2:2", "`,`"),
    "mapping never closed": ("tags:\n  - {name: a\n  - name: b\n", "yaml-syntax 2:5", "closed"),
    "missing colon": ("tags:\n  - name: a\n    url x\n    path: y\n", "yaml-syntax 3:5", "`:`"),
    "byte order mark in the middle": ("tags:\n  - name: a\ufeff\n", "control-character 2:12", ""),
    "list never closed at the end": ("tags: [\n", "yaml-syntax 1:7", "never closed"),
    "unknown alias": ("tags:\n  - name: *a\n", "unknown-alias 2:11", "&a"),
    "recursive alias": ("tags: &t\n  - *t\n", "recursive-alias 2:5", ""),
    "a problem in what an alias names": (
        "tags:\n  - {name: a, visibility: &v x}\n  - {name: b, visibility: *v}\n  - {name: c, visibility: *v}\n",
        "bad-value 2:27", "(used again in lines 3, 4)",
    ),
    "a tag and its alias": ("tags:\n  - &t {name: a}\n  - *t\n", "duplicate-resource 2:9", "by an alias"),
    "long key": (f"tags:\n  - name: a\n    {LONG}: y\n", "yaml-syntax 3:5", LONG_KEY),
    "long key in quotes": (f"{{'tags': [{{'name': 'a', '{LONG}': 1}}]}}", "yaml-syntax 1:25", LONG_KEY),
    "long key of a list": (f"tags:\n  - {LONG}: y\n", "yaml-syntax 2:5", LONG_KEY),
    "colon in long text": (f"tags:\n  - name: {LONG}: y\n", "yaml-syntax 2:1036", "quotes"),
    # --- characters
    "not UTF-8": (b"tags:\n  - name: caf\xe9\n", "not-utf8 2:14", "0xe9"),
    "UTF-16": ("tags: []\n".encode("utf-16"), "not-utf8 1:1", "UTF-16"),
    "UTF-16 without a mark": ("tags: []\n".encode("utf-16-be"), "not-utf8 1:1", "UTF-16"),
    "NUL in the file": (b"tags:\n  - name: a\x00\n", "control-character 2:12", "U+0000"),
    "NUL escaped": ('tags:\n  - name: "a\\x00"\n', "control-character 2:11", "U+0000"),
    "line separator": ("tags:\n  - name: a\u2028b\n", "control-character 2:12", ""),
    "line break in a name": ('tags:\n  - name: "a\\nb"\n', "control-character 2:11", "line feed"),
    "tab in a keyword": ('tags:\n  - name: abc\n    keywords: ["a\\tb"]\n', "control-character 3:16", ""),
    "bell in a description": ('tags:\n  - name: a\n    description: "\\a"\n', "control-character 3:18", ""),
    "control character in a metadata name": (
        'tags:\n  - name: a\n    metadata: {"a\\x01": b}\n', "control-character 3:16", "",
    ),
    # --- names of fields and sections
    "unknown field": ("tags:\n  - name: a\n    keyword: [x]\n", "unknown-field 3:5", "did you mean `keywords`?"),
    "the interface's name of a field": (
        "tags:\n  - name: a\n    additionalKeywords: [x]\n", "unknown-field 3:5", "did you mean `keywords`?",
    ),
    "unknown section": ("tag:\n  - name: a\n", "unknown-section 1:1", "did you mean `tags`?"),
    "field without a section": ("tags:\n  - name: a\ndescription: x\n", "unknown-section 3:1", "check the indentation"),
    "generate": ("generate:\n  - forEach: {csv: x}\n", "missing-field 2:5, bad-source 2:20", "`tags`"),
    "no name": ("tags:\n  - description: x\n    url: http://y\n", "missing-field 2:5", "`name`"),
    "no name, dash alone": ("tags:\n  -\n    description: x\n", "missing-field 3:5", "`name`"),
    "no label": ("activityTypes:\n  - code: a\n", "missing-field 2:5", "`label`"),
    "neither code nor label": ("activityTypes:\n  - {description: a}\n", "missing-field 2:6, missing-field 2:6", ""),
    "no way of leaving": ("removed:\n  - tag: a\n", "missing-field 2:5", "`as`"),
    # --- values
    "list for text": ("tags:\n  - name: [a]\n", "wrong-type 2:11", "a list"),
    "mapping for text": ("tags:\n  - name: a\n    description: {{ x }}\n", "complex-key 3:19", "in quotes"),
    "text for list": ("tags:\n  - name: a\n    keywords: x\n", "wrong-type 3:15", "a list of strings like [a, b]"),
    "text for metadata": ("tags:\n  - name: a\n    metadata: x\n", "wrong-type 3:15", ""),
    "nested metadata": ("tags:\n  - name: a\n    metadata:\n      A: {B: c}\n", "wrong-type 4:11", ""),
    "text for a section": ("tags: a\n", "wrong-type 1:7", "a list"),
    "mapping for a section": ("tags:\n  name: a\n", "wrong-type 2:3", "a list"),
    "text for a tag": ("tags:\n  - a\n", "wrong-type 2:5", "fields like `name: value`"),
    "a list for a manifest": ("- name: a\n", "wrong-type 1:1", "sections"),
    "text for previously": ("tags:\n  - name: a\n    previously: b\n", "wrong-type 3:17", ""),
    "a name without a value": ("tags:\n  - name:\n", "null-value 2:10", "add a value"),
    "a label without a value": ("activityTypes:\n  - {code: a, label: ~}\n", "null-value 2:22", "add a value"),
    "columns without a value": (
        "generate:\n  - {forEach: {csv: x.csv, columns: ~}, tags: [{name: x}]}\n", "null-value 2:37", "add a value",
    ),
    "an item without a value": ("tags:\n  - {name: a, keywords: [~]}\n", "null-value 2:26", "add a value"),
    "no value": ("tags:\n  - name: a\n    url:\n", "null-value 3:9", 'write "" to clear it'),
    "null": ("tags:\n  - name: a\n    url: null\n", "null-value 3:10", ""),
    "tilde": ("tags:\n  - name: a\n    metadata: {A: ~}\n", "null-value 3:19", ""),
    "section without a value": ("tags:\n", "null-value 1:6", "write []"),
    "item without a value": ("tags:\n  - name: a\n  -\n", "null-value 3:4", ""),
    "yes for true": ("tags:\n  - name: a\n    protect: yes\n", "wrong-type 3:14", "true or false"),
    "quoted true": ('tags:\n  - name: a\n    protect: "true"\n', "wrong-type 3:14", "without quotes"),
    "small visibility": ("tags:\n  - name: a\n    visibility: private\n", "bad-value 3:17", "did you mean `PRIVATE`?"),
    "bare date": (
        "tags:\n  - name: a\n    closedTimestamp: 2024-05-01\n", "bad-value 3:22", "add the time and the offset",
    ),
    "no such day": ("tags:\n  - name: a\n    closedTimestamp: '2024-02-30T00:00:00Z'\n", "bad-value 3:22", ""),
    "time without offset": ("tags:\n  - name: a\n    closedTimestamp: 2024-02-20T00:00:00\n", "bad-value 3:22", ""),
    "unknown way of leaving": ("removed:\n  - {tag: a, as: deleted}\n", "bad-value 2:18", "did you mean `delete`?"),
    "empty name": ('tags:\n  - name: ""\n', "empty-name 2:11", ""),
    "blank name": ('tags:\n  - name: "  "\n', "empty-name 2:11", ""),
    "blanks around a name": ('tags:\n  - name: "a "\n', "surrounding-blanks 2:11", ""),
    "empty label": ('activityTypes:\n  - code: a\n    label: ""\n', "empty-value 3:12", ""),
    "empty keyword": ('tags:\n  - name: abc\n    keywords: [xyz, ""]\n', "empty-value 3:21", ""),
    "empty metadata name": ('tags:\n  - name: a\n    metadata: {"": x}\n', "empty-value 3:16", ""),
    # --- resources in conflict
    "same tag twice": ("tags:\n  - name: a\n  - name: a\n", "duplicate-resource 3:5", "manifests/m.yaml:2"),
    "same tag twice on a line": ("tags: [{name: a}, {name: a}]\n", "duplicate-resource 1:20", "on this line"),
    "same tag in two documents": (
        "tags: [{name: a}]\n---\ntags:\n  - url: http://x\n    name: a\n", "duplicate-resource 4:5", "",
    ),
    "both categories": ("tags:\n  - name: a\n    tagCategoryId: '1'\n    category: ''\n", "conflicting-fields 4:5", ""),
    "unknown category": (
        "tagCategories:\n  - externalId: acme\ntags:\n  - name: a\n    category: acne\n", "unknown-category 5:15",
        "did you mean `acme`?",
    ),
    "unknown category as a default": (
        "defaults:\n  tags:\n    category: acme\ntags:\n  - name: a\n", "unknown-category 3:15", "",
    ),
    "removed and declared": (
        "tags:\n  - name: a\nremoved:\n  - {tag: a, as: forget}\n", "removed-and-declared 4:6", "",
    ),
    "removed twice": ("removed:\n  - {tag: a, as: forget}\n  - {tag: a, as: delete}\n", "duplicate-resource 3:6", ""),
    "renamed from itself": ("tags:\n  - name: a\n    previously: [a]\n", "previously-own-name 3:18", ""),
    "renamed from a declared one": (
        "tags:\n  - name: a\n  - name: b\n    previously: [a]\n", "previously-declared 4:18", "",
    ),
    "two renamed from one": (
        "tags:\n  - {name: a, previously: [o]}\n  - {name: b, previously: [o]}\n", "previously-claimed 3:28", "",
    ),
    # --- defaults
    "identity as a default": ("defaults:\n  tags: {name: a}\n", "unknown-field 2:10", ""),
    "bad default that nobody uses": ("defaults:\n  tags: {visibility: public}\n", "bad-value 2:22", "PUBLIC"),
    "unknown section of defaults": (
        "defaults:\n  tag: {url: http://a}\n", "unknown-section 2:3", "did you mean `tags`?",
    ),
    # --- several errors at once
    "many errors": (
        "tags:\n  - nme: a\n  - name: b\n    url:\n    protect: on\n  - name: b\n",
        "unknown-field 2:5, null-value 4:9, wrong-type 5:14, duplicate-resource 6:5", "",
    ),
}  # fmt: skip
