"""Examples of the YAML 1.2 specification, by their numbers, used as values in manifests."""

from __future__ import annotations

_VALUES = {
    "2.1": "\n    - Mark McGwire\n    - Sammy Sosa\n    - Ken Griffey",
    "2.2": "\n      hr:  65    # Home runs\n      avg: 0.278\n      rbi: 147",
    "2.3": "\n      american:\n        - Boston Red Sox\n      national:\n        - New York Mets",
    "2.4": "\n      -\n        name: Mark McGwire\n        hr: 65",
    "2.5": "\n    - [name        , hr, avg  ]\n    - [Mark McGwire, 65, 0.278]",
    "2.6": (
        "\n      Mark McGwire: {hr: 65, avg: 0.278}\n      Sammy Sosa: {\n        hr: 63,"
        "\n        avg: 0.288,\n      }"
    ),
    "2.9": "\n      - Mark McGwire\n      # Following node labeled SS\n      - &SS Sammy Sosa",
    "2.10": "\n      - *SS # Subsequent occurrence\n      - Ken Griffey",
    "2.11": "\n      ? - Detroit Tigers\n        - Chicago cubs\n      : - 2001-07-23",
    "2.12": "\n      - item    : Super Hoop\n        quantity: 1",
    "2.13": " |\n      \\//||\\/||\n      // ||  ||__",
    "2.14": " >\n      Mark McGwire's\n      year was crippled\n      by a knee injury.",
    "2.17 unicode": ' "Sosa did fine.\\u263A"',
    "2.17 control": ' "\\b1998\\t1999\\t2000\\n"',
    "2.17 hex": ' "\\x0d\\x0a is \\r\\n"',
    "2.17 single": " '\"Howdy!\" he cried.'",
    "2.17 quoted": " ' # Not a ''comment''.'",
    "2.17 tie": " '|\\-*-/|'",
    "2.18 plain": "\n      This unquoted scalar\n      spans many lines.",
    "2.18 quoted": ' "So does this\n      quoted scalar.\\n"',
    "2.19": "\n      canonical: 12345\n      octal: 0o14\n      hexadecimal: 0xC",
    "2.20": "\n      exponential: 12.3015e+02\n      negative infinity: -.inf\n      not a number: .nan",
    "2.21": "\n      null:\n      booleans: [ true, false ]\n      string: '012345'",
    "2.23": " !!str 2002-04-28",
    "5.3": "\n      sequence:\n      - one\n      mapping:\n        ? sky\n        : blue\n        sea : green",
    "5.4": "\n      sequence: [ one, two, ]\n      mapping: { sky: blue, sea: green }",
    "5.5": " # Comment only.",
    "5.6": " &anchor value",
    "5.7": " >\n      some\n      text",
    "5.8": " \"text\"\n    managedBy: 'text'",
    "5.10 at": " @text",
    "5.10 backquote": " `text",
    "5.12": ' "Quoted \t"',
    "5.13": ' "Fun with \\\\\n      \\" \\a \\b \\e \\f \\\n      \\n \\r \\t \\v \\0"',
    "5.14": ' "\\c\n      \\xq-"',
    "6.1": "\n      Not indented:\n       By one space: |\n          By four\n            spaces",
    "6.2": "\n      ? a\n      : -\tb\n        -  -\tc\n           - d",
    "6.3": "\t bar",
    "6.4": " plain\n      text\n       lines",
    "6.5": ' "Empty line\n   \n      as a line feed"',
    "6.6": " >-\n      trimmed\n\n      as\n      space",
    "6.8": ' "\n      foo \n     \n      \t bar\n\n      baz\n      "',
    "6.9": "    # Comment\n      value",
    "6.10": "\n  # Comment\n   \n\n",
    "6.12": "\n      { first: Sammy, last: Sosa }:\n        # Statistics:\n        hr: 65",
    "6.23": ' !!str &a1 "foo"',
    "6.28": " !a value",
    "7.2": "\n      foo : !!str,\n      !!str : bar",
    "7.4": '\n      \'implicit block key\' : [ "implicit flow key" : value ]',
    "7.5": ' "folded \n      to a space,\t\n     \n      to a line feed, or \t\\\n       \\ \tnon-content"',
    "7.6": ' " 1st non-empty\n\n     2nd non-empty \n    3rd non-empty "',
    "7.7": " 'here''s to \"quotes\"'",
    "7.8": "\n      'implicit block key' : [ 'implicit flow key' : value, ]",
    "7.9": " ' 1st non-empty\n\n     2nd non-empty \n    3rd non-empty '",
    "7.10 outside": "\n    - ::vector\n    - \": - ()\"\n    - Up, up, and away!\n    - -123\n    - http://example.com/foo#bar",
    "7.10 inside": " [ ::vector, \": - ()\", \"Up, up and away!\", -123, http://example.com/foo#bar ]",
    "7.11": "\n      implicit block key : [\n        implicit flow key : value,\n       ]",
    "7.12": " 1st non-empty\n\n     2nd non-empty \n      3rd non-empty",
    "7.13": "\n    - [ one, two, ]\n    - [three ,four]",
    "7.14": (
        " [\n    \"double\n     quoted\", 'single\n               quoted',\n    plain"
        "\n     text, [ nested ],\n    single: pair,\n    ]"
    ),
    "7.15": "\n    - { one : two , three: four , }\n    - {five: six,seven : eight}",
    "7.16": " {\n    ? explicit: entry,\n    implicit: entry,\n    ?\n    }",
    "7.17": ' {\n    unquoted : "separate",\n    http://foo.com,\n    omitted value:,\n    : omitted key,\n    }',
    "7.18": ' {\n    "adjacent":value,\n    "readable": value,\n    "empty":\n    }',
    "7.18 on a line": ' {"adjacent":value, "readable": value}',
    "7.19": " [foo: bar]",
    "7.20": " [? foo\n     bar : baz]",
    "7.21": ' [YAML : separate, : empty key entry, {JSON: like}:adjacent]',
    "7.22": " [ foo\n     bar: invalid ]",
    "7.23": "\n    - [ a, b ]\n    - { a: b }\n    - \"a\"\n    - 'b'\n    - c",
    "7.24": '\n    - !!str "a"\n    - \'b\'\n    - &anchor "c"\n    - *anchor\n    - !!str',
    "8.1": "\n    - | # Empty header\n     literal\n    - >1 # Indentation indicator\n      folded",
    "8.4": "\n      strip: |-\n        text\n      clip: |\n        text\n      keep: |+\n        text",
    "8.14": "\n    - one\n    - two : three",
    "8.15": "\n    - # Empty\n    - |\n     block node\n    - - one\n      - two\n    - one: two",
    "8.16": "\n     key: value",
    "8.17": "\n      ? explicit key # Empty value\n      ? |\n        block key\n      : - one",
    "8.18": "\n      plain key: in-line value\n      : # Both empty\n      \"quoted key\":\n      - entry",
    "8.20": (
        '\n    -\n      "flow in block"\n    - >\n     Block scalar'
        '\n    - !!map # Block collection\n      foo : bar'
    ),
    "8.22": (
        "\n      sequence: !!seq\n      - entry\n      - !!seq\n       - nested"
        "\n      mapping: !!map\n       foo: bar"
    ),
}  # fmt: skip
_FILES = {
    "2.7": "# Ranking\n---\ntags: []\n\n# Team\n---\ntagCategories: []\n",
    "5.1": "\ufefftags: []\n",
    "5.2": "tags:\n- name: x\n\ufeff\n",
    "5.9": "%YAML 1.2\n--- text\n",
    "6.13": "%FOO  bar baz # Should be ignored\n--- \"foo\"\n",
    "9.2": "%YAML 1.2\n---\nDocument\n... # Suffix\n",
    "9.3": "Bare\ndocument\n...\n# No document\n...\n|\n%!PS-Adobe-2.0 # Not the first line\n",
    "9.4": "---\n{ matches\n% : 20 }\n...\n---\n# Empty\n...\n",
    "9.5": "%YAML 1.2\n--- |\n%!PS-Adobe-2.0\n...\n",
    "9.6": "tags: []\n---\n# Empty\n...\n%YAML 1.2\n---\nmatches %: 20\n",
    "10.1": "tags: !!map {\n  Clark : Evans }\n",
}  # fmt: skip
FIELDS = ("description", "keywords", "metadata")
EXAMPLES = {
    **{
        f"{number} as {field}": f"tags:\n  - name: one\n    {field}:{value}\n"
        for number, value in _VALUES.items()
        for field in FIELDS
    },
    **{f"{number} at first": f"tags:\n- description:{value}\n  name: one\n" for number, value in _VALUES.items()},
    **{f"{number} as items": f"tags:{value}\n" for number, value in _VALUES.items()},
    **{f"{number} as a file": text for number, text in _FILES.items()},
}
