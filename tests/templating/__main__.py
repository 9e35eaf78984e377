"""Writes the results of the stored templates: `python -m tests.templating`, after an intended change."""

import json

from tests.templating.cases import RESULTS, results_of

if __name__ == "__main__":
    kinds = (
        f"{json.dumps(kind)}: {{\n"
        + ",\n".join(f"{json.dumps(text)}: {json.dumps(results, ensure_ascii=False)}" for text, results in of.items())
        + "\n}"
        for kind, of in results_of(json.loads(RESULTS.read_text(encoding="utf-8"))).items()
    )
    RESULTS.write_text("{\n" + ",\n".join(kinds) + "\n}\n", encoding="utf-8")
